import type { Command } from 'commander';
import { isRefusal, type Refusal } from '../../core/refusal.ts';
import { changeEach } from '../../delivery/control.ts';
import { presentMessage } from '../../events/message-view.ts';
import { createRecorder } from '../../events/record.ts';
import { createQueuedMail, type QueuedMail, type RetryResult } from '../../sending/queued-mail.ts';
import type { QueueCounts, QueueFilter } from '../../store/messages/queue-list.ts';
import type { Tables } from '../../store/tables.ts';
import { asJson, createCommand, createGroup, rowLimit, withoutAsking } from '../command.ts';
import type { CliContext } from '../context.ts';
import { capitalized, counted } from '../output/table.ts';
import { changeCommands } from './change.ts';
import { controlCommands } from './control.ts';
import { explainCommand } from './explain.ts';
import { describe, type FilterOptions, filterOf, filterOptions } from './filter.ts';
import { listQueue, showQueued } from './list.ts';

/** `postrider queue`: this file has the commands `retry` and `cancel`, the other files of the folder the rest. */
export function queueCommand(context: CliContext): Command {
  return createGroup('queue', 'Manage the delivery queue', {
    help: `
States: queued, sending, deferred, scheduled (not due yet and never attempted), paused (held with its campaign, or paused
by the operator), held (its account is disabled, the verification of its domain has failed, or it was restored). Messages
of a disabled account or a failed domain are sent when the account is enabled or the domain verified again, unless they
expire before. In totals by destination, held also counts messages of paused campaigns.

Examples:
  postrider queue list
  postrider queue list --destination example.net
  postrider queue retry msg_1769860800000_4kx0m2p9q8zt
  postrider queue retry --destination example.net --yes
  postrider queue cancel --campaign campaign_1769860800000_4kx0m2p9q8zt --account acct_8f3k2m9x0q1z`,
    commands: [
      createCommand(context, {
        usage: 'list',
        description: 'List queued messages by destination; with a filter, one by one',
        options: [...filterOptions, rowLimit, asJson],
        run: (options) => listQueue(context, options),
      }),
      createCommand(context, {
        usage: 'show <id>',
        description: 'Show a queued message: next attempt and last reply',
        options: [asJson],
        run: (id) => showQueued(context, id),
      }),
      ...ACTIONS.map((action) =>
        createCommand(context, {
          usage: `${action.verb} [ids...]`,
          description: action.description,
          options: [...filterOptions, withoutAsking, asJson],
          run: (ids, options) => act(context, ids, action, options),
        }),
      ),
      explainCommand(context),
      ...controlCommands(context),
      ...changeCommands(context),
    ],
  });
}

type ActOptions = FilterOptions & { yes: true | undefined };

interface Action {
  verb: 'retry' | 'cancel';
  description: string;
  /** Result of a run with filters, printed after the number of messages. */
  done: string;
  apply(mail: QueuedMail, id: string): Promise<RetryResult | Refusal>;
  /** Called after all messages, also when there are none. */
  finish?(mail: QueuedMail): Promise<void>;
  /** Number of matching messages and their state, for the question before a run with filters. */
  question(counts: QueueCounts): { count: number; noun: string };
}

const ACTIONS: readonly Action[] = [
  {
    verb: 'retry',
    description: 'Retry deferred messages now, by id or filter, and probe all suspended sites',
    done: 'due now',
    apply: (mail, id) => mail.retry(null, id),
    finish: (mail) => mail.probeSuspended(),
    question: ({ deferred }) => ({ count: deferred, noun: 'deferred' }),
  },
  {
    verb: 'cancel',
    description: 'Cancel queued messages, by id or filter; messages in delivery are not stopped',
    done: 'cancelled',
    apply: async (mail, id) => {
      const message = await mail.cancel(null, id);
      return isRefusal(message) ? message : { message, report: 'is cancelled' };
    },
    question: ({ messages, sending }) => ({ count: messages - sending, noun: 'queued' }),
  },
];

async function act(context: CliContext, ids: string[], action: Action, options: ActOptions): Promise<void> {
  const filtered = [options.account, options.destination, options.campaign, options.domain].some(
    (value) => value !== undefined,
  );
  if (filtered === ids.length > 0)
    return context.usage(
      `Specify message ids, or a filter (--account, --destination, --campaign, --domain)${filtered ? ', not both' : ''}`,
    );
  const deps = await context.open();
  const mail = createQueuedMail(deps, { recorder: createRecorder(deps) });
  if (filtered)
    return actOnMatching(context, deps.tables, filterOf(context, deps.tables, options), {
      action,
      mail,
      asks: options.yes !== true,
    });
  const changed: RetryResult[] = [];
  const refused: string[] = [];
  for (const id of ids) {
    const row = await action.apply(mail, id);
    if (isRefusal(row)) refused.push(`${id}: ${row.message}`);
    else changed.push(row);
  }
  context.failSome(refused, changed.length);
  if (context.json) context.printJson(changed.map(({ message }) => presentMessage(message)));
  else for (const { message, report } of changed) context.print(`${message.message_id} ${report}`);
  await action.finish?.(mail);
}

/** Matches the refusal of a held message, which states what releases it. */
const HELD = /^The message is held /;
const CHANGED = 'changed in the meantime and were skipped';
const PROBED = '; mail that waits for a suspended site is tried within a second';

async function actOnMatching(
  context: CliContext,
  tables: Tables,
  filter: QueueFilter,
  { action, mail, asks }: { action: Action; mail: QueuedMail; asks: boolean },
): Promise<void> {
  const counts = tables.queue.counts(filter);
  const { count, noun } = action.question(counts);
  const held = action.verb === 'retry' ? counts.paused : 0;
  const which = `${noun} ${count === 1 ? 'message' : 'messages'}${describe(filter)}`;
  const question = `${capitalized(action.verb)} ${count.toLocaleString('en')} ${which}?`;
  if (count > 0 && asks && !(await context.confirm(question))) return;

  /** Refusals that state why, such as that the account is disabled, with the number of messages. */
  const refusals = new Map<string, number>();
  let done = 0;
  const { changed, skipped } = await changeEach(
    async (where, page) => tables.queue.waiting(where, page),
    { filter, deferred: action.verb === 'retry' },
    async (id) => {
      const result = await action.apply(mail, id);
      done++;
      if (isRefusal(result)) {
        const reason = HELD.test(result.message) ? result.message : CHANGED;
        refusals.set(reason, (refusals.get(reason) ?? 0) + 1);
      }
      return result;
    },
    { isOver: () => done >= count },
  );
  await action.finish?.(mail);

  if (context.json) context.printJson({ matched: count, changed, skipped, held });
  else if (count > 0) context.print(`${counted(changed, 'message')} ${action.done}`);
  else if (held === 0)
    context.note(`No ${noun} message${describe(filter)}${action.verb === 'retry' ? PROBED : ''}`);
  const notes = [
    ...(held === 0 ? [] : [`${counted(held, 'message')} still held: ${releaseHint(tables, held)}`]),
    ...Array.from(refusals, ([reason, messages]) =>
      reason === CHANGED
        ? `${counted(messages, 'message')} ${CHANGED}`
        : `${counted(messages, 'message')} not retried: ${reason}`,
    ),
  ];
  if (notes.length === 0) return;
  context.failSome([notes.join('; ')], changed);
}

function releaseHint({ restoreHolds }: Tables, held: number): string {
  return restoreHolds.count(1) === 0
    ? `resume the campaign, enable the account or verify the domain to send ${held === 1 ? 'it' : 'them'}`
    : 'see "heldBecause" of "postrider queue show", and "postrider restore held"';
}
