import { Command } from 'commander';
import { iso } from '../core/clock.ts';
import { isRefusal, type Refusal } from '../core/refusal.ts';
import { publicMessage } from '../events/message-view.ts';
import { createRecorder } from '../events/record.ts';
import { createQueuedMail, type QueuedMail, type Retried } from '../sending/queued-mail.ts';
import { HELD, type QueuedMessage } from '../store/queue.ts';
import type { CliContext } from './context.ts';

/** `postrider queue list|show|retry|cancel`: what waits to be delivered, and the operator's hand on it. */
export function queueCommand(context: CliContext): Command {
  const command = new Command('queue').description(
    'look at the delivery queue, try deferred mail now, call mail off',
  );
  command
    .command('list')
    .description('what waits, by destination; with a filter, message by message')
    .option('--account <id>', 'only this account')
    .option('--destination <domain>', 'only mail to this domain')
    .option('--domain <id>', 'only mail from this sending domain (its id)')
    .option('--limit <n>', 'rows at most', '50')
    .option('--json', 'print JSON')
    .action((options: ListOptions) => listQueue(context, options));
  command
    .command('show <id>')
    .description('one waiting message: when it is tried next and what happened so far')
    .option('--json', 'print JSON')
    .action((id: string, options: { json?: boolean }) => showQueued(context, id, options.json === true));
  for (const { verb, does, act } of ACTIONS) {
    command
      .command(`${verb} <ids...>`)
      .description(does)
      .option('--json', 'print JSON')
      .action((ids: string[], options: { json?: boolean }) =>
        actOn(context, ids, act, options.json === true),
      );
  }
  return command;
}

type Action = (mail: QueuedMail, id: string) => Promise<Retried | Refusal>;

const ACTIONS: { verb: string; does: string; act: Action }[] = [
  {
    verb: 'retry',
    does: 'try deferred messages again now',
    act: (mail, id) => mail.retry(null, id),
  },
  {
    verb: 'cancel',
    does: 'call waiting messages off; what is being sent at this moment is not stopped',
    act: async (mail, id) => {
      const message = await mail.cancel(null, id);
      return isRefusal(message) ? message : { message, report: 'is cancelled' };
    },
  },
];

/** Does what can be done, and says of the others why not. */
async function actOn(context: CliContext, ids: readonly string[], act: Action, json: boolean): Promise<void> {
  const house = await context.open();
  const mail = createQueuedMail({ ...house, recorder: createRecorder(house) });
  const changed: Retried[] = [];
  for (const id of ids) {
    const row = await act(mail, id);
    if (isRefusal(row)) context.fail(`${id}: ${row.message}`);
    else changed.push(row);
  }
  if (json) context.printJson(changed.map(({ message }) => publicMessage(message)));
  else for (const { message, report } of changed) context.print(`${message.message_id} ${report}`);
}

interface ListOptions {
  account?: string;
  destination?: string;
  domain?: string;
  limit: string;
  json?: boolean;
}

const MAX_ROWS = 1000;

async function listQueue(context: CliContext, options: ListOptions): Promise<void> {
  const limit = Number(options.limit);
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_ROWS)
    return context.usage(`--limit must be a number from 1 to ${MAX_ROWS}`);
  const { tables } = await context.open();
  const { account, destination, domain } = options;
  if (account === undefined && destination === undefined && domain === undefined) {
    const rows = tables.queue.byDestination().map((row) => ({
      destination: row.destination,
      messages: row.messages,
      sending: row.sending,
      deferred: row.deferred,
      transactional: row.transactional,
      oldestDueAt: iso(row.oldest_due),
    }));
    context.printRows(rows, { json: options.json === true, empty: 'the queue is empty' });
    return;
  }
  const rows = tables.queue
    .list({
      ...(account === undefined ? {} : { accountId: account }),
      ...(destination === undefined ? {} : { destination: destination.toLowerCase() }),
      ...(domain === undefined ? {} : { domainId: domain }),
      limit,
    })
    .map(queuedView);
  context.printRows(rows, { json: options.json === true, empty: 'nothing of that waits' });
}

async function showQueued(context: CliContext, id: string, json: boolean): Promise<void> {
  const { tables } = await context.open();
  const message = tables.messages.byId(id);
  const queued = message === null ? null : tables.queue.get(message.seq);
  if (message === null) return context.fail(`there is no message ${id}`);
  if (queued === null)
    return context.fail(
      `${id} is not in the queue: it is ${message.status}; see "postrider message show ${id}"`,
    );
  const last = tables.messages.attemptsOf(message.seq).at(-1);
  const lastReport: { reply?: unknown; classification?: string } =
    last === undefined ? {} : JSON.parse(last.report);
  const view = {
    ...queuedView({ ...message, ...queued }),
    lastReply: lastReport.reply ?? null,
    lastClassification: lastReport.classification ?? null,
  };
  if (json) context.printJson(view);
  else
    context.print(
      Object.entries(view)
        .map(
          ([name, value]) =>
            `${name.padEnd(20)} ${typeof value === 'string' ? value : JSON.stringify(value)}`,
        )
        .join('\n'),
    );
}

function queuedView(row: QueuedMessage) {
  return {
    messageId: row.message_id,
    status: row.status,
    recipient: row.recipient,
    lane: row.lane === 0 ? 'transactional' : 'marketing',
    attempts: row.attempts,
    // Null: it is held, with its campaign.
    nextAttemptAt: row.due_at < HELD ? iso(row.due_at) : null,
    accountId: row.account_id,
    expiresAt: iso(row.expires_at),
  };
}
