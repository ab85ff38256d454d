import type { DeliveryRoute } from '../../config/setting-types.ts';
import type { Lane } from '../../store/domains/domains.ts';
import {
  type QueueKey,
  type QueuePriority,
  queueKeyText,
  type ReadyMessage,
} from '../../store/messages/queue.ts';
import type { DestinationTls } from '../tls/host-policies.ts';
import type { TargetHost } from '../worker/protocol.ts';

/** A message that waits in memory, with its route. */
export interface Assignment {
  message: ReadyMessage;
  hosts: TargetHost[];
  route: DeliveryRoute | null;
  lane: Lane;
  /** The mailbox provider behind the hosts (`providerOfHosts`); null: over a fixed route. */
  provider: string | null;
  /** What the destination has published about TLS; absent with a configured route. */
  tls?: DestinationTls;
  /** When it was read from the queue (monotonic). */
  readAt: number;
}

/**
 * The mail of a site in memory: messages that were read from the queue, messages that were leased ahead, and the keys
 * that have more mail in the queue than the site had capacity for.
 */
export interface Backlog {
  add(assignment: Assignment): void;
  addLeased(assignment: Assignment): void;
  /** Messages of a priority that are not leased. */
  size(priority: QueuePriority): number;
  /** Messages that are leased. */
  leased(): number;
  isEmpty(): boolean;
  /** Removes and returns the next message that `admits` accepts, transactional and leased ones first. */
  take(admits: Admits): { assignment: Assignment; leased: boolean } | null;
  /** Removes and returns the next message that is not leased. */
  takeUnleased(admits: Admits): Assignment | null;
  /** Removes the messages that were read before `readBefore`; their keys wait again. */
  drop(readBefore: number): { unleased: ReadyMessage[]; leased: ReadyMessage[] };

  wait(key: QueueKey): void;
  waitingCount(): number;
  /** A copy. */
  waitingKeys(): QueueKey[];
  /** Removes and returns the keys of a priority that have waited longest, at most `count`. */
  takeWaiting(priority: QueuePriority, count: number): QueueKey[];
}

type Admits = (assignment: Assignment) => boolean;

/** Keys that wait at one site; the scan of the queue finds further ones. */
const MAX_WAITING_KEYS = 2000;

export function createBacklog(): Backlog {
  /** By priority, like the next two. */
  const unleased: [Assignment[], Assignment[]] = [[], []];
  const leased: [Assignment[], Assignment[]] = [[], []];
  const waiting: [Map<string, QueueKey>, Map<string, QueueKey>] = [new Map(), new Map()];
  /** In the order in which slots take from them. */
  const ready = [leased[0], unleased[0], leased[1], unleased[1]];

  function wait(key: QueueKey): void {
    if (waiting[0].size + waiting[1].size >= MAX_WAITING_KEYS) return;
    waiting[key.priority].set(queueKeyText(key), key);
  }

  /** Assignments are in the order in which they were read. */
  function dropFrom(lists: readonly Assignment[][], readBefore: number): ReadyMessage[] {
    const dropped: ReadyMessage[] = [];
    for (const list of lists) {
      const kept = list.findIndex(({ readAt }) => readAt >= readBefore);
      if (kept === 0) continue;
      for (const { message } of list.splice(0, kept < 0 ? list.length : kept)) dropped.push(message);
    }
    for (const { priority, account_id, destination } of dropped) wait({ priority, account_id, destination });
    return dropped;
  }

  return {
    add: (assignment) => void unleased[assignment.message.priority].push(assignment),
    addLeased: (assignment) => void leased[assignment.message.priority].push(assignment),
    size: (priority) => unleased[priority].length,
    leased: () => leased[0].length + leased[1].length,
    isEmpty: () => ready.every((list) => list.length === 0),
    take: (admits) => {
      for (const list of ready) {
        const assignment = takeFirst(list, admits);
        if (assignment !== null) return { assignment, leased: list === leased[0] || list === leased[1] };
      }
      return null;
    },
    takeUnleased: (admits) => takeFirst(unleased[0], admits) ?? takeFirst(unleased[1], admits),
    drop: (readBefore) => ({
      unleased: dropFrom(unleased, readBefore),
      leased: dropFrom(leased, readBefore),
    }),
    wait,
    waitingCount: () => waiting[0].size + waiting[1].size,
    waitingKeys: () => [...waiting[0].values(), ...waiting[1].values()],
    takeWaiting: (priority, count) => {
      const taken: QueueKey[] = [];
      for (const [text, key] of waiting[priority]) {
        if (taken.length >= count) break;
        waiting[priority].delete(text);
        taken.push(key);
      }
      return taken;
    },
  };
}

/**
 * Removes and returns the first assignment that `admits` accepts. Where a message is refused, so is every message of
 * the same account that is not smaller.
 */
function takeFirst(list: Assignment[], admits: Admits): Assignment | null {
  const refused = new Map<string, number>();
  const index = list.findIndex((assignment) => {
    const { account_id, content_bytes } = assignment.message;
    if (content_bytes >= (refused.get(account_id) ?? Number.POSITIVE_INFINITY)) return false;
    if (admits(assignment)) return true;
    refused.set(account_id, content_bytes);
    return false;
  });
  return index < 0 ? null : (list.splice(index, 1)[0] ?? null);
}
