import type { DataPolicy } from './data-policy.ts';
import type { Database } from './database/database.ts';
import { columnsSet, statements } from './database/statements.ts';
import { type BoundId, idNumbers } from './rows/id-numbers.ts';
import { MAX_SCANNED_ROWS, type ScanPage } from './rows/page.ts';
import { idOfEvent, kindOfCode, type StoredKey } from './rows/row-keys.ts';

/*
 * Deliveries of events to webhooks, one row for an event and a webhook. `ready` rows are called as soon as their webhook
 * may have another call; `waiting` ones are made ready by `promote`. There are no leases: the one daemon knows its calls in
 * progress, and a call whose result was not recorded before a crash is still ready.
 */

/** `ready`: it is called as soon as possible. `waiting`: it has a later time. */
export type WebhookDeliveryState = 'ready' | 'waiting' | 'succeeded' | 'failed';

export interface WebhookDeliveryRow {
  webhook: number;
  event_seq: number;
  delivery_id: string;
  state: WebhookDeliveryState;
  /** Number of all calls. */
  attempts: number;
  /** Failed calls since the schedule began, which determine the next wait. */
  failures: number;
  due_at: number;
  attempted_at: number | null;
  response_code: number | null;
  /** The first 1 KiB of the response body. */
  response_body: string | null;
  /** Why there was no response, or why it does not count as success. */
  error: string | null;
  created_at: number;
}

/** A delivery with its event; null when retention has deleted the event. */
export type ListedWebhookDelivery = WebhookDeliveryRow & { event_id: string | null; kind: string | null };

export interface WebhookDeliveryFilter {
  webhook: number;
  states: readonly WebhookDeliveryState[];
  /** Only deliveries of events with a lower number: the page key. */
  beforeSeq: number;
  limit: number;
}

/** An event of an account. `state`: that of its delivery to a webhook; null: there is no delivery. */
export interface ReplayCandidate {
  event_seq: number;
  kind: string;
  at: number;
  state: WebhookDeliveryState | null;
}

/** What a delivery shows about its endpoint. */
export type RecentDelivery = Pick<
  WebhookDeliveryRow,
  'state' | 'attempts' | 'attempted_at' | 'response_code' | 'error' | 'created_at'
>;

type Outcome = Pick<
  WebhookDeliveryRow,
  | 'webhook'
  | 'event_seq'
  | 'state'
  | 'attempts'
  | 'failures'
  | 'due_at'
  | 'attempted_at'
  | 'response_code'
  | 'response_body'
  | 'error'
>;

/**
 * Deliveries that have not succeeded, by their partial index. The statement names it, because SQLite would read all
 * deliveries, and repeats its condition, because SQLite uses a partial index only then.
 */
const OPEN = "INDEXED BY webhook_deliveries_open WHERE state <> 'succeeded'";

const JOINED = 'LEFT JOIN events e ON e.seq = d.event_seq';
const EVENT = 'e.event_key, e.kind_code, e.at AS event_at';

/** A delivery with what EVENT selects. */
type StoredListed = WebhookDeliveryRow &
  (
    | { event_key: StoredKey; kind_code: number | string; event_at: number }
    | { event_key: null; kind_code: null; event_at: null }
  );

function toListed({ event_key, kind_code, event_at, ...row }: StoredListed): ListedWebhookDelivery {
  if (event_key === null) return { ...row, event_id: null, kind: null };
  return { ...row, event_id: idOfEvent(event_key, event_at), kind: kindOfCode(kind_code) };
}

export const WEBHOOK_DELIVERY_POLICY = {
  table: 'webhook_deliveries',
  personal: ['response_body', 'error'],
  erasure: ['messages', 'events'],
  retention: { kind: 'webhookDeliveries', rows: 'deliveries', period: 'events' },
} as const satisfies DataPolicy;

/** `maxScanned`: deliveries that one page examines, at most. */
export function webhookDeliveryTable(db: Database, maxScanned = MAX_SCANNED_ROWS) {
  const sql = statements(db);
  const insert = sql.run<[number, number, string, number, number]>(`
    INSERT INTO webhook_deliveries (webhook, event_seq, delivery_id, state, attempts, failures, due_at, created_at)
    VALUES (?, ?, ?, 'ready', 0, 0, ?, ?)`);
  const byId = db.prepare<[string, number], StoredListed>(
    `SELECT d.*, ${EVENT} FROM webhook_deliveries d ${JOINED} WHERE d.delivery_id = ? AND d.webhook = ?`,
  );
  const makeReady = sql.run<[number, number, number]>(`
    UPDATE webhook_deliveries SET failures = CASE state WHEN 'waiting' THEN failures ELSE 0 END, state = 'ready', due_at = ?
    WHERE webhook = ? AND event_seq = ?`);
  const { account } = idNumbers(db);
  const replayCandidates = sql.all<
    [number, BoundId, number, number, number],
    Omit<ReplayCandidate, 'kind'> & { kind_code: number | string }
  >(`
    SELECT e.seq AS event_seq, e.kind_code, e.at, d.state
    FROM events e LEFT JOIN webhook_deliveries d ON d.webhook = ? AND d.event_seq = e.seq
    WHERE e.account = ? AND e.seq > ? AND e.seq <= ? ORDER BY e.seq LIMIT +?`);
  const nextWebhook = db
    .prepare<[number], number>(
      'SELECT webhook FROM webhook_deliveries WHERE webhook > ? ORDER BY webhook LIMIT 1',
    )
    .pluck();
  const isKnown = sql.exists<[number]>('SELECT 1 FROM webhooks WHERE number = ?');
  const removeBefore = sql.changes<[number, number, number, number]>(`
    DELETE FROM webhook_deliveries WHERE webhook = ? AND event_seq IN (
      SELECT event_seq FROM webhook_deliveries WHERE webhook = ? AND event_seq < ? LIMIT +?)`);
  const pageFrom = (source: string) =>
    db.prepare<Omit<WebhookDeliveryFilter, 'states'> & { afterSeq: number }, StoredListed>(`
      SELECT d.*, ${EVENT} FROM (
        SELECT * FROM ${source} webhook = @webhook AND event_seq < @beforeSeq AND event_seq > @afterSeq
        ORDER BY event_seq DESC LIMIT +@limit) d
        ${JOINED} ORDER BY d.event_seq DESC`);
  const pages = {
    every: pageFrom('webhook_deliveries WHERE'),
    // Filtered among all: nearly all succeed, so an index of them would be as large as the table.
    succeeded: pageFrom("webhook_deliveries WHERE +state = 'succeeded' AND"),
    ready: pageFrom(`webhook_deliveries ${OPEN} AND state = 'ready' AND`),
    waiting: pageFrom(`webhook_deliveries ${OPEN} AND state = 'waiting' AND`),
    failed: pageFrom(`webhook_deliveries ${OPEN} AND state = 'failed' AND`),
  };
  const endOfScan = db
    .prepare<[number, number, number], number>(`
      SELECT event_seq FROM webhook_deliveries WHERE webhook = ? AND event_seq < ?
      ORDER BY event_seq DESC LIMIT 1 OFFSET +?`)
    .pluck();

  /** Every webhook that has rows, including deleted ones. */
  function* webhooks(): Generator<number> {
    for (let number = nextWebhook.get(0); number !== undefined; number = nextWebhook.get(number))
      yield number;
  }

  return {
    /** Inserts a delivery that is due immediately. */
    insert: (row: { webhook: number; eventSeq: number; deliveryId: string; at: number }): void =>
      insert(row.webhook, row.eventSeq, row.deliveryId, row.at, row.at),
    get: sql.get<[webhook: number, eventSeq: number], WebhookDeliveryRow>(
      'SELECT * FROM webhook_deliveries WHERE webhook = ? AND event_seq = ?',
    ),
    byId: (webhook: number, deliveryId: string): ListedWebhookDelivery | null => {
      const found = byId.get(deliveryId, webhook);
      return found === undefined ? null : toListed(found);
    },
    /** The next webhook after this number with a ready delivery, active or not; null: there are no more. */
    nextWithReady: sql.value<[after: number], number>(`
      SELECT webhook FROM webhook_deliveries ${OPEN} AND state = 'ready' AND webhook > ?
      ORDER BY webhook LIMIT 1`),
    /** Ready deliveries of a webhook in the order of the events. */
    ready: sql.all<[webhook: number, limit: number], WebhookDeliveryRow>(`
      SELECT * FROM webhook_deliveries ${OPEN} AND state = 'ready' AND webhook = ? ORDER BY event_seq LIMIT +?`),
    /** Makes due deliveries ready; returns how many, at most `limit`. */
    promote: sql.changes<[now: number, limit: number]>(`
      UPDATE webhook_deliveries SET state = 'ready' WHERE (webhook, event_seq) IN (
        SELECT webhook, event_seq FROM webhook_deliveries WHERE state = 'waiting' AND due_at <= ? ORDER BY due_at LIMIT +?)`),
    /** Deliveries of a webhook that are not finished, at most `limit`. */
    countOpen: sql.count<[webhook: number, limit: number]>(
      `SELECT count(*) FROM (SELECT 1 FROM webhook_deliveries ${OPEN} AND state IN ('ready', 'waiting') AND webhook = ? LIMIT +?)`,
    ),
    /** The newest deliveries of a webhook, of events from `sinceSeq`. */
    recent: sql.all<[webhook: number, sinceSeq: number, limit: number], RecentDelivery>(`
      SELECT state, attempts, attempted_at, response_code, error, created_at FROM webhook_deliveries
      WHERE webhook = ? AND event_seq >= ? ORDER BY event_seq DESC LIMIT +?`),
    /** When the next waiting delivery becomes due; null: none is waiting. */
    nextDue: sql.value<[], number>("SELECT min(due_at) FROM webhook_deliveries WHERE state = 'waiting'"),
    record: sql.run<[outcome: Outcome]>(`
      UPDATE webhook_deliveries SET ${columnsSet(`state, attempts, failures, due_at, attempted_at, response_code,
        response_body, error`)}
      WHERE webhook = @webhook AND event_seq = @event_seq`),
    /** Makes a delivery ready in any state. The schedule of one that succeeded or failed begins again. */
    makeReady: (webhook: number, eventSeq: number, now: number): void => makeReady(now, webhook, eventSeq),
    /** Newest event first; without `states`, deliveries in any state. */
    list: ({ states, limit, ...page }: WebhookDeliveryFilter): ScanPage<ListedWebhookDelivery> => {
      const end = states.includes('succeeded')
        ? endOfScan.get(page.webhook, page.beforeSeq, maxScanned)
        : undefined;
      const parameters = { ...page, afterSeq: end ?? 0, limit: limit + 1 };
      // State by state: each is in order in its index; a query over several would have to sort all of them.
      const sources = states.length === 0 ? (['every'] as const) : states;
      const rows = sources
        .flatMap((source) => pages[source].all(parameters))
        .toSorted((one, two) => two.event_seq - one.event_seq)
        .map(toListed);
      const last = rows[limit - 1];
      if (rows.length > limit && last !== undefined)
        return { rows: rows.slice(0, limit), nextSeq: last.event_seq };
      return { rows, nextSeq: end === undefined ? null : end + 1 };
    },
    /** Events of an account with the state of their deliveries, in order, `afterSeq` < seq <= `lastSeq`. */
    replayCandidates: (
      webhook: number,
      accountId: string,
      range: { afterSeq: number; lastSeq: number; limit: number },
    ): ReplayCandidate[] =>
      replayCandidates(webhook, account.find(accountId), range.afterSeq, range.lastSeq, range.limit).map(
        ({ kind_code, ...event }) => ({ ...event, kind: kindOfCode(kind_code) }),
      ),
    /** Deletes deliveries of deleted webhooks; returns how many, at most `limit`. */
    purgeOrphans: (limit: number): number => {
      let purged = 0;
      for (const number of webhooks()) {
        if (purged >= limit) break;
        if (isKnown(number)) continue;
        purged += removeBefore(number, number, Number.MAX_SAFE_INTEGER, limit - purged);
      }
      return purged;
    },
    /** Whether there are deliveries of deleted webhooks. */
    hasOrphans: (): boolean => {
      for (const number of webhooks()) if (!isKnown(number)) return true;
      return false;
    },
  };
}
