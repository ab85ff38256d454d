import { type Database, preparedByText } from '../database/database.ts';
import { statements } from '../database/statements.ts';
import { type BoundId, idNumbers, type StoredId } from '../rows/id-numbers.ts';
import { STATUS_CODES, type StoredKey } from '../rows/row-keys.ts';
import { MESSAGE_COLUMNS, messageIdOf, messageRows } from './message-rows.ts';
import {
  HELD_BY_RESTORE,
  HOLD_REASON_SQL,
  type HoldReason,
  QUEUED_COLUMNS,
  type QueuedMessage,
  type StoredQueued,
  TRANSACTIONAL_PRIORITY,
} from './queue.ts';

/* Queued messages by any combination of filters, for the commands of the operator. */

/** Selects queued messages: those that meet all conditions which are set. */
export interface QueueFilter {
  accountId?: string;
  destination?: string;
  domainId?: string;
  campaignId?: string;
}

interface StoredQueueFilter {
  account?: BoundId;
  destination?: string;
  domain?: BoundId;
  campaign?: BoundId;
}

/** A message in the queue and whether it is held; a message of a paused campaign counts as held before it is due. */
export type ListedInQueue = QueuedMessage & { ready: 0 | 1; paused: 0 | 1; hold_reason: HoldReason | null };

/** Numbers of queued messages that match a filter, by state. */
export interface QueueCounts {
  messages: number;
  sending: number;
  /** Deferred, neither held nor being sent. */
  deferred: number;
  /** Held: with their campaigns, accounts or domains. */
  paused: number;
}

/** Numbers of queued messages to one destination. */
export interface QueueSummary extends QueueNumbers {
  destination: string;
}

/** Numbers of queued messages of one account. */
export interface AccountQueueSummary extends QueueNumbers {
  account_id: string;
}

interface QueueNumbers {
  messages: number;
  sending: number;
  deferred: number;
  /** Not yet due and never attempted. */
  scheduled: number;
  /** Held: with their campaigns, accounts or domains. */
  paused: number;
  transactional: number;
  /** Null when all are paused. */
  oldest_due: number | null;
}

interface ListedSeq {
  seq: number;
  message_id: string;
}

/**
 * Reads of `queue` for the operator. Most examine every queued message, so that the daemon runs them in reader threads.
 */
export function queueList(db: Database) {
  const sql = statements(db);
  const { account, domain, campaign } = idNumbers(db);
  const { toRow } = messageRows(db);
  // Held, or of a paused campaign, in which case the message is held when a delivery takes it.
  const PAUSED = `(q.due_at >= ${HELD_BY_RESTORE} OR q.held = 1
    OR (q.campaign_seq IS NOT NULL AND q.campaign_seq IN (SELECT seq FROM campaigns WHERE status = 'paused')))`;
  const IS_QUEUED = `(SELECT m.status_code FROM messages m WHERE m.seq = q.seq) = ${STATUS_CODES.sql('queued')}`;
  const IS_DEFERRED = `m.status_code = ${STATUS_CODES.sql('deferred')}`;
  const NUMBERS = `count(*) AS messages, sum(lease IS NOT NULL) AS sending,
      sum(ready = 0 AND NOT ${PAUSED} AND NOT ${IS_QUEUED}) AS deferred,
      sum(ready = 0 AND NOT ${PAUSED} AND ${IS_QUEUED}) AS scheduled,
      sum(${PAUSED}) AS paused, sum(lane = ${TRANSACTIONAL_PRIORITY}) AS transactional,
      min(CASE WHEN ${PAUSED} THEN NULL ELSE due_at END) AS oldest_due
    FROM queue q`;
  const byAccount = sql.all<[], QueueNumbers & { account: StoredId }>(`
    SELECT account, ${NUMBERS} GROUP BY account ORDER BY messages DESC, account LIMIT 200`);
  // By domain first, which only reads the smallest index; a domain belongs to one account.
  const largestAccounts = sql.all<[number, number], { account: StoredId }>(`
    SELECT (SELECT q.account FROM queue q WHERE q.domain = d.domain LIMIT 1) AS account, sum(d.messages) AS messages
    FROM (SELECT domain, count(*) AS messages FROM queue GROUP BY domain) d
    GROUP BY 1 HAVING sum(d.messages) >= ? ORDER BY 2 DESC LIMIT +?`);
  const ofAccount = sql.all<[BoundId], QueueNumbers & { account: StoredId }>(`
    SELECT account, ${NUMBERS} WHERE q.account = ? GROUP BY account`);

  type StoredInQueue = [...StoredQueued, ready: 0 | 1, paused: 0 | 1, holdReason: HoldReason | null];
  // CROSS JOIN: reads the queue, not all messages of a campaign.
  const SELECT = `
    SELECT ${MESSAGE_COLUMNS}, ${QUEUED_COLUMNS}, q.ready, ${PAUSED}, ${HOLD_REASON_SQL}
    FROM queue q CROSS JOIN messages m USING (seq)`;
  const listed = preparedByText<StoredQueueFilter & { limit: number }, StoredInQueue>(db);
  const oneListed = db.prepare<[number], StoredInQueue>(`${SELECT} WHERE q.seq = ?`).raw();
  const counted = preparedByText<StoredQueueFilter, QueueCounts>(db);
  const paged = preparedByText<
    StoredQueueFilter & { afterSeq: number; limit: number },
    { seq: number; message_key: StoredKey }
  >(db);
  /** The values that the conditions compare with columns. */
  const stored = ({ accountId, domainId, campaignId, destination }: QueueFilter): StoredQueueFilter => ({
    ...(destination === undefined ? {} : { destination }),
    ...(accountId === undefined ? {} : { account: account.find(accountId) }),
    ...(domainId === undefined ? {} : { domain: domain.find(domainId) }),
    ...(campaignId === undefined ? {} : { campaign: campaign.find(campaignId) }),
  });
  const toListed = (row: StoredInQueue): ListedInQueue => ({
    ...toRow(row),
    destination: row[26],
    priority: row[27],
    lease: row[28],
    due_at: row[29],
    secondary: row[30],
    reroute: row[31],
    scheduled_at: row[32],
    ready: row[33],
    paused: row[34],
    hold_reason: row[35],
  });
  const conditions = (filter: QueueFilter): string => {
    const where = ['1 = 1'];
    if (filter.accountId !== undefined) where.push('q.account = @account');
    if (filter.destination !== undefined) where.push('q.destination = @destination');
    if (filter.domainId !== undefined) where.push('q.domain = @domain');
    if (filter.campaignId !== undefined) where.push('m.campaign = @campaign');
    return where.join(' AND ');
  };
  return {
    /** The 200 destinations with the most messages. */
    byDestination: sql.all<[], QueueSummary>(`
      SELECT destination, ${NUMBERS} GROUP BY destination ORDER BY messages DESC, destination LIMIT 200`),
    /** The 200 accounts with the most messages, or one account if it has any. */
    byAccount: (accountId?: string): AccountQueueSummary[] =>
      (accountId === undefined ? byAccount() : ofAccount(account.find(accountId))).map(
        ({ account: stored, ...numbers }) => ({ account_id: account.id(stored), ...numbers }),
      ),
    /** The ids of up to `limit` accounts that have at least `messages` messages in the queue, largest first. */
    largestAccounts: (messages: number, limit: number): string[] =>
      largestAccounts(messages, limit).map(({ account: stored }) => account.id(stored)),
    /** Messages in the queue by due time, held ones last. */
    list: (filter: QueueFilter, limit: number): ListedInQueue[] =>
      listed(`${SELECT} WHERE ${conditions(filter)} ORDER BY q.due_at, q.seq LIMIT +@limit`)
        .raw()
        .all({ ...stored(filter), limit })
        .map(toListed),
    /** Null when the message is not in the queue. */
    listed: (seq: number): ListedInQueue | null => {
      const found = oneListed.get(seq);
      return found === undefined ? null : toListed(found);
    },
    counts: (filter: QueueFilter): QueueCounts =>
      counted(`
        SELECT count(*) AS messages, coalesce(sum(q.lease IS NOT NULL), 0) AS sending,
          coalesce(sum(q.lease IS NULL AND ${IS_DEFERRED} AND NOT ${PAUSED}), 0) AS deferred,
          coalesce(sum(q.lease IS NULL AND ${PAUSED}), 0) AS paused
        FROM queue q CROSS JOIN messages m USING (seq) WHERE ${conditions(filter)}`).get(stored(filter)) ?? {
        messages: 0,
        sending: 0,
        deferred: 0,
        paused: 0,
      },
    /** Messages without a lease, beginning after `afterSeq`; with `deferred`, only deferred ones that are not held. */
    waiting: (
      filter: QueueFilter,
      { deferred, afterSeq, limit }: { deferred: boolean; afterSeq: number; limit: number },
    ): ListedSeq[] => {
      const retryable = deferred ? `AND ${IS_DEFERRED} AND NOT ${PAUSED}` : '';
      return paged(`
        SELECT q.seq, m.message_key FROM queue q CROSS JOIN messages m USING (seq)
        WHERE ${conditions(filter)} AND q.lease IS NULL ${retryable} AND q.seq > @afterSeq
        ORDER BY q.seq LIMIT +@limit`)
        .all({ ...stored(filter), afterSeq, limit })
        .map(({ seq, message_key }) => ({ seq, message_id: messageIdOf(message_key) }));
    },
  };
}
