import { recordOf } from '../../core/record-of.ts';
import { STOPPED_SENDS_SQL } from '../campaigns/campaign-sends.ts';
import type { Database } from '../database/database.ts';
import { statements } from '../database/statements.ts';
import { HELD, HELD_BY_RESTORE, type QueueKey } from '../messages/queue.ts';
import { idNumbers } from '../rows/id-numbers.ts';
import { LIMIT_LEVELS, type LimitLevel, sendingLimitTable } from '../sending-limits.ts';

/** The backlog of the queue and of webhooks, the certificates that expire next, and what is limited: for metrics. */
export interface BacklogFigures {
  queue: {
    /** Due and not being sent. */
    ready: number;
    /** Leased: being sent, or about to be. */
    sending: number;
    /** Not yet due: deferred or scheduled. */
    waiting: number;
    /** Held until the reason ends, whatever it is. */
    held: number;
    /**
     * Due time of the message that has been due longest, is not being sent and whose key does not wait on a schedule, epoch
     * ms; null: there is none.
     */
    oldestDue: number | null;
    /** The destinations with the most messages; estimates from a sample when the queue is long. */
    destinations: DestinationBacklog[];
  };
  /** Calls to active webhooks. */
  webhooks: {
    /** Due now. */
    ready: number;
    /** Retried later. */
    waiting: number;
    /** When the oldest of these events was recorded, epoch ms; null: there is none. */
    oldest: number | null;
  };
  /** The certificates that expire first, expiry in epoch ms. */
  certificates: { host: string; expiresAt: number }[];
  /** Automatic limits in force by level, and campaigns that were stopped automatically. */
  limits: Record<LimitLevel, number>;
  stoppedCampaigns: number;
}

export interface DestinationBacklog {
  destination: string;
  messages: number;
  /** The oldest due message of this destination, as in `BacklogFigures`, whatever it waits for. */
  oldestDue: number | null;
}

interface QueueTotals {
  messages: number;
  ready: number;
  sending: number;
  held: number;
  oldestDue: number | null;
}

const MAX_DESTINATIONS = 20;
const MAX_CERTIFICATES = 20;

/** Approximate maximum number of rows that are grouped by destination; of a longer queue they are a sample. */
const MAX_GROUPED_ROWS = 100_000;

/**
 * Reads the backlog. It walks the whole queue, which `limits.queuedMessages` bounds, and therefore runs in a reader thread
 * within the time budget of reads. Grouping by destination has no index and sorts, so it uses a sample of a long queue.
 */
export function backlogTable(db: Database, maxGroupedRows = MAX_GROUPED_ROWS) {
  const sql = statements(db);
  const { account } = idNumbers(db);
  const totals = db.prepare<[], QueueTotals>(`
    SELECT count(*) AS messages, coalesce(sum(ready = 1 AND lease IS NULL), 0) AS ready,
      coalesce(sum(lease IS NOT NULL), 0) AS sending, coalesce(sum(
        ready = 0 AND lease IS NULL AND (due_at IN (${HELD}, ${HELD_BY_RESTORE}) OR held = 1)), 0) AS held,
      min(CASE WHEN ready = 1 AND lease IS NULL THEN due_at END) AS oldestDue
    FROM queue WHERE seq > 0`);
  // A multiplicative hash: numbers of messages that were accepted together must not share their part of the sample.
  const byDestination = sql.all<[{ step: number; limit: number }], DestinationBacklog>(`
    SELECT destination, count(*) * @step AS messages,
      min(CASE WHEN ready = 1 AND lease IS NULL THEN due_at END) AS oldestDue
    FROM queue WHERE ((seq * 2654435761 & 4294967295) >> 8) % @step = 0
    GROUP BY destination ORDER BY messages DESC LIMIT +@limit`);
  const byWebhook = sql.all<[string], { messages: number; oldest: number }>(`
    SELECT d.messages, (SELECT created_at FROM webhook_deliveries w
      WHERE w.webhook = d.webhook AND w.event_seq = d.firstSeq) AS oldest
    FROM (SELECT webhook, count(*) AS messages, min(event_seq) AS firstSeq
      FROM webhook_deliveries INDEXED BY webhook_deliveries_open WHERE state <> 'succeeded' AND state = ?
      GROUP BY webhook) d
    WHERE EXISTS (SELECT 1 FROM webhooks WHERE number = d.webhook AND is_active = 1)`);
  const certificates = sql.all<[number], { host: string; expiresAt: number }>(`
    SELECT host, not_after AS expiresAt FROM certificates WHERE not_after IS NOT NULL ORDER BY not_after LIMIT +?`);

  const { countByLevel } = sendingLimitTable(db);
  const countStopped = sql.count(`SELECT count(*) ${STOPPED_SENDS_SQL}`);
  const oldestDueExcept = sql.value<[string], number>(`
    SELECT min(due_at) FROM queue WHERE seq > 0 AND ready = 1 AND lease IS NULL AND (lane, account, destination)
      NOT IN (SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?))`);

  function oldestDue(keys: readonly QueueKey[]): number | null {
    const stored = keys.map(({ priority, account_id, destination }) => {
      const found = account.find(account_id);
      return [priority, typeof found === 'bigint' ? Number(found) : found, destination];
    });
    return oldestDueExcept(JSON.stringify(stored));
  }

  function readQueue(onSchedule: readonly QueueKey[]): BacklogFigures['queue'] {
    const found = totals.get();
    if (found === undefined) throw new Error('an aggregate query returned no row');
    const { messages, ...states } = found;
    const step = Math.max(1, Math.ceil(messages / maxGroupedRows));
    return {
      ...states,
      ...(onSchedule.length > 0 ? { oldestDue: oldestDue(onSchedule) } : {}),
      waiting: messages - states.ready - states.sending - states.held,
      destinations: byDestination({ step, limit: MAX_DESTINATIONS }),
    };
  }

  function readLimits(): BacklogFigures['limits'] {
    const counts = new Map(countByLevel().map(({ level, limits }) => [level, limits]));
    return recordOf(LIMIT_LEVELS, (level) => counts.get(level) ?? 0);
  }

  function readWebhooks(): BacklogFigures['webhooks'] {
    const ready = byWebhook('ready');
    const waiting = byWebhook('waiting');
    const sum = (rows: typeof ready) => rows.reduce((all, { messages }) => all + messages, 0);
    const oldest = [...ready, ...waiting].reduce<number | null>(
      (first, row) => earlier(first, row.oldest),
      null,
    );
    return { ready: sum(ready), waiting: sum(waiting), oldest };
  }

  return {
    /** `onSchedule`: keys of the queue whose mail waits on a schedule. */
    read: (onSchedule: readonly QueueKey[] = []): BacklogFigures => ({
      queue: readQueue(onSchedule),
      webhooks: readWebhooks(),
      certificates: certificates(MAX_CERTIFICATES),
      limits: readLimits(),
      stoppedCampaigns: countStopped(),
    }),
  };
}

function earlier(one: number | null, other: number | null): number | null {
  return one === null || (other !== null && other < one) ? other : one;
}
