import type { DeliveryRoute } from '../../config/setting-types.ts';
import type { JobContent } from '../../mail/stored-content.ts';
import type { Lane } from '../../store/domains/domains.ts';
import {
  MARKETING_PRIORITY,
  type QueuePriority,
  type ReadyMessage,
  TRANSACTIONAL_PRIORITY,
} from '../../store/messages/queue.ts';
import type { DestinationTls } from '../tls-policies.ts';
import type { TargetHost } from '../worker/protocol.ts';

/**
 * The part of each content that does not count toward the limit on bytes, so that large messages to slow hosts do not
 * block ordinary mail. The number of sessions bounds the sum of these parts.
 */
export const UNCOUNTED_BYTES = 64 * 1024;

/** A message that waits in memory, with its route. */
export interface Assignment {
  message: ReadyMessage;
  hosts: TargetHost[];
  route: DeliveryRoute | null;
  lane: Lane;
  /** The mailbox provider behind the hosts (`providerOfHosts`); null: over a fixed route. */
  provider: string | null;
  /** Whose refusals of a source address count together; absent: those of the provider. */
  receiver?: string | undefined;
  /** What the destination has published about TLS; absent with a configured route. */
  tls?: DestinationTls;
  /** When it was read from the queue (monotonic). */
  readAt: number;
  /** It has a lease: since it was accepted, or ahead of its turn. */
  isLeased?: boolean;
  /** The content of a new message, if it is small (new-messages.ts). Absent: it is read when the job is built. */
  content?: JobContent | undefined;
}

/** The mail of a site in memory: messages that were read from the queue, and messages that were leased ahead. */
export interface Backlog {
  add(assignment: Assignment): void;
  /** Adds a message that was leased ahead, and marks it as leased; it is sent before those of `add`. */
  addLeased(assignment: Assignment): void;
  /** Messages of a priority from `add`. */
  size(priority: QueuePriority): number;
  /** Whether the account has messages of a priority from `add`. */
  has(priority: QueuePriority, accountId: string): boolean;
  /** Messages from `addLeased`. */
  leased(): number;
  /** Whether no message waits, down to the priority `lowest`. */
  isEmpty(lowest: QueuePriority): boolean;
  /**
   * Removes and returns the next message that `admits` accepts, transactional and leased ones first, down to the
   * priority `lowest`. Accounts take turns: one message of an account does not wait for those that another account had before.
   */
  take(admits: Admits, lowest: QueuePriority): { assignment: Assignment; leased: boolean } | null;
  /** Removes and returns the next message from `add`. */
  takeAdded(admits: Admits): Assignment | null;
  /** Removes the messages that `isOutdated` accepts. */
  drop(isOutdated: (assignment: Assignment) => boolean): { unleased: ReadyMessage[]; leased: ReadyMessage[] };
}

type Admits = (assignment: Assignment) => boolean;

/**
 * Empty at first and without a bound: the site limits what is added (`Site.capacity`). Messages are in memory only; the
 * queue in the database has all of them.
 */
export function createBacklog(): Backlog {
  /** Messages by priority: those of `add`, and those of `addLeased`. */
  const added = [createTurns(), createTurns()] as const;
  const ahead = [createTurns(), createTurns()] as const;
  const transactional = [ahead[TRANSACTIONAL_PRIORITY], added[TRANSACTIONAL_PRIORITY]];
  /** Down to each priority, in the order in which slots take from them. */
  const downTo = [
    transactional,
    [...transactional, ahead[MARKETING_PRIORITY], added[MARKETING_PRIORITY]],
  ] as const;

  return {
    add: (assignment) => added[assignment.message.priority].add(assignment),
    addLeased: (assignment) => {
      assignment.isLeased = true;
      ahead[assignment.message.priority].add(assignment);
    },
    size: (priority) => added[priority].size(),
    has: (priority, accountId) => added[priority].has(accountId),
    leased: () => ahead[TRANSACTIONAL_PRIORITY].size() + ahead[MARKETING_PRIORITY].size(),
    isEmpty: (lowest) => downTo[lowest].every((list) => list.size() === 0),
    take: (admits, lowest) => {
      for (const list of downTo[lowest]) {
        const assignment = list.take(admits);
        if (assignment !== null) return { assignment, leased: assignment.isLeased === true };
      }
      return null;
    },
    takeAdded: (admits) =>
      added[TRANSACTIONAL_PRIORITY].take(admits) ?? added[MARKETING_PRIORITY].take(admits),
    drop: (isOutdated) => {
      const dropped = [...added, ...ahead].flatMap((list) => list.drop(isOutdated));
      const those = (leased: boolean) =>
        dropped.filter(({ isLeased = false }) => isLeased === leased).map(({ message }) => message);
      return { unleased: those(false), leased: those(true) };
    },
  };
}

/** Messages whose accounts take turns. */
interface Turns {
  add(assignment: Assignment): void;
  size(): number;
  has(accountId: string): boolean;
  /** Removes and returns the next message that `admits` accepts. */
  take(admits: Admits): Assignment | null;
  /** Removes and returns the messages that `isOutdated` accepts. */
  drop(isOutdated: (assignment: Assignment) => boolean): Assignment[];
}

function createTurns(): Turns {
  /** The messages of each account in the order in which they were read; the account whose turn it is comes first. */
  const accounts = new Map<string, Assignment[]>();
  let size = 0;

  return {
    add: (assignment) => {
      const { account_id: accountId } = assignment.message;
      const list = accounts.get(accountId);
      if (list === undefined) accounts.set(accountId, [assignment]);
      else list.push(assignment);
      size++;
    },
    size: () => size,
    has: (accountId) => accounts.has(accountId),
    take: (admits) => {
      for (const [accountId, list] of accounts) {
        const assignment = takeFirst(list, admits);
        if (assignment === null) continue;
        size--;
        accounts.delete(accountId);
        if (list.length > 0) accounts.set(accountId, list);
        return assignment;
      }
      return null;
    },
    drop: (isOutdated) => {
      const dropped: Assignment[] = [];
      for (const [accountId, list] of accounts) {
        const kept = list.filter((assignment) => !isOutdated(assignment));
        if (kept.length === list.length) continue;
        for (const assignment of list) if (isOutdated(assignment)) dropped.push(assignment);
        if (kept.length > 0) accounts.set(accountId, kept);
        else accounts.delete(accountId);
      }
      size -= dropped.length;
      return dropped;
    },
  };
}

/**
 * Removes and returns the first message of an account that `admits` accepts. After a refusal only smaller messages are
 * tried, and none if the size of the refused one is not the reason.
 */
function takeFirst(list: Assignment[], admits: Admits): Assignment | null {
  let refused = Number.POSITIVE_INFINITY;
  for (const [index, assignment] of list.entries()) {
    const { content_bytes } = assignment.message;
    if (content_bytes >= refused) continue;
    if (admits(assignment)) return list.splice(index, 1)[0] ?? null;
    if (content_bytes <= UNCOUNTED_BYTES) return null;
    refused = content_bytes;
  }
  return null;
}
