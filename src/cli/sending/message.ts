import type { Command } from 'commander';
import { iso } from '../../core/clock.ts';
import type { SessionRecord } from '../../delivery/worker/protocol.ts';
import { messageHistory, presentMessage, presentTimeline } from '../../events/message-view.ts';
import { definedFields } from '../../http/api/fields.ts';
import { normalizeDomain } from '../../mail/address.ts';
import { recipientIdentifier } from '../../mail/identifier.ts';
import type { SmtpReply } from '../../mail/reply.ts';
import type { MessageFilter } from '../../store/messages/message-list.ts';
import { type ListedMessage, SHOWN_STATUSES } from '../../store/messages/messages.ts';
import type { ScanPage } from '../../store/rows/page.ts';
import type { Tables } from '../../store/tables.ts';
import {
  asJson,
  createCommand,
  createGroup,
  momentOf,
  noteMore,
  type OptionValues,
  option,
  rowLimit,
} from '../command.ts';
import type { CliContext } from '../context.ts';
import { escapeControls, fieldLines, fieldText } from '../output/table.ts';

const listOptions = [
  option('--account <id>', 'only of this account'),
  option('--recipient <address>', 'only to this address'),
  option('--sender <text>', 'only with this text in the From address'),
  option('--subject <text>', 'only with this text in the subject'),
  option('--tag <tag>', 'only with this tag'),
  option('--status <status>', 'only with this status', { choices: SHOWN_STATUSES }),
  option('--domain <domain>', 'only from this sending domain (name or id)'),
  option('--from <time>', 'accepted at or after: a date or an ISO 8601 time'),
  option('--to <time>', 'accepted before'),
  rowLimit,
  asJson,
] as const;

/** `postrider message list|show`. */
export function messageCommand(context: CliContext): Command {
  return createGroup('message', 'Find and show messages', {
    help: `
Examples:
  postrider message list --recipient ada@example.net
  postrider message list --status bounced --domain example.com --from 2026-02-01
  postrider message list --sender billing@ --subject invoice --limit 200`,
    commands: [
      createCommand(context, {
        usage: 'list',
        description: 'List messages, newest first',
        options: listOptions,
        run: (options) => listMessages(context, options),
      }),
      createCommand(context, {
        usage: 'show <id>',
        description: 'Show a message as text: fields, timeline, every SMTP reply',
        options: [asJson],
        run: async (id) => {
          const { tables } = await context.open();
          const history = messageHistory.run(tables, id) ?? context.fail(`There is no message ${id}`);
          const message = presentMessage(history.message, history.reason);
          const timeline = presentTimeline(history);
          context.show({ ...message, timeline }, () => [
            ...fieldLines(message),
            '',
            ...timeline.map(timelineText),
          ]);
        },
      }),
    ],
  });
}

async function listMessages(context: CliContext, options: OptionValues<typeof listOptions>): Promise<void> {
  const { account, recipient, sender, subject, status, tag, domain, limit } = options;
  const { tables } = await context.open({ account });
  const period = definedFields({
    from: options.from === undefined ? undefined : momentOf(context, '--from', options.from),
    to: options.to === undefined ? undefined : momentOf(context, '--to', options.to),
  });
  const domains = domain === undefined ? [undefined] : domainIds(tables, domain, account);
  if (domains.length === 0) context.fail(`There is no domain ${domain}`);
  // The indexes by recipient and by status begin with the account.
  const accounts =
    account === undefined && (recipient !== undefined || status !== undefined)
      ? tables.accounts.list().map((row) => row.account_id)
      : [account ?? null];
  const rows = accounts
    .flatMap((accountId) => domains.map((domainId) => ({ accountId, domainId })))
    .flatMap(({ accountId, domainId }) =>
      firstMessages(tables, {
        accountId,
        ...definedFields({
          recipientHash: recipient === undefined ? undefined : recipientIdentifier(recipient),
          sender: sender?.toLowerCase(),
          tag,
          subject: subject?.toLowerCase(),
          status,
          domainId,
        }),
        ...period,
        limit: limit + 1,
      }),
    )
    .toSorted((a, b) => b.seq - a.seq);
  if (rows.length > limit) noteMore(context, limit);
  const page = rows.slice(0, limit);
  if (context.json) return context.printJson(page.map((row) => presentMessage(row)));
  context.printRows(page, 'No message matches', (row) => ({
    message: row.message_id,
    created: iso(row.created_at),
    status: row.status,
    recipient: row.recipient,
    subject: row.subject,
  }));
}

/** Reads as many pages as needed: pages of a list with filters may be short. */
function firstMessages(tables: Tables, filter: MessageFilter): ListedMessage[] {
  const rows: ListedMessage[] = [];
  let beforeSeq: number | null = null;
  do {
    const page: ScanPage<ListedMessage> = tables.messages.list({
      ...filter,
      ...(beforeSeq === null ? {} : { beforeSeq }),
      limit: filter.limit - rows.length,
    });
    rows.push(...page.rows);
    beforeSeq = page.nextSeq;
  } while (beforeSeq !== null && rows.length < filter.limit);
  return rows;
}

/** A domain can be registered once per use case, and by several accounts. */
function domainIds(tables: Tables, text: string, account: string | undefined): string[] {
  const name = normalizeDomain(text);
  return tables.domains
    .list(account ?? null)
    .filter((row) => row.domain_id === text || row.name === name)
    .map((row) => row.domain_id);
}

/** An attempt as delivery stores it and `presentTimeline` returns it. */
interface Attempt {
  attempt: number;
  lane: string;
  classification?: string;
  reply: SmtpReply | null;
  lastAttempt?: true;
  sessions: Session[];
}
interface Session extends Omit<SessionRecord, 'phase' | 'startedAt' | 'endedAt'> {
  stage: string;
  startedAt: string;
  endedAt: string;
}

function timelineText(entry: Record<string, unknown>): string {
  const { type, timestamp, event, eventId: _, ...rest } = entry;
  const at = String(timestamp);
  if (type === 'event') return `${at}  ${String(event)}${detailsOf(ownFields(rest))}`;
  const attempt = rest as unknown as Attempt; // what is neither an event nor an attempt is not in a timeline
  const about = [
    `${attempt.lane} lane`,
    ...(attempt.lastAttempt === true ? ['the last'] : []),
    ...(attempt.classification === undefined ? [] : [attempt.classification]),
  ];
  const heading = `${at}  attempt ${attempt.attempt} (${about.join(', ')}): ${replyText(attempt.reply)}`;
  return [heading, ...attempt.sessions.flatMap(sessionLines)].join('\n');
}

function replyText(reply: SmtpReply | null): string {
  return reply === null
    ? 'no reply'
    : escapeControls([reply.code, reply.enhanced, reply.text].filter((part) => part !== null).join(' '));
}

function sessionLines(session: Session): string[] {
  const { host, address, port, localAddress, tls, stage, reply, error, startedAt, endedAt } = session;
  const source = localAddress === null ? '' : ` from ${localAddress}`;
  const duration = `${Date.parse(endedAt) - Date.parse(startedAt)} ms`;
  return [
    `    ${escapeControls(host)} (${address}, port ${port})${source}, ${duration}, ended in phase ${stage}: ${error === null ? replyText(reply) : escapeControls(error)}`,
    tls === null
      ? '      without TLS'
      : `      ${tls.protocol} ${tls.cipher}, ${tls.verified ? `verified (${tls.verification})` : 'not verified'}; policy ${tls.policy}, required by ${tls.requiredBy}`,
  ];
}

/** `: bounceType hard, …`, or nothing. */
function detailsOf(fields: Record<string, unknown>): string {
  return Object.keys(fields).length === 0 ? '' : `: ${fieldText(fields)}`;
}

/** Without the fields that all events of the message have in common. */
function ownFields(fields: Record<string, unknown>): Record<string, unknown> {
  const common = new Set([
    'accountId',
    'emailId',
    'messageId',
    'useCase',
    'from',
    'recipient',
    'contactIdentifier',
    'subject',
    'domainId',
    'jobId',
    'campaignId',
    'subscriptionGroupId',
  ]);
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !common.has(name)));
}
