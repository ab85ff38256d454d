import { type Clock, iso, isoOrNull } from '../../core/clock.ts';
import { type ControlIndex, createControlIndex, describeControl } from '../../delivery/control.ts';
import { storedObstacle } from '../../delivery/egress-overview.ts';
import { TRANSACTIONAL_PRIORITY } from '../../store/messages/queue.ts';
import type { ListedInQueue } from '../../store/messages/queue-list.ts';
import type { Tables } from '../../store/tables.ts';
import { noteMore } from '../command.ts';
import type { CliContext } from '../context.ts';
import { describe, type FilterOptions, filterOf } from './filter.ts';

/** `queue list`: without a filter the 200 destinations with the most messages, else single messages by due time. */
export async function listQueue(
  context: CliContext,
  options: FilterOptions & { limit: number },
): Promise<void> {
  const { tables, clock } = await context.open();
  const filter = filterOf(context, tables, options);
  const controls = controlsOf(tables, clock);
  if (Object.keys(filter).length === 0) {
    const destinations = tables.queue.byDestination().map((row) => ({
      destination: row.destination,
      messages: row.messages,
      sending: row.sending,
      deferred: row.deferred,
      scheduled: row.scheduled,
      paused: row.paused,
      transactional: row.transactional,
      oldestDueAt: isoOrNull(row.oldest_due),
      control: controls.ofKey({ account_id: '', destination: row.destination })?.action ?? null,
    }));
    return context.printRows(
      destinations,
      'The queue is empty',
      ({ oldestDueAt, control, paused, transactional: _transactional, ...columns }) => ({
        ...columns,
        held: paused,
        due: control === null ? (oldestDueAt ?? '') : control === 'pause' ? 'paused' : 'rejected',
      }),
    );
  }
  const rows = tables.queue.list(filter, options.limit + 1);
  context.printRows(
    rows.slice(0, options.limit).map((row) => queuedView(row, clock, controls)),
    `No queued message${describe(filter)}`,
    ({ messageId, state, recipient, attempts, nextAttemptAt, heldBecause }) => ({
      message: messageId,
      state,
      recipient,
      attempts,
      next: nextAttemptAt ?? heldBecause?.replaceAll('_', ' ') ?? '',
    }),
  );
  if (rows.length > options.limit) noteMore(context, options.limit);
}

/** `queue show`: one queued message with its last reply and what it waits for. */
export async function showQueued(context: CliContext, id: string): Promise<void> {
  const deps = await context.open();
  const { tables, clock } = deps;
  const message = tables.messages.byId(id) ?? context.fail(`There is no message ${id}`);
  const queued =
    tables.queue.listed(message.seq) ??
    context.fail(`${id} is not in the queue: it is ${message.status}; see "postrider message show ${id}"`);
  const last = tables.messages.attemptsOf(message.seq).at(-1);
  const lastReport: { reply?: unknown; classification?: string } =
    last === undefined ? {} : JSON.parse(last.report);
  const isWaiting = queued.ready === 1 && queued.lease === null;
  const obstacle = isWaiting ? storedObstacle(deps, queued) : null;
  context.printRecord({
    ...queuedView(queued, clock, controlsOf(tables, clock)),
    // The limit of a source address or of a new sender.
    ...(obstacle === null ? {} : { nextAttemptAt: iso(obstacle.until) }),
    waitsFor: obstacle?.text ?? null,
    lastReply: lastReport.reply ?? null,
    lastClassification: lastReport.classification ?? null,
  });
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
