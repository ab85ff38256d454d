import type { DataPolicy } from '../data-policy.ts';
import type { Database } from '../database/database.ts';
import { statements } from '../database/statements.ts';
import { STREAM_PAUSED_SQL } from '../domains/domains.ts';
import { type BoundId, idNumbers, type StoredId } from '../rows/id-numbers.ts';
import {
  MESSAGE_COLUMNS,
  type MessageRow,
  messageRows,
  type NewMessage,
  type StoredMessage,
} from './message-rows.ts';

/**
 * The durable queue. A row is `ready` when it is due and not held; deferred rows wait for their due time and are made ready
 * by `promote`. Leases contain the daemon's generation, so that leases of a daemon that was killed can be recognized.
 */
export interface QueueRow {
  seq: number;
  priority: QueuePriority;
  account_id: string;
  domain_id: string;
  destination: string;
  due_at: number;
  ready: 0 | 1;
  lease: number | null;
  /** The campaign that was sent to a group; null: none. */
  campaign_seq: number | null;
  /** The time that the sender chose for the first attempt, epoch ms; null: none. */
  scheduled_at: number | null;
}

/**
 * The due time of messages that are held until they are released: the last millisecond of the year 9999, which all
 * programs can parse as a time.
 */
export const HELD = 253_402_300_799_999;
/**
 * The due time of messages that a restore holds: the original may have sent them after the backup. Another time than
 * `HELD`, so that resuming a campaign does not release them.
 */
export const HELD_BY_RESTORE = HELD - 1;

/** Why a message is held. `being_released`: the reason has ended, and the daemon makes the message due within seconds. */
export const HOLD_REASONS = [
  'campaign_paused',
  'account_disabled',
  'domain_failed',
  'sending_paused',
  'restored',
  'being_released',
] as const;
export type HoldReason = (typeof HOLD_REASONS)[number];

/**
 * SQL for the hold reason of a queue row `q`; null: it is not held. Messages of a disabled account, a failed domain or a stopped stream are
 * marked in the column `held` and are due at their expiry; messages of a paused campaign do not expire while it is paused.
 */
export const HOLD_REASON_SQL = `CASE WHEN q.due_at = ${HELD} THEN 'campaign_paused'
  WHEN q.due_at = ${HELD_BY_RESTORE} THEN 'restored' WHEN q.held = 1 THEN coalesce((
    SELECT CASE WHEN a.status = 'disabled' AND a.moved_at IS NULL THEN 'account_disabled' WHEN d.status = 'FAILED' THEN 'domain_failed'
      WHEN ${STREAM_PAUSED_SQL} THEN 'sending_paused' END
    FROM domain_numbers n JOIN domains d ON d.domain_id = n.id JOIN accounts a ON a.account_id = d.account_id
    WHERE n.number = q.domain), 'being_released') END`;

/** 0: transactional mail, which is sent first; 1: marketing mail. The column `lane` of the queue. */
export type QueuePriority = 0 | 1;
export const TRANSACTIONAL_PRIORITY = 0;
export const MARKETING_PRIORITY = 1;

/** One account's mail to one destination at one priority: the unit of fairness. */
export interface QueueKey {
  priority: QueuePriority;
  account_id: string;
  destination: string;
}

/** A row of the queue with the columns that are set after its insertion. */
export type StoredInQueueRow = QueueRow & { held: 0 | 1; secondary: 0 | 1; reroute: number | null };

/** The key as text, for maps. */
export function queueKeyText({ priority, account_id, destination }: QueueKey): string {
  return `${priority} ${account_id} ${destination}`;
}

export type QueuedMessage = MessageRow & {
  destination: string;
  priority: QueuePriority;
  lease: number | null;
  due_at: number;
  /** 1: sent over the secondary lane. */
  secondary: 0 | 1;
  /** A row of `queue_reroutes`; null: sent to the hosts of its destination. */
  reroute: number | null;
  /** See `QueueRow`. */
  scheduled_at: number | null;
};

/** Whether the sender chose the time at which a message is due. One that was put off or deferred afterwards has another. */
export function isScheduled({ due_at, scheduled_at }: Pick<QueueRow, 'due_at' | 'scheduled_at'>): boolean {
  return due_at === scheduled_at;
}

/** SQL: whether a queue row `q` waits for the time that its sender chose. */
export const IS_SCHEDULED_SQL = 'q.ready = 0 AND q.scheduled_at IS q.due_at';

/** What decides the path of a queued message together with its domain. */
type QueuedPath = Pick<QueuedMessage, 'secondary' | 'reroute'>;

const OWN_PATH: QueuedPath = { secondary: 0, reroute: null };

/** A message that is ready to be sent, with the size of its content, decoded. */
export type ReadyMessage = QueuedMessage & { content_bytes: number };

/** The lease of a message that is sent as soon as it is stored. */
export interface Lease {
  /** Of the daemon. */
  generation: number;
  /** Epoch ms. */
  at: number;
}

/** What decides whether a new message can be sent as soon as it is stored. */
export type MailToLease = QueueKey & Pick<ReadyMessage, 'domain_id' | 'use_case' | 'content_bytes'>;

/** The columns of a queue row `q` in a queued message. */
export const QUEUED_COLUMNS =
  'q.destination, q.lane, q.lease, q.due_at, q.secondary, q.reroute, q.scheduled_at';

/** A row of MESSAGE_COLUMNS and QUEUED_COLUMNS. */
export type StoredQueued = [
  ...StoredMessage,
  destination: string,
  priority: QueuePriority,
  lease: number | null,
  dueAt: number,
  secondary: 0 | 1,
  reroute: number | null,
  scheduledAt: number | null,
];

/** `message`: decoded from the same row. Adds to it in place: copying so many fields would take much longer. */
function toReady(
  message: MessageRow,
  stored: readonly [...StoredQueued, contentBytes: number],
): ReadyMessage {
  return Object.assign(message, {
    destination: stored[26],
    priority: stored[27],
    lease: stored[28],
    due_at: stored[29],
    secondary: stored[30],
    reroute: stored[31],
    scheduled_at: stored[32],
    content_bytes: stored[33],
  });
}

/** A message that was inserted just now and is due, as if it was read from the queue. Lists every field: it is faster than copying them. */
export function toNewReady(
  row: NewMessage,
  queued: Pick<QueuedMessage, 'seq' | 'destination' | 'priority' | 'due_at'>,
  contentBytes: number,
): ReadyMessage {
  return {
    seq: queued.seq,
    message_id: row.message_id,
    account_id: row.account_id,
    content_id: row.content_id,
    use_case: row.use_case,
    domain_id: row.domain_id,
    job_id: row.job_id,
    campaign_id: row.campaign_id,
    subscription_group_id: row.subscription_group_id,
    from_address: row.from_address,
    recipient: row.recipient,
    recipient_hash: row.recipient_hash,
    role: row.role,
    subject: row.subject,
    status: 'queued',
    attempts: 0,
    simulated: row.simulated,
    track_clicks: row.track_clicks,
    track_opens: row.track_opens,
    essential: row.essential,
    created_at: row.created_at,
    updated_at: row.created_at,
    expires_at: row.expires_at,
    sent_at: null,
    final_at: null,
    labels: row.labels,
    destination: queued.destination,
    priority: queued.priority,
    lease: null,
    due_at: queued.due_at,
    secondary: 0,
    reroute: null,
    scheduled_at: null,
    content_bytes: contentBytes,
  };
}

/** A row of the table: ids are numbers (id-numbers.ts). */
type StoredQueueRow<Id = StoredId> = Omit<QueueRow, 'account_id' | 'domain_id'> & { account: Id; domain: Id };
type StoredHeldRow = StoredQueueRow & Pick<StoredInQueueRow, 'held' | 'secondary' | 'reroute'>;

type StoredQueueKey = Omit<QueueKey, 'account_id'> & { account: StoredId };

/** A change of the due times of waiting messages: `ms` earlier, but not before `now`. */
export interface QueueShift {
  ms: number;
  now: number;
  /** Only messages due after this. */
  dueAfter: number;
}

/** A new time for the first attempt of a message. */
export interface QueueSchedule {
  seq: number;
  /** Epoch ms. */
  at: number;
  /** 1: the time has come. */
  ready: 0 | 1;
}

/** Due times of messages that become due now. */
export interface ReleasedTimes {
  /** Epoch ms, a JSON array. */
  times: string;
  now: number;
}

/** Ready messages of a key with their expiry. */
export interface ExpiryPage {
  /** The messages that have expired at `now`. */
  seqs(now: number): number[];
  /** The last message that was examined; null: there are no more. */
  last: number | null;
}

export const QUEUE_POLICY = {
  table: 'queue',
  personal: ['destination'],
  erasure: ['queued mail'],
  retention: { until: 'the message is final' },
} as const satisfies DataPolicy;

/** Messages among which those in the queue are searched: bounds a query of the writer. */
const MAX_NEWEST = 5000;

/**
 * `queue`. Ready messages of a key are read by the index `queue_ready`, deferred ones by `queue_due`, held ones by
 * `queue_held`. Of `messages` only `moveExpiry` changes a column; the caller sets the status.
 */
export function queueTable(db: Database) {
  const sql = statements(db);
  const { account, domain } = idNumbers(db);
  const { toRow } = messageRows(db);
  const insert = sql.run<[StoredQueueRow<BoundId>]>(`
    INSERT INTO queue (seq, lane, account, domain, destination, due_at, ready, lease, campaign_seq, scheduled_at)
    VALUES (@seq, @priority, @account, @domain, @destination, @due_at, @ready, @lease, @campaign_seq, @scheduled_at)`);
  const get = db.prepare<[number], StoredHeldRow>(`
    SELECT seq, lane AS priority, account, domain, destination, due_at, ready, lease, campaign_seq, scheduled_at,
      held, secondary, reroute
    FROM queue WHERE seq = ?`);
  const firstKey = db.prepare<[number], StoredQueueKey>(`
    SELECT lane AS priority, account, destination FROM queue WHERE lane = ? AND ready = 1 AND lease IS NULL
    ORDER BY account, destination LIMIT 1`);
  // Two statements: for `(account, destination) > (?, ?)` SQLite reads all entries that are equal to the bound.
  const nextDestination = db.prepare<[number, BoundId, string], StoredQueueKey>(`
    SELECT lane AS priority, account, destination FROM queue
    WHERE lane = ? AND ready = 1 AND lease IS NULL AND account = ? AND destination > ?
    ORDER BY destination LIMIT 1`);
  const nextAccount = db.prepare<[number, BoundId], StoredQueueKey>(`
    SELECT lane AS priority, account, destination FROM queue
    WHERE lane = ? AND ready = 1 AND lease IS NULL AND account > ?
    ORDER BY account, destination LIMIT 1`);
  const readySeqs = sql.values<[number, BoundId, string, number, number], number>(`
    SELECT seq FROM queue
    WHERE lane = ? AND account = ? AND destination = ? AND ready = 1 AND lease IS NULL AND seq > ?
    ORDER BY seq LIMIT +?`);
  const expiries = sql.all<[number, BoundId, string, number, number], { seq: number; expires_at: number }>(`
    SELECT q.seq, m.expires_at FROM queue q CROSS JOIN messages m USING (seq)
    WHERE q.lane = ? AND q.account = ? AND q.destination = ? AND q.ready = 1 AND q.lease IS NULL AND q.seq > ?
    ORDER BY q.seq LIMIT +?`);
  const ready = db
    .prepare<[number], [...StoredQueued, contentBytes: number]>(`
      SELECT ${MESSAGE_COLUMNS}, ${QUEUED_COLUMNS},
        coalesce((SELECT c.size FROM contents c WHERE c.content_id = m.content_id), 0)
      FROM queue q JOIN messages m USING (seq)
      WHERE q.seq = ? AND q.ready = 1 AND q.lease IS NULL`)
    .raw();
  const lease = sql.changed<[number, number, 0 | 1, number | null]>(
    'UPDATE queue SET lease = ? WHERE seq = ? AND ready = 1 AND lease IS NULL AND secondary = ? AND reroute IS ?',
  );
  const ahead = sql.count<[number, BoundId, string, number, number]>(`
    SELECT count(*) FROM (
      SELECT 1 FROM queue
      WHERE lane = ? AND account = ? AND destination = ? AND ready = 1 AND lease IS NULL AND seq < ? LIMIT +?)`);
  const release = sql.run<[number, number]>(
    'UPDATE queue SET lease = NULL, ready = 1, held = 0, due_at = ? WHERE seq = ?',
  );
  const defer = sql.run<[number, number]>(
    'UPDATE queue SET lease = NULL, ready = 0, held = 0, due_at = ? WHERE seq = ?',
  );
  const hold = sql.run<[number, number]>(
    'UPDATE queue SET lease = NULL, ready = 0, held = 1, due_at = ? WHERE seq = ?',
  );
  // Reads one index entry of each domain.
  const heldDomains = sql.values<[], StoredId>(`
    WITH RECURSIVE held(domain) AS (
      SELECT min(domain) FROM queue WHERE held = 1
      UNION ALL
      SELECT (SELECT min(q.domain) FROM queue q WHERE q.held = 1 AND q.domain > held.domain) FROM held
      WHERE held.domain IS NOT NULL)
    SELECT domain FROM held WHERE domain IS NOT NULL`);
  const releaseHeld = sql.all<[number, BoundId, number], StoredQueueKey>(`
    UPDATE queue SET held = 0, ready = 1, due_at = ?
    WHERE seq IN (SELECT seq FROM queue WHERE held = 1 AND domain = ? LIMIT +?)
    RETURNING lane AS priority, account, destination`);
  const moveToSecondary = sql.run<[number, number]>(
    'UPDATE queue SET lease = NULL, ready = 1, held = 0, secondary = 1, due_at = ? WHERE seq = ?',
  );
  const postpone = sql.run<[number, number, number, 0 | 1, number | null]>(
    `UPDATE queue SET ready = 0, due_at = ?
     WHERE seq = ? AND lease IS NULL AND due_at = ? AND secondary = ? AND reroute IS ?`,
  );
  const reschedule = sql.run<[QueueSchedule]>(
    'UPDATE queue SET due_at = @at, scheduled_at = @at, ready = @ready WHERE seq = @seq',
  );
  const deferred = sql.values<[QueueShift & { afterSeq: number; limit: number }], number>(`
    SELECT q.seq FROM queue q NOT INDEXED
    WHERE q.ready = 0 AND q.due_at > @dueAfter AND q.due_at < ${HELD_BY_RESTORE} AND NOT (${IS_SCHEDULED_SQL}) AND q.seq > @afterSeq
    ORDER BY q.seq LIMIT +@limit`);
  const dueEarlier = sql.run<[number, number, number]>(
    'UPDATE queue SET due_at = max(?, due_at - ?) WHERE seq = ?',
  );
  const page = sql.values<[afterSeq: number, limit: number], number>(
    'SELECT seq FROM queue WHERE seq > ? ORDER BY seq LIMIT +?',
  );
  const releaseDueAt = sql.run<[ReleasedTimes & { afterSeq: number; lastSeq: number }]>(`
    UPDATE queue AS q SET ready = 1, due_at = @now
    WHERE q.seq > @afterSeq AND q.seq <= @lastSeq AND q.ready = 0 AND q.held = 0 AND q.due_at > @now
      AND EXISTS (SELECT 1 FROM messages m WHERE m.seq = q.seq AND NOT (${IS_SCHEDULED_SQL})
        AND (q.due_at = m.expires_at OR q.due_at IN (SELECT value FROM json_each(@times))))`);
  const expiring = sql.values<[{ afterSeq: number; limit: number }], number>(`
    SELECT q.seq FROM queue q WHERE q.seq > @afterSeq AND NOT (${IS_SCHEDULED_SQL}) ORDER BY q.seq LIMIT +@limit`);
  const expireLater = sql.run<[number, number]>(
    'UPDATE messages SET expires_at = expires_at + ? WHERE seq = ?',
  );
  const promote = sql.all<[number, number], StoredQueueKey>(`
    UPDATE queue SET ready = 1, held = 0 WHERE seq IN (SELECT seq FROM queue WHERE ready = 0 AND due_at <= ? ORDER BY due_at LIMIT +?)
    RETURNING lane AS priority, account, destination`);
  const nextDue = db.prepare<[], { due_at: number | null }>(
    'SELECT min(due_at) AS due_at FROM queue WHERE ready = 0',
  );
  const count = db.prepare<[], { n: number }>('SELECT count(*) AS n FROM queue');
  const ofDomain = sql.values<[BoundId, number, number], number>(`
    SELECT q.seq FROM (
      SELECT seq FROM messages INDEXED BY messages_by_domain WHERE domain = ? ORDER BY seq DESC LIMIT +?)
    CROSS JOIN queue q USING (seq) LIMIT +?`);
  const countOfDomain = sql.count<[BoundId]>('SELECT count(*) FROM queue WHERE domain = ?');
  const toQueueKey = ({ priority, account: number, destination }: StoredQueueKey): QueueKey => ({
    priority,
    account_id: account.id(number),
    destination,
  });
  const keyBehind = (priority: QueuePriority, { account_id, destination }: QueueKey) => {
    const number = account.find(account_id);
    return nextDestination.get(priority, number, destination) ?? nextAccount.get(priority, number);
  };
  return {
    insert: ({ account_id, domain_id, ...row }: QueueRow): void =>
      insert({ account: account.assign(account_id), domain: domain.assign(domain_id), ...row }),
    remove: sql.run<[seq: number]>('DELETE FROM queue WHERE seq = ?'),
    get: (seq: number): StoredInQueueRow | null => {
      const found = get.get(seq);
      if (found === undefined) return null;
      const { account: accountNumber, domain: domainNumber, ...row } = found;
      return { ...row, account_id: account.id(accountNumber), domain_id: domain.id(domainNumber) };
    },
    /** The first key of a priority with ready mail, or the first after `after`; null: there are no more. Reads two index entries. */
    keyAfter: (priority: QueuePriority, after: QueueKey | null): QueueKey | null => {
      const found = after === null ? firstKey.get(priority) : keyBehind(priority, after);
      return found === undefined ? null : toQueueKey(found);
    },
    /** Ready messages of one key after `afterSeq`, oldest first. Reads only the index. */
    readySeqs: ({ priority, account_id, destination }: QueueKey, limit: number, afterSeq = 0): number[] =>
      readySeqs(priority, account.find(account_id), destination, afterSeq, limit),
    /** Examines at most `limit` ready messages of a key, oldest first, beginning after `afterSeq`. */
    expiries: (
      { priority, account_id, destination }: QueueKey,
      afterSeq: number,
      limit: number,
    ): ExpiryPage => {
      const rows = expiries(priority, account.find(account_id), destination, afterSeq, limit);
      return {
        seqs: (now) => rows.flatMap(({ seq, expires_at }) => (expires_at <= now ? [seq] : [])),
        last: rows.length < limit ? null : (rows.at(-1)?.seq ?? null),
      };
    },
    /** Null when it was deleted, deferred or held meanwhile. */
    ready: (seq: number): ReadyMessage | null => {
      const found = ready.get(seq);
      return found === undefined ? null : toReady(toRow(found), found);
    },
    /**
     * `path`: that of the message when it was read. Returns false when it was deleted, deferred or leased meanwhile, or has
     * another path now.
     */
    lease: (seq: number, generation: number, path: QueuedPath = OWN_PATH): boolean =>
      lease(generation, seq, path.secondary, path.reroute),
    /** Number of ready messages of the key that precede `seq`, counted up to `limit`. */
    ahead: ({ priority, account_id, destination }: QueueKey, seq: number, limit: number): number =>
      ahead(priority, account.find(account_id), destination, seq, limit),
    /** Ends the lease of a message, which is ready immediately. */
    release: (seq: number, now: number): void => release(now, seq),
    /** Ends the lease of a message, which is sent over the secondary lane from now on and is ready immediately. */
    moveToSecondary: (seq: number, now: number): void => moveToSecondary(now, seq),
    defer: (seq: number, dueAt: number): void => defer(dueAt, seq),
    /** Changes the time of a scheduled message. */
    reschedule: (schedule: QueueSchedule): void => reschedule(schedule),
    /** Holds a message until its expiry, when it becomes due, or until it is released. */
    hold: (seq: number, expiresAt: number): void => hold(expiresAt, seq),
    /** Domains with held messages, see `hold`. */
    heldDomains: (): string[] => heldDomains().map((stored) => domain.id(stored)),
    /** Makes at most `limit` held messages of a domain due now; returns the queue key of each. */
    releaseHeld: (domainId: string, now: number, limit: number): QueueKey[] =>
      releaseHeld(now, domain.find(domainId), limit).map(toQueueKey),
    /** Number of held messages, see `hold`. Reads an index entry of each. */
    countHeld: sql.count('SELECT count(*) FROM queue WHERE held = 1'),
    /**
     * Postpones a message without a lease; its state does not change. Does nothing when it was retried or got another path
     * since it was read.
     */
    postpone: (read: QueuedPath & Pick<QueuedMessage, 'seq' | 'due_at'>, dueAt: number): void =>
      postpone(dueAt, read.seq, read.due_at, read.secondary, read.reroute),
    /**
     * Makes at most `limit` messages that wait for their due time due earlier, beginning after `afterSeq`. Returns the
     * seq of the last one; null when there are no more.
     */
    makeEarlier: (shift: QueueShift, afterSeq: number, limit: number): number | null => {
      const seqs = deferred({ ...shift, afterSeq, limit });
      for (const seq of seqs) dueEarlier(shift.now, shift.ms, seq);
      return seqs.at(-1) ?? null;
    },
    /**
     * Makes those of the next `limit` messages after `afterSeq` ready that wait until one of the times or until they expire,
     * and were not scheduled for it. Returns the seq of the last one examined; null when there are no more.
     */
    releaseDueAt: (released: ReleasedTimes, afterSeq: number, limit: number): number | null => {
      const seqs = page(afterSeq, limit);
      const lastSeq = seqs.at(-1) ?? null;
      if (lastSeq !== null) releaseDueAt({ ...released, afterSeq, lastSeq });
      return lastSeq;
    },
    /**
     * Moves the expiry of at most `limit` waiting messages by `ms`, beginning after `afterSeq`, except scheduled ones. Returns the
     * seq of the last one; null when there are no more.
     */
    moveExpiry: (ms: number, afterSeq: number, limit: number): number | null => {
      const seqs = expiring({ afterSeq, limit });
      for (const seq of seqs) expireLater(ms, seq);
      return seqs.at(-1) ?? null;
    },
    /** Ends all leases: at the start, under the daemon lock, they belong to daemons that have ended. */
    freeLeases: sql.changes('UPDATE queue SET lease = NULL WHERE lease IS NOT NULL'),
    /** Makes at most `limit` due messages ready; returns the queue key of each. */
    promote: (now: number, limit: number): QueueKey[] => promote(now, limit).map(toQueueKey),
    /** When the next deferred message becomes due; null when none waits. */
    nextDue: (): number | null => nextDue.get()?.due_at ?? null,
    /**
     * The earliest due time among the ready messages without a lease; null: there is none. Examines the `limit` messages
     * that were accepted first.
     */
    oldestWaiting: sql.value<[limit: number], number>(`
      SELECT min(due_at) FROM (SELECT due_at, ready, lease FROM queue ORDER BY seq LIMIT +?)
      WHERE ready = 1 AND lease IS NULL`),
    count: (): number => count.get()?.n ?? 0,
    /** Queued messages among the newest MAX_NEWEST messages of a sending domain, at most `limit`. */
    ofDomain: (domainId: string, limit: number): number[] =>
      ofDomain(domain.find(domainId), MAX_NEWEST, limit),
    /** Number of queued messages of a sending domain. Reads the whole queue: for commands. */
    countOfDomain: (domainId: string): number => countOfDomain(domain.find(domainId)),
  };
}
