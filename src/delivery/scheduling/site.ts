import type { QueueKey, QueuePriority, ReadyMessage } from '../../store/messages/queue.ts';
import type { Restriction, SiteLimits, SiteMemory } from '../shaping/limiter.ts';
import type { TlsMode } from '../worker/protocol.ts';
import type { Assignment } from './backlog.ts';

export type { Assignment };

/**
 * A site: the set of MX hosts behind a destination, or all destinations of a shaping profile, times an egress pool.
 * Limits of connections and rate belong to the site, because a thousand domains may share one mailbox provider. A site has
 * one slot for each connection that it may have; a message holds a slot while it is sent, and a worker has at most one
 * connection for each slot.
 *
 * A site whose hosts cannot be reached is suspended (suspension.ts). A site that asks to send less gets no mail for a time,
 * and then fewer connections and a lower rate until it accepts mail again (shaping/limiter.ts); when the request concerns
 * one sender, only its account is limited.
 *
 * The site owns its state; other modules change it only through these functions.
 */
export interface Site {
  readonly key: string;
  /** Unique in this process; together with a slot it selects the worker. */
  readonly number: number;
  readonly pool: string;
  /** Whether destinations share it because of the names of their MX hosts, which their owners choose. */
  readonly isShared: boolean;
  /** Limits of the site; `configure` replaces them. */
  profile(): SiteProfile;
  /** Changes the limits. Sessions above a lower number of connections end by themselves. */
  configure(profile: SiteProfile): void;

  /** How many messages of a priority may wait in memory for a slot. */
  lookahead(): number;
  /**
   * How many more messages of a priority the site accepts now of the account, or of any account; 0 while it is halted. An
   * account that has none in memory may add one although others have used the lookahead up, until twice the lookahead
   * waits.
   */
  capacity(priority: QueuePriority, accountId?: string): number;
  backlogSize(priority: QueuePriority): number;
  /** Adds a message that was read from the queue to the backlog. */
  add(assignment: Assignment): void;

  /** Stores a key that has more messages in the queue than the site had capacity for. */
  addWaitingKey(key: QueueKey): void;
  waitingCount(): number;
  /** A copy. */
  waitingKeys(): QueueKey[];
  /**
   * Removes and returns the waiting keys of a priority that may be read now: only as many as can get a share of the
   * capacity each. Accounts take turns; those without a message in memory need not wait for the others.
   */
  takeReadable(priority: QueuePriority): QueueKey[];
  /** Removes all waiting keys: the scan of the queue finds them again. */
  clearWaitingKeys(): void;

  /**
   * Reserves a slot for the first message that `admits` accepts, transactional before marketing, which leaves a tenth of
   * the connections free. `full`: the site has no slot now for what waits, or its rate allows no message; `none`: no
   * message waits; `refused`: `admits` or the limits of their accounts accepted none of those that wait.
   */
  reserve(admits: (assignment: Assignment) => boolean): ReservedMessage | 'full' | 'none' | 'refused';
  /** Whether a message of this priority could take a slot. */
  hasFreeSlot(priority: QueuePriority): boolean;
  /** Frees the slot. Call exactly once for each reservation. */
  release(reservation: SlotReservation): void;

  /**
   * The next message to lease before a slot is free for it, so that the slot need not wait for a commit; null: none.
   * Only healthy and fast sites lease ahead, one message for each connection: at others, mail would be shown as being
   * sent while it waits. Followed by `addLeased` or `leaseEnded`. It may be leased already (`Assignment.isLeased`).
   */
  nextToLease(admits: (assignment: Assignment) => boolean): Assignment | null;
  /**
   * Reserves a place for a message that is being stored, if no key waits for the site. `lease`: it can be sent immediately, or
   * leased ahead; `addLeased` or `leaseEnded` follows. `backlog`: it waits behind others; `addNew` or `newEnded` follows.
   * `leased-backlog`: the same for transactional mail of a fast site, which is leased now, because it will be sent within about
   * a second and then needs no separate commit. Null: there is no place.
   */
  reserveNew(assignment: Assignment, admits: (assignment: Assignment) => boolean): NewPlace | null;
  addNew(assignment: Assignment): void;
  /** The new message was not stored. */
  newEnded(): void;
  addLeased(assignment: Assignment): void;
  /** The message was not leased, or is not sent. */
  leaseEnded(): void;

  /**
   * Removes the messages in memory. Their keys wait again. The caller releases the claims on `unleased` and returns
   * `leased` to the queue.
   */
  drop(): DroppedMessages;
  /** Like `drop`, but removes only messages that were read so long ago that other keys get a turn. */
  dropOutdated(): DroppedMessages;

  /** A session ended with a reply that decides about the message; `accepted`: with 2xx. */
  answered(reservation: SlotReservation, accepted: boolean): void;
  /** No host of the site could be reached. Returns for how many ms the site is suspended because of it; 0: it is not. */
  unreachable(reservation: SlotReservation): number;
  /** The site asked to send less, see `Limiter.throttled`. Returns for how many ms it gets no mail; 0: counted already. */
  throttled(reservation: SlotReservation, waitMs: number | null, resumesWithOne?: boolean): number;
  /** Limits the site immediately, see `Limiter.restrict`. Returns the epoch in which sessions begin from now on. */
  restrict(restriction: Restriction): number;
  /**
   * The site asked the sender to send less: limits only the account of the message. Returns what `throttled` returns.
   */
  senderThrottled(reservation: SlotReservation, waitMs: number | null): number;

  /** Whether the site replied in its last session; false before the first one. */
  hasAnswered(): boolean;
  isSuspended(): boolean;
  /** Whether the operator has paused the site or its egress pool. */
  isPaused(): boolean;
  /** Connections in use, and at most now. */
  connections(): { used: number; allowed: number };
  /** Milliseconds until a suspended site is probed; 0: it is not suspended. */
  suspendedMs(): number;
  /** Lets one connection probe the site now, if it is suspended. */
  probeNow(): void;
  /** Milliseconds until the site gets mail again, because it asked to send less; 0: it gets mail. Only the operator pauses it. */
  limitedMs(): number;
  /** Whether no message is sent to the site: it is suspended, asked to send less, or is paused by the operator. */
  isHalted(): boolean;
  /** Milliseconds until the rate allows the next message; 0: now. */
  rateWaitMs(): number;
  /** Milliseconds until the site takes mail of the account again; 0: now. */
  accountLimitedMs(accountId: string): number;
  /** The limits in force. */
  limits(): SiteLimits;

  /** The wait after which the site accepted greylisted mail, ms; null: not known. */
  greylistMs(): number | null;
  learnGreylisting(ms: number | null): void;
  /** What survives a restart; the parts are the same objects while they do not change. */
  memory(): SiteMemory;

  /** Marks the site as used, so that it is not removed. */
  touch(): void;
  /** Whether the site has been unused for so long that its state is obsolete. */
  isObsolete(): boolean;
  /** Whether the site has no mail in memory and was not used for `ms`. */
  isUnused(ms: number): boolean;
}

export type NewPlace = 'lease' | 'leased-backlog' | 'backlog';

export interface DroppedMessages {
  unleased: ReadyMessage[];
  leased: ReadyMessage[];
}

/** A slot that a message holds while it is sent. The numbers are those of the site when the session began. */
export interface SlotReservation {
  readonly site: Site;
  readonly slot: number;
  readonly accountId: string;
  /** Suspensions of the site. */
  readonly suspensionEpoch: number;
  /** Steps of the limits of the site, and of the account at the site. */
  readonly limitEpoch: number;
  readonly accountEpoch: number;
}

export interface ReservedMessage {
  reservation: SlotReservation;
  assignment: Assignment;
  /** The message was leased before. */
  leased: boolean;
}

export interface SiteProfile {
  connections: number;
  messagesPerConnection: number;
  /** Messages per second; 0: no limit. */
  perSecond: number;
  idleMs: number;
  tls: TlsMode;
  chunking: boolean;
  /** The pause after a temporary refusal because of our address, ms; 0: as after other ones. */
  addressPauseMs: number;
}
