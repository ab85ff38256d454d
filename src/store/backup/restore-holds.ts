import type { Database } from '../database/database.ts';
import { statements } from '../database/statements.ts';
import { HELD, HELD_BY_RESTORE, type QueueKey, type QueuePriority } from '../messages/queue.ts';
import { type BoundId, idNumbers, type StoredId } from '../rows/id-numbers.ts';
import { STATUS_CODES } from '../rows/row-keys.ts';

/*
 * Messages and webhook deliveries that were not finished at the time of the backup are held after a restore, until the
 * operator releases or drops them: the original may have sent them afterwards. Their due time holds them
 * (`HELD_BY_RESTORE`); the state that callers see does not change.
 */

/** The held messages of an account and a domain. */
export interface HeldGroup {
  account_id: string;
  domain_id: string;
  messages: number;
  /** Epoch ms at which the oldest and the newest message were accepted. */
  oldest: number;
  newest: number;
  /** The earliest expiry of these messages, epoch ms. */
  expires: number;
}

/** Selects held messages that meet all conditions which are set. */
export interface HeldFilter {
  accountId?: string;
  domainId?: string;
  campaignId?: string;
}

export interface HeldWebhook {
  webhook: number;
  webhook_id: string | null;
  account_id: string | null;
  url: string | null;
  deliveries: number;
  oldest: number;
}

/** A step over many rows. `next`: the last message of the step; null: there are no more. */
export interface HoldStep {
  changed: number;
  next: number | null;
}

interface StoredHeldFilter {
  account: BoundId | null;
  domain: BoundId | null;
  campaign: BoundId | null;
}

/** Added to the last row number of a table at a restore: more rows than the original can have added since. */
const NUMBER_GAP = 10_000_000_000;
const DROPPED = 'dropped by the operator after a restore';

/**
 * Rows of `queue` and `webhook_deliveries` with the due time HELD_BY_RESTORE, read by the indexes `queue_due` and
 * `webhook_deliveries_due`. Holding, pausing and `skipNumbers` are for a restore, before a daemon starts.
 */
export function restoreHoldTable(db: Database) {
  const sql = statements(db);
  const { account, domain, campaign } = idNumbers(db);
  const queueEnd = sql.value<[number, number], number>(
    'SELECT max(seq) FROM (SELECT seq FROM queue WHERE seq > ? ORDER BY seq LIMIT +?)',
  );
  const resetStatus = sql.run<[number, number]>(`
    UPDATE messages SET status_code = CASE attempts WHEN 0 THEN ${STATUS_CODES.sql('queued')} ELSE ${STATUS_CODES.sql('deferred')} END
    WHERE status_code = ${STATUS_CODES.sql('sending')} AND seq IN (SELECT seq FROM queue WHERE seq > ? AND seq <= ?)`);
  // A restore that was interrupted holds again what it has held already. Messages with `held = 1` (of a disabled account or a failed
  // domain) have their expiry as due time, and were due before. Released, they are held again if the reason still applies.
  const hold = sql.changes<[number, number]>(`
    UPDATE queue SET
      due_before_hold = CASE WHEN due_at = ${HELD_BY_RESTORE} THEN due_before_hold WHEN held = 0 THEN due_at END,
      due_at = ${HELD_BY_RESTORE}, ready = 0, held = 0, lease = NULL
    WHERE seq > ? AND seq <= ?`);
  const holdReady = sql.changes<[number]>(`
    UPDATE webhook_deliveries SET state = 'waiting', due_at = ${HELD_BY_RESTORE} WHERE (webhook, event_seq) IN (
      SELECT webhook, event_seq FROM webhook_deliveries INDEXED BY webhook_deliveries_open
      WHERE state <> 'succeeded' AND state = 'ready' LIMIT +?)`);
  const holdWaiting = sql.changes<[number]>(`
    UPDATE webhook_deliveries SET due_at = ${HELD_BY_RESTORE} WHERE (webhook, event_seq) IN (
      SELECT webhook, event_seq FROM webhook_deliveries
      WHERE state = 'waiting' AND due_at < ${HELD_BY_RESTORE} LIMIT +?)`);
  const pauseCampaigns = sql.changes<[number]>(`
    UPDATE campaigns SET status = 'paused', updated_at = ? WHERE status IN ('scheduled', 'sending')
      AND seq IN (SELECT campaign_seq FROM campaign_sends WHERE open = 1)`);
  const explainPause = sql.run<[string]>(`
    UPDATE campaign_sends SET paused_reason = ? WHERE open = 1
      AND campaign_seq IN (SELECT seq FROM campaigns WHERE status IN ('scheduled', 'sending'))`);
  const pauseSequences = sql.run<[string, number]>(`
    UPDATE sequences SET status = 'paused', paused_reason = ?, updated_at = ? WHERE status = 'active'`);
  // A table without rows has no number yet.
  const beginNumbers = sql.run<[{ table: string }]>(`
    INSERT INTO sqlite_sequence (name, seq) SELECT @table, 0
    WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = @table)`);
  const skipNumbers = sql.run(
    `UPDATE sqlite_sequence SET seq = seq + ${NUMBER_GAP} WHERE name IN ('messages', 'events')`,
  );

  const IS_HELD = `q.ready = 0 AND q.due_at = ${HELD_BY_RESTORE}`;
  const MATCHES = `(@account IS NULL OR q.account = @account) AND (@domain IS NULL OR q.domain = @domain)
    AND (@campaign IS NULL OR m.campaign = @campaign)`;
  const HELD_MESSAGES = 'queue q INDEXED BY queue_due CROSS JOIN messages m USING (seq)';
  const groups = sql.all<
    [],
    Omit<HeldGroup, 'account_id' | 'domain_id'> & { account: StoredId; domain: StoredId }
  >(`
    SELECT q.account, q.domain, count(*) AS messages, min(m.created_at) AS oldest, max(m.created_at) AS newest,
      min(m.expires_at) AS expires
    FROM ${HELD_MESSAGES} WHERE ${IS_HELD} GROUP BY q.account, q.domain ORDER BY messages DESC`);
  const countMatching = sql.count<[StoredHeldFilter]>(
    `SELECT count(*) FROM ${HELD_MESSAGES} WHERE ${IS_HELD} AND ${MATCHES}`,
  );
  const matching = sql.values<[StoredHeldFilter & { afterSeq: number; limit: number }], number>(`
    SELECT q.seq FROM ${HELD_MESSAGES} WHERE ${IS_HELD} AND q.seq > @afterSeq AND ${MATCHES}
    ORDER BY q.seq LIMIT +@limit`);
  const expired = sql.values<[number, number, number], number>(`
    SELECT h.seq FROM (
      SELECT q.seq FROM queue q INDEXED BY queue_due WHERE ${IS_HELD} AND q.seq > ? ORDER BY q.seq LIMIT +?) h
    CROSS JOIN messages m USING (seq) WHERE m.expires_at <= ?`);
  const heldEnd = sql.value<[number, number], number>(`
    SELECT max(seq) FROM (
      SELECT q.seq FROM queue q INDEXED BY queue_due WHERE ${IS_HELD} AND q.seq > ? ORDER BY q.seq LIMIT +?)`);
  // A message of a campaign that its sender had paused is due when the campaign is resumed.
  const DUE_AGAIN = `CASE WHEN due_before_hold = ${HELD}
      AND NOT EXISTS (SELECT 1 FROM campaigns c WHERE c.seq = queue.campaign_seq AND c.status = 'paused') THEN @now
    ELSE max(@now, coalesce(due_before_hold, 0)) END`;
  const release = db.prepare<
    { now: number; seq: number },
    { priority: QueuePriority; account: StoredId; destination: string }
  >(`
    UPDATE queue SET due_at = ${DUE_AGAIN}, ready = ${DUE_AGAIN} = @now, due_before_hold = NULL
    WHERE seq = @seq AND ready = 0 AND due_at = ${HELD_BY_RESTORE}
    RETURNING lane AS priority, account, destination`);

  const IS_HELD_DELIVERY = `d.state = 'waiting' AND d.due_at = ${HELD_BY_RESTORE}`;
  const HELD_DELIVERIES = 'webhook_deliveries d INDEXED BY webhook_deliveries_due';
  const deliveriesOf = (account: boolean) => `
    (webhook, event_seq) IN (SELECT d.webhook, d.event_seq FROM ${HELD_DELIVERIES}
      WHERE ${IS_HELD_DELIVERY}${account ? ' AND d.webhook IN (SELECT number FROM webhooks WHERE account_id = @accountId)' : ''}
      LIMIT +@limit)`;
  type DeliveryStep = { accountId?: string; limit: number; now: number };
  const releaseDeliveries = [false, true].map((ofAccount) =>
    db.prepare<DeliveryStep>(
      `UPDATE webhook_deliveries SET state = 'ready', due_at = @now WHERE ${deliveriesOf(ofAccount)}`,
    ),
  );
  const dropDeliveries = [false, true].map((ofAccount) =>
    db.prepare<DeliveryStep>(
      `UPDATE webhook_deliveries SET state = 'failed', due_at = @now, error = '${DROPPED}' WHERE ${deliveriesOf(ofAccount)}`,
    ),
  );
  const stored = ({ accountId, domainId, campaignId }: HeldFilter): StoredHeldFilter => ({
    account: accountId === undefined ? null : account.find(accountId),
    domain: domainId === undefined ? null : domain.find(domainId),
    campaign: campaignId === undefined ? null : campaign.find(campaignId),
  });
  const changeDeliveries =
    ([ofAll, ofOne]: typeof releaseDeliveries) =>
    (accountId: string | null, limit: number, now: number): number =>
      (accountId === null ? ofAll?.run({ limit, now }) : ofOne?.run({ accountId, limit, now }))?.changes ?? 0;

  return {
    /** Holds the messages of the queue after this one, at most `limit`, and ends their leases. */
    holdMessages: (after: number, limit: number): HoldStep => {
      const end = queueEnd(after, limit);
      if (end === null) return { changed: 0, next: null };
      resetStatus(after, end);
      return { changed: hold(after, end), next: end };
    },
    /** Holds deliveries that are not finished; returns how many, at most `2 * limit`. */
    holdDeliveries: (limit: number): number => holdReady(limit) + holdWaiting(limit),
    /** Pauses the campaigns that are being sent or scheduled; returns how many. */
    pauseCampaigns: (reason: string, now: number): number => {
      explainPause(reason);
      return pauseCampaigns(now);
    },
    /** Pauses the sequences that are active. */
    pauseSequences: (reason: string, now: number): void => pauseSequences(reason, now),
    /**
     * Leaves a gap in the numbers of messages and events, so that no new one has the number that the original has given to
     * another one since the backup: readers of the event feed remember numbers.
     */
    skipNumbers: (): void => {
      for (const table of ['messages', 'events']) beginNumbers({ table });
      skipNumbers();
    },
    /** Held messages by account and sending domain, the largest group first. */
    groups: (): HeldGroup[] =>
      groups().map(({ account: accountNumber, domain: domainNumber, ...group }) => ({
        account_id: account.id(accountNumber),
        domain_id: domain.id(domainNumber),
        ...group,
      })),
    /** The number of held messages, counted up to `limit`. */
    count: sql.count<[limit: number]>(
      `SELECT count(*) FROM (SELECT 1 FROM queue q INDEXED BY queue_due WHERE ${IS_HELD} LIMIT +?)`,
    ),
    countMatching: (filter: HeldFilter): number => countMatching(stored(filter)),
    /** Held messages that match, at most `limit`, beginning after `afterSeq`. */
    matching: (filter: HeldFilter, afterSeq: number, limit: number): number[] =>
      matching({ ...stored(filter), afterSeq, limit }),
    /** Expired messages among the next `limit` held ones; `next`: the last that was examined, null at the end. */
    expired: (afterSeq: number, limit: number, now: number): { seqs: number[]; next: number | null } => ({
      seqs: expired(afterSeq, limit, now),
      next: heldEnd(afterSeq, limit),
    }),
    /**
     * Ends the hold of a message: it is due when it was due before the hold, now if that is past. Null when it is not held.
     */
    release: (seq: number, now: number): QueueKey | null => {
      const found = release.get({ now, seq });
      if (found === undefined) return null;
      return {
        priority: found.priority,
        account_id: account.id(found.account),
        destination: found.destination,
      };
    },
    /** Held deliveries by webhook, the largest number first. */
    webhooks: sql.all<[], HeldWebhook>(`
      SELECT d.webhook, w.webhook_id, w.account_id, w.url, count(*) AS deliveries, min(d.created_at) AS oldest
      FROM ${HELD_DELIVERIES} LEFT JOIN webhooks w ON w.number = d.webhook
      WHERE ${IS_HELD_DELIVERY} GROUP BY d.webhook ORDER BY deliveries DESC`),
    countDeliveries: sql.count<[limit: number]>(
      `SELECT count(*) FROM (SELECT 1 FROM ${HELD_DELIVERIES} WHERE ${IS_HELD_DELIVERY} LIMIT +?)`,
    ),
    /** Makes held deliveries due, of all accounts or one; returns how many, at most `limit`. */
    releaseDeliveries: changeDeliveries(releaseDeliveries),
    /** Ends held deliveries as failed; they can still be repeated one by one. */
    dropDeliveries: changeDeliveries(dropDeliveries),
  };
}
