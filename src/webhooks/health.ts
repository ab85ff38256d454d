import { DAY, iso } from '../core/clock.ts';
import { readQuery } from '../store/readers/reads.ts';
import type { Tables } from '../store/tables.ts';
import type { RecentDelivery } from '../store/webhook-deliveries.ts';

/* How the endpoints of an account respond, for the lists of the console. */

/** The deliveries of a period whose last call succeeded or failed. */
export interface CallCounts {
  succeeded: number;
  failed: number;
}

/** How an endpoint responded in the last 24 hours. Times are ISO 8601. */
export interface WebhookHealth extends CallCounts {
  webhookId: string;
  /** The last call; null: there was none, also before the period. */
  last: { at: string; succeeded: boolean; responseCode: number | null; error: string | null } | null;
  /** Begin of the period: later than 24 hours ago if there were more deliveries than are read. */
  since: string;
  /** The period in HEALTH_PARTS equal parts, oldest first. */
  parts: CallCounts[];
  /** Deliveries that are not finished, at most MAX_WAITING. */
  waiting: number;
}

export const HEALTH_PARTS = 24;
/** Deliveries that are read for all webhooks of an account together, and at least for one webhook. */
const MAX_READ = 20_000;
const MIN_READ = 200;
const MAX_WAITING = 10_000;

/** Reads the newest deliveries of each webhook of an account by their key; `webhookId`: of this one only. */
export const webhookHealth = readQuery(
  'webhookHealth',
  (
    tables: Tables,
    { accountId, now, webhookId }: { accountId: string; now: number; webhookId?: string | undefined },
  ): (WebhookHealth & { number: number })[] => {
    const webhooks = tables.webhooks
      .list(accountId)
      .filter((row) => webhookId === undefined || row.webhook_id === webhookId);
    const limit = Math.max(MIN_READ, Math.floor(MAX_READ / Math.max(webhooks.length, 1)));
    const firstSeq = tables.events.firstSeqAt(now - DAY);
    return webhooks.map(({ number, webhook_id }) => {
      const rows = tables.webhookDeliveries.recent(number, firstSeq, limit);
      const newest = rows.length > 0 ? rows : tables.webhookDeliveries.recent(number, 0, 1);
      return {
        number,
        webhookId: webhook_id,
        last: lastCall(newest),
        ...countsOf(rows, { now, isCut: rows.length === limit }),
        waiting: tables.webhookDeliveries.countOpen(number, MAX_WAITING),
      };
    });
  },
);

function lastCall(rows: readonly RecentDelivery[]): WebhookHealth['last'] {
  let last: (RecentDelivery & { at: number }) | null = null;
  for (const row of rows) {
    const { attempted_at: at } = row;
    if (at !== null && (last === null || last.at < at)) last = { ...row, at };
  }
  if (last === null) return null;
  const { at, state, response_code: responseCode, error } = last;
  return { at: iso(at), succeeded: state === 'succeeded', responseCode, error };
}

function countsOf(
  rows: readonly RecentDelivery[],
  { now, isCut }: { now: number; isCut: boolean },
): Pick<WebhookHealth, 'since' | 'parts' | 'succeeded' | 'failed'> {
  const since = isCut ? Math.min(now - 1, rows.at(-1)?.created_at ?? now) : now - DAY;
  const parts = Array.from({ length: HEALTH_PARTS }, (): CallCounts => ({ succeeded: 0, failed: 0 }));
  for (const { state, attempts, created_at } of rows) {
    // One that was not called yet shows nothing about the endpoint.
    if (attempts === 0) continue;
    const index = Math.floor(((created_at - since) / (now - since)) * HEALTH_PARTS);
    const part = parts[Math.min(HEALTH_PARTS - 1, Math.max(0, index))];
    if (part !== undefined) part[state === 'succeeded' ? 'succeeded' : 'failed']++;
  }
  const sum = (kind: keyof CallCounts) => parts.reduce((total, part) => total + part[kind], 0);
  return { since: iso(since), parts, succeeded: sum('succeeded'), failed: sum('failed') };
}
