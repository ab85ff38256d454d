import { Command, InvalidArgumentError, Option } from 'commander';
import type { ReplyAutomation } from '../../config/reply-rules.ts';
import { iso } from '../../core/clock.ts';
import { createClassifier, operatorRuleFor } from '../../mail/classify/classifier.ts';
import { type ClassifierInput, classifyWithRule, enhancedCode } from '../../mail/classify/classify.ts';
import type { SmtpPhase, SmtpReply } from '../../mail/reply.ts';
import type { CliContext } from '../context.ts';
import { ROWS, rowLimit } from '../output/row-limit.ts';

const PHASES = [
  'greeting',
  'ehlo',
  'starttls',
  'auth',
  'mail',
  'rcpt',
  'data',
  'dot',
] as const satisfies SmtpPhase[];

/** `postrider replies unclassified|classify`. */
export function repliesCommand(context: CliContext): Command {
  const command = new Command('replies').description(
    'Examine how replies of receiving servers are classified',
  );
  command
    .command('unclassified')
    .description('List replies that no rule matches, the most frequent first')
    .option('--limit <n>', 'maximum number of rows', rowLimit, ROWS)
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `
Addresses and words with digits are replaced by @ and #. After such a reply a message is deferred (4xx) or bounces hard,
which suppresses the recipient only if it is repeated on another day (5xx). To define its meaning, add a rule to the
configuration:

  [[delivery.replies]]
  match = "mailbox * under maintenance"
  meaning = "server error"

"postrider replies classify" shows the effect of a rule; docs/delivery.md lists the meanings.`,
    )
    .action((options: ListOptions) => unclassified(context, options));
  command
    .command('classify')
    .description('Classify a reply with the rules of the configuration and the built-in ones')
    .argument('<reply>', 'as the server sends it', parseReply)
    .addOption(
      new Option('--phase <phase>', 'command to which the server replied').choices(PHASES).default('rcpt'),
    )
    .option('--host <name>', 'MX host that sent it')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `
Example:
  postrider replies classify "421 4.7.28 Our system has detected an unusual rate of mail" --phase dot`,
    )
    .action((reply: SmtpReply, options: ClassifyOptions) => classifyReply(context, reply, options));
  return command;
}

interface ListOptions {
  limit: number;
  json?: boolean;
}

interface ClassifyOptions {
  phase: SmtpPhase;
  host?: string;
  json?: boolean;
}

async function unclassified(context: CliContext, { limit, json = false }: ListOptions): Promise<void> {
  const { tables } = await context.open();
  const rows = tables.unclassifiedReplies.frequent(limit).map((row) => ({
    replies: row.replies,
    code: row.code,
    enhancedCode: row.enhanced === '' ? null : row.enhanced,
    phase: row.phase,
    text: row.text,
    host: row.host === '' ? null : row.host,
    firstAt: iso(row.first_at),
    lastAt: iso(row.last_at),
  }));
  context.printRows(rows, { json, empty: 'No reply is unclassified' });
}

function classifyReply(
  context: CliContext,
  reply: SmtpReply,
  { phase, host, json = false }: ClassifyOptions,
): void {
  const { replies: rules } = context.config().delivery;
  const input: ClassifierInput = { phase, reply, mxHost: host ?? null };
  const own = operatorRuleFor(rules, input);
  const { rule } = classifyWithRule(input);
  const { action, bounceClass, bounceType, scope, suppress, retryAfterMs, greylisted, automation } =
    createClassifier({
      rules,
    })(input);
  const found = {
    decidedBy: own !== undefined ? 'delivery.replies' : rule !== undefined ? 'built-in rule' : 'no rule',
    meaning: own?.meaning ?? rule?.meaning ?? null,
    action,
    classification: bounceClass,
    bounceType,
    scope,
    suppresses: suppress,
    retryAfterSeconds: retryAfterMs === null ? null : Math.round(retryAfterMs / 1000),
    greylisted,
    automation: automation === undefined ? null : automationText(automation),
  };
  context.printRecord(found, { json });
}

/** `after 5 replies within 3600 s: suspend 7200 s`. */
function automationText({ after, within, then: effect }: ReplyAutomation): string {
  const value =
    effect.kind === 'suspend'
      ? `${effect.ms / 1000} s`
      : String(effect.kind === 'connections' ? effect.connections : effect.messages);
  return `after ${after} ${after === 1 ? 'reply' : 'replies'} within ${within / 1000} s: ${effect.kind} ${value}`;
}

/** "451 4.7.1 text" as a server sends it. Throws InvalidArgumentError. */
function parseReply(line: string): SmtpReply {
  const [, code, text = ''] = /^([2-5]\d\d)[ -](.*)$/s.exec(line.trim()) ?? [];
  if (code === undefined)
    throw new InvalidArgumentError('Must begin with the reply code, as in "451 4.7.1 Try again later"');
  const enhanced = enhancedCode(text);
  return { code: Number(code), enhanced, text: enhanced === null ? text : text.replace(enhanced, '').trim() };
}
