import type { Clock } from '../core/clock.ts';
import type { Log } from '../core/log.ts';
import type { Obstacle } from '../events/event-types.ts';
import type { Recorder } from '../events/record.ts';
import { type PackedContent, toJobContent } from '../mail/stored-content.ts';
import type { MessageRow } from '../store/messages/messages.ts';
import type { ReadyMessage } from '../store/messages/queue.ts';
import type { Tables } from '../store/tables.ts';
import type { RecentMessages, ReservedPlace, Scheduler } from './scheduling/dispatcher.ts';
import type { Targets } from './scheduling/targets.ts';
import type { Waits } from './waits.ts';

export interface TakenNew extends Pick<ReservedPlace, 'committed' | 'rolledBack'> {
  /** The message is inserted as leased: the daemon's generation, and the time, epoch ms. Null: it has no lease yet. */
  lease: { generation: number; at: number } | null;
  /** It has no place yet: it waits in the queue, and its key must be announced. */
  isQueued: boolean;
  /** Records `email_sent` for a leased message. Call after its rows were inserted and its `seq` was set. */
  stored(tables: Tables): void;
}

export interface NewMessagesDeps {
  clock: Clock;
  log: Log;
  recorder: Pick<Recorder, 'sent'>;
  waits: Pick<Waits, 'parkedOf'>;
  targets: Pick<Targets, 'startBatch' | 'find'>;
  scheduler: Pick<Scheduler, 'reserveNew'>;
  recent: Pick<RecentMessages, 'add'>;
  /** The daemon's generation, which every lease carries. */
  generation: number;
  /** Null: the message may be sent. */
  sendingObstacle(tables: Tables, message: MessageRow): Obstacle | null;
}

/** Larger contents are read when they are sent: this bounds those of messages that are sent next. Bytes as stored. */
const MAX_NEXT_BYTES = 64 * 1024;
/** The same for messages that wait behind others, which are far more. */
const MAX_WAITING_BYTES = 1024;

/**
 * Whether the content stays in memory. A message that waits behind others keeps its content only if its texts are stored
 * separately, as a shared content: it then has one recipient, so that no erasure rewrites its content while it is queued.
 */
function mayKeep({ body, sharedId }: PackedContent, waits: boolean): boolean {
  return waits ? sharedId !== undefined && body.length <= MAX_WAITING_BYTES : body.length <= MAX_NEXT_BYTES;
}

/**
 * Takes new messages for delivery while they are stored, so that they need not be read from the queue. Where nothing else
 * waits for their site, the transaction that accepts them leases them and records `email_sent`, too. The queue has a row
 * of each message all the same, and its lease is void after a restart.
 *
 * Keeps no state, and `take` does not throw. A message whose route is not cached waits in the queue, as no lookup is
 * begun for it; such messages are kept with the recent ones. Small contents stay in memory until they are sent.
 */
export function createNewMessages(deps: NewMessagesDeps) {
  const { clock, log, recorder, waits, targets, scheduler, recent, generation } = deps;

  function reserve(tables: Tables, message: ReadyMessage, content: PackedContent): ReservedPlace | null {
    if (waits.parkedOf(message) !== null) return null;
    targets.startBatch();
    // The lookup of an unknown route begins when the message is read from the queue.
    const target = targets.find(message, null);
    if (target.kind !== 'site') return null;
    const place = scheduler.reserveNew(target.site, target.assignment);
    if (place === null) return null;
    const { assignment } = target;
    if (mayKeep(content, place.waits)) assignment.content = toJobContent(content);
    // A message without a lease is checked when it gets one.
    if (!place.leased) return place;
    let isSendable = false;
    try {
      isSendable = deps.sendingObstacle(tables, message) === null;
    } finally {
      if (!isSendable) place.rolledBack();
    }
    return isSendable ? place : null;
  }

  return {
    /**
     * In the unit of work that stores the message, before its rows are inserted: its `seq` is 0 until then. Null: it must be
     * read from the queue.
     */
    take: (tables: Tables, message: ReadyMessage, content: PackedContent): TakenNew | null => {
      let reserved: ReservedPlace | null;
      try {
        reserved = reserve(tables, message, content);
      } catch (error) {
        // The message is accepted all the same; what cannot be read is retried when it is read from the queue.
        log.warn(
          { err: error, messageId: message.message_id },
          'new message waits in the queue: its route cannot be read',
        );
        return null;
      }
      if (reserved === null) {
        const kept = mayKeep(content, true) ? toJobContent(content) : undefined;
        return {
          lease: null,
          isQueued: true,
          stored: () => {},
          committed: () => recent.add(message, kept),
          rolledBack: () => {},
        };
      }
      const { committed, rolledBack } = reserved;
      const lease = reserved.leased ? { generation, at: clock.now() } : null;
      return {
        lease,
        isQueued: false,
        stored: (tx) => {
          reserved.stored();
          if (lease !== null) recorder.sent(tx, message, lease.at);
        },
        committed,
        rolledBack,
      };
    },
  };
}
