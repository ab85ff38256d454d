import { type Clock, iso } from '../../core/clock.ts';
import { type ControlIndex, createControlIndex, describeControl } from '../../delivery/control/controls.ts';
import { storedObstacle } from '../../delivery/egress-overview.ts';
import { TRANSACTIONAL_PRIORITY } from '../../store/messages/queue.ts';
import type { ListedInQueue } from '../../store/messages/queue-list.ts';
import type { Tables } from '../../store/tables.ts';
import type { CliContext } from '../context.ts';
import { noteMore } from '../output/row-limit.ts';
import { describe, type FilterOptions, filterOf } from './filter.ts';

export interface ListOptions extends FilterOptions {
  limit: number;
  json?: boolean;
}

/**
 * `queue list`: without a filter the 200 destinations with the most messages, else single messages by due time. Prints
 * nothing for a filter that `filterOf` has reported.
 */
export async function listQueue(context: CliContext, options: ListOptions): Promise<void> {
  const { tables, clock } = await context.open();
  const filter = filterOf(context, tables, options);
  if (filter === null) return;
  const json = options.json === true;
  const controls = controlsOf(tables, clock);
  if (Object.keys(filter).length === 0) {
    const rows = tables.queue.byDestination().map((row) => ({
      destination: row.destination,
      messages: row.messages,
      sending: row.sending,
      deferred: row.deferred,
      scheduled: row.scheduled,
      paused: row.paused,
      transactional: row.transactional,
      oldestDueAt: row.oldest_due === null ? null : iso(row.oldest_due),
      control: controls.ofKey({ account_id: '', destination: row.destination })?.action ?? null,
    }));
    const shown = json
      ? rows
      : rows.map(({ destination, messages, sending, deferred, scheduled, paused, oldestDueAt, control }) => ({
          destination,
          messages,
          sending,
          deferred,
          scheduled,
          paused,
          due: control === null ? (oldestDueAt ?? '') : control === 'pause' ? 'paused' : 'rejected',
        }));
    return context.printRows(shown, { json, empty: 'The queue is empty' });
  }
  const rows = tables.queue.list(filter, options.limit + 1);
  const page = rows.slice(0, options.limit).map((row) => queuedView(row, clock, controls));
  const shown = json
    ? page
    : page.map(({ messageId, state, recipient, attempts, nextAttemptAt, heldBecause }) => ({
        message: messageId,
        state,
        recipient,
        attempts,
        next: nextAttemptAt ?? heldBecause?.replaceAll('_', ' ') ?? '',
      }));
  context.printRows(shown, { json, empty: `No queued message${describe(filter)}` });
  if (rows.length > options.limit) noteMore(context, options.limit);
}

/**
 * `queue show`: one queued message with its last reply and what it waits for. Reports a failure when the message is
 * unknown or no longer in the queue.
 */
export async function showQueued(context: CliContext, id: string, json: boolean): Promise<void> {
  const deps = await context.open();
  const { tables, clock } = deps;
  const message = tables.messages.byId(id);
  if (message === null) return context.fail(`There is no message ${id}`);
  const queued = tables.queue.listed(message.seq);
  if (queued === null)
    return context.fail(
      `${id} is not in the queue: it is ${message.status}; see "postrider message show ${id}"`,
    );
  const last = tables.messages.attemptsOf(message.seq).at(-1);
  const lastReport: { reply?: unknown; classification?: string } =
    last === undefined ? {} : JSON.parse(last.report);
  const isWaiting = queued.ready === 1 && queued.lease === null;
  const obstacle = isWaiting ? storedObstacle(deps, queued) : null;
  const view = {
    ...queuedView(queued, clock, controlsOf(tables, clock)),
    // The limit of a source address.
    ...(obstacle === null ? {} : { nextAttemptAt: iso(obstacle.until) }),
    waitsFor: obstacle?.text ?? null,
    lastReply: lastReport.reply ?? null,
    lastClassification: lastReport.classification ?? null,
  };
  context.printRecord(view, { json });
}

function controlsOf(tables: Tables, clock: Clock): ControlIndex {
  return createControlIndex(tables.queueControls.list(clock.now()));
}

function queuedView(row: ListedInQueue, clock: Clock, controls: ControlIndex) {
  const control = controls.ofKey(row);
  return {
    messageId: row.message_id,
    state: control?.action === 'pause' && row.lease === null ? 'paused' : stateOf(row, clock),
    status: row.status,
    recipient: row.recipient,
    stream: row.priority === TRANSACTIONAL_PRIORITY ? 'transactional' : 'marketing',
    attempts: row.attempts,
    // Held messages have no next attempt.
    nextAttemptAt: row.paused === 1 ? null : iso(row.due_at),
    heldBecause: row.hold_reason,
    control: control === null ? null : describeControl(control),
    lane: row.secondary === 1 ? 'secondary' : 'primary',
    accountId: row.account_id,
    expiresAt: iso(row.expires_at),
  };
}

/** The state for people, who distinguish held and scheduled messages from queued and deferred ones. */
function stateOf({ paused, hold_reason, lease, ready, status, due_at }: ListedInQueue, clock: Clock): string {
  if (lease !== null) return 'sending';
  if (hold_reason !== null && hold_reason !== 'campaign_paused') return 'held';
  if (paused === 1) return 'paused';
  return status === 'queued' && ready === 0 && due_at > clock.now() ? 'scheduled' : status;
}
