import { type Command, InvalidArgumentError } from 'commander';
import { REPLY_PHASES, type ReplyAutomation } from '../../config/reply-rules.ts';
import { iso } from '../../core/clock.ts';
import { createClassifier, operatorRuleFor } from '../../mail/classify/classifier.ts';
import { classifyWithRule, enhancedCode } from '../../mail/classify/classify.ts';
import type { ClassifierInput } from '../../mail/classify/rules.ts';
import type { SmtpReply } from '../../mail/reply.ts';
import { asJson, createCommand, createGroup, option, rowLimit } from '../command.ts';
import type { CliContext } from '../context.ts';

/** Without reports. */
const PHASES = REPLY_PHASES.filter((phase) => phase !== 'dsn');

/** `postrider replies unclassified|classify`. */
export function repliesCommand(context: CliContext): Command {
  return createGroup('replies', 'Examine how replies of receiving servers are classified', {
    commands: [
      createCommand(context, {
        usage: 'unclassified',
        description: 'List replies that no rule matches, the most frequent first',
        options: [rowLimit, asJson],
        help: `
Addresses and words with digits are replaced by @ and #. After such a reply a message is deferred (4xx) or bounces hard,
which suppresses the recipient only if it is repeated on another day (5xx). To define its meaning, add a rule to the
configuration:

  [[delivery.replies]]
  match = "mailbox * under maintenance"
  meaning = "server error"

"postrider replies classify" shows the effect of a rule; docs/reference/replies.md lists the meanings.`,
        run: async ({ limit }) => {
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
          context.printRows(rows, 'No reply is unclassified');
        },
      }),
      createCommand(context, {
        usage: 'classify <reply>',
        description: 'Classify a reply with the rules of the configuration and the built-in ones',
        argument: 'as the server sends it',
        checkArgument: parseReply,
        options: [
          option('--phase <phase>', 'command to which the server replied', {
            choices: PHASES,
            default: 'rcpt',
          }),
          option('--host <name>', 'MX host that sent it'),
          asJson,
        ],
        help: `
Example:
  postrider replies classify "421 4.7.28 Our system has detected an unusual rate of mail" --phase dot`,
        run: (reply, { phase, host = null }) =>
          classify(context, { phase, reply: parseReply(reply), mxHost: host }),
      }),
    ],
  });
}

function classify(context: CliContext, input: ClassifierInput): void {
  const { replies: rules } = context.config().delivery;
  const own = operatorRuleFor(rules, input);
  const { rule } = classifyWithRule(input);
  const found = createClassifier({ rules })(input);
  const { retryAfterMs, automation } = found;
  context.printRecord({
    decidedBy: own !== undefined ? 'delivery.replies' : rule !== undefined ? 'built-in rule' : 'no rule',
    meaning: own?.meaning ?? rule?.meaning ?? null,
    action: found.action,
    classification: found.bounceClass,
    bounceType: found.bounceType,
    scope: found.scope,
    suppresses: found.suppress,
    retryAfterSeconds: retryAfterMs === null ? null : Math.round(retryAfterMs / 1000),
    greylisted: found.greylisted,
    automation: automation === undefined ? null : automationText(automation),
  });
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
