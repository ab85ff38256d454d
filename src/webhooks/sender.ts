import { DAY, MINUTE, SECOND } from '../core/clock.ts';
import { createLoop } from '../core/concurrency/loop.ts';
import { createTally } from '../core/concurrency/tally.ts';
import type { Context } from '../store/context.ts';
import { commitWithRetries } from '../store/database/writer.ts';
import type { EventRow } from '../store/messages/events.ts';
import type { Tables } from '../store/tables.ts';
import type { WebhookDeliveryRow } from '../store/webhook-deliveries.ts';
import type { WebhookRow } from '../store/webhooks.ts';
import type { CallResult, WebhookCaller } from './call.ts';
import { type CallOutcome, outcomeOf, withoutErased } from './outcome.ts';
import { payloadIn, signedCall, TOKEN_BYTES } from './payload.ts';
import type { WebhookSecrets } from './secrets.ts';

/**
 * Calls in progress that the accounts share. Each webhook of an account above its share is limited to one call: slow
 * endpoints of one account take no calls from others, and every webhook gets one.
 */
const MAX_SHARED_CALLS = 256;
const PROMOTE_BATCH_SIZE = 1000;
const PURGE_BATCH_SIZE = 500;
const ROUND_INTERVAL_MS = SECOND;
/** While more deliveries are due than one round promotes. */
const BUSY_ROUND_INTERVAL_MS = 50;
const PURGE_INTERVAL_MS = MINUTE;
const RECORD_RETRY_MS = SECOND;
const GRACE_MS = 5 * SECOND;
/** A webhook whose calls all failed for this long is disabled. */
const MAX_FAILING_MS = 5 * DAY;

/** An error of this program: retried by the schedule like a failure of the endpoint. */
const INTERNAL_ERROR: CallResult = { kind: 'no-response', reason: 'internal error of the service' };

/** The deliveries of one webhook. */
interface EndpointQueue {
  webhook: number;
  accountId: string;
  pace: EndpointPace;
  /** Calls in progress, by event. */
  inFlight: Map<number, AbortController>;
}

/**
 * Sends due deliveries as signed POST requests. Each webhook has a queue with the pace of its endpoint, so a slow
 * endpoint delays no other one. A delivery stays `ready` in the database until its outcome is committed; which ones are
 * being sent is known in memory only, because one daemon at a time uses a database. After a crash they are sent again:
 * delivery is at least once. Sends nothing until `start`, `round` or `due`. `start` begins a loop of one second, which
 * keeps the process running until `stop`. A webhook without calls and failures takes no memory.
 */
export function createWebhookSender(
  { clock, random, log, tables, writer }: Pick<Context, 'clock' | 'random' | 'log' | 'tables' | 'writer'>,
  {
    secrets,
    caller,
    observe,
  }: {
    secrets: WebhookSecrets;
    caller: WebhookCaller;
    /** Called for each recorded outcome, for metrics. */
    observe?: (outcome: 'succeeded' | 'failed') => void;
  },
) {
  const queues = new Map<number, EndpointQueue>();
  const calls = new Set<Promise<void>>();
  const shares = createCallShares(MAX_SHARED_CALLS);
  const stopping = new AbortController();
  const giveUp = new AbortController();
  let purgedAt = Number.NEGATIVE_INFINITY;

  function createQueue({ number, account_id: accountId }: WebhookRow): EndpointQueue {
    const queue = { webhook: number, accountId, pace: createEndpointPace(), inFlight: new Map() };
    queues.set(number, queue);
    return queue;
  }

  /** Calls that can be started now. */
  function capacity({ accountId, pace, inFlight }: EndpointQueue): number {
    const width = pace.width(clock.now());
    return (shares.isBelowShare(accountId) ? width : Math.min(1, width)) - inFlight.size;
  }

  /** Starts calls of a webhook up to the capacity of its queue. */
  function pump(webhook: number): void {
    if (stopping.signal.aborted) return;
    try {
      startCalls(webhook);
    } catch (error) {
      log.error({ err: error, webhookNumber: webhook }, 'due webhook deliveries could not be read');
    }
  }

  function startCalls(number: number): void {
    const known = queues.get(number);
    if (known !== undefined && capacity(known) <= 0) return;
    const webhook = tables.webhooks.byNumber(number);
    if (webhook === null || webhook.is_active === 0) return known && abortCalls(known);
    const queue = known ?? createQueue(webhook);
    const free = capacity(queue);
    const { inFlight, pace } = queue;
    const ready = tables.webhookDeliveries
      .ready(number, free + inFlight.size)
      .filter((row) => !inFlight.has(row.event_seq));
    if (ready.length > 0) {
      const keys = secrets.keys(tables, webhook, clock.now());
      for (const row of ready.slice(0, free)) startCall(queue, webhook, row, keys);
    } else if (inFlight.size === 0 && pace.isInitial(clock.now())) queues.delete(number);
  }

  function startCall(
    queue: EndpointQueue,
    webhook: WebhookRow,
    row: WebhookDeliveryRow,
    keys: readonly Buffer[],
  ): void {
    const abort = new AbortController();
    queue.inFlight.set(row.event_seq, abort);
    shares.started(queue.accountId);
    const call = deliver(queue, webhook, row, keys, abort.signal)
      .catch((error: unknown) => {
        log.error({ err: error, deliveryId: row.delivery_id }, 'webhook call failed with an internal error');
        return record(queue, outcomeOf(row, INTERNAL_ERROR, { now: clock.now(), random }), null);
      })
      .finally(() => {
        queue.inFlight.delete(row.event_seq);
        calls.delete(call);
        shares.ended(queue.accountId);
        pump(queue.webhook);
      });
    calls.add(call);
  }

  async function deliver(
    queue: EndpointQueue,
    webhook: WebhookRow,
    row: WebhookDeliveryRow,
    keys: readonly Buffer[],
    signal: AbortSignal,
  ): Promise<void> {
    const { format } = webhook;
    const event = tables.events.bySeq(row.event_seq);
    const payload = event === null ? null : payloadIn(format, tables, event);
    if (event === null || payload === null) {
      const error =
        event === null
          ? 'the event is past its retention'
          : `the format ${format} has no event ${event.kind}`;
      await writer.run(
        (tx) => tx.webhookDeliveries.record({ ...row, state: 'failed', error }),
        queue.accountId,
      );
      return;
    }
    // An event is sent only when it is on disk: a power failure must not undo an event that a receiver has.
    await writer.durable();
    const id = event.event_id;
    const token = random.bytes(TOKEN_BYTES);
    const { body, headers: signed } = signedCall({ format, id, payload, keys, token, now: clock.now() });
    const headers = { ...secrets.headers(webhook), ...signed };
    const result = await caller.call({ accountId: queue.accountId, url: webhook.url, headers, body }, signal);
    if (result === null) return;
    const outcome = outcomeOf(row, result, { now: clock.now(), random });
    if (outcome.succeeded) queue.pace.succeeded();
    else if (outcome.overloaded) queue.pace.overloaded(clock.now(), outcome.retryAfterMs);
    const { attempts, error, response_code: status } = outcome.row;
    const detail = result.kind === 'no-response' ? result.detail : undefined;
    log[outcome.succeeded ? 'debug' : 'info'](
      { webhookId: webhook.webhook_id, eventId: event.event_id, attempts, status, error, detail },
      'webhook called',
    );
    await record(queue, outcome, event);
  }

  /** Commits an outcome; `event` is the one that was sent. */
  async function record(
    { accountId: share }: EndpointQueue,
    outcome: CallOutcome,
    event: EventRow | null,
  ): Promise<void> {
    const committed = await commitWithRetries(writer, (tx) => recordIn(tx, outcome, event), {
      firstRetryMs: RECORD_RETRY_MS,
      maxRetryMs: RECORD_RETRY_MS,
      onError: (error) =>
        log.error({ err: error }, 'outcome of a webhook call could not be recorded; trying again'),
      hurry: stopping.signal,
      giveUp: giveUp.signal,
      share,
    });
    if (committed === null) return;
    observe?.(outcome.succeeded ? 'succeeded' : 'failed');
    if (committed.result !== null) onDisabled(committed.result);
  }

  /** In a unit of work; returns the webhook if this outcome disabled it. */
  function recordIn(
    tx: Tables,
    { row, succeeded, gone }: CallOutcome,
    event: EventRow | null,
  ): WebhookRow | null {
    const stored = event === null ? row : withoutErased(row, event, tx.events.bySeq(row.event_seq));
    tx.webhookDeliveries.record(stored);
    const webhook = tx.webhooks.byNumber(row.webhook);
    if (webhook === null) return null;
    const now = clock.now();
    const since = succeeded ? null : (webhook.failing_since ?? now);
    if (since !== webhook.failing_since) tx.webhooks.setFailingSince(row.webhook, since);
    const reason = gone ? 'gone' : since !== null && now - since >= MAX_FAILING_MS ? 'failing' : null;
    return reason !== null && tx.webhooks.turnOff(row.webhook, reason, now)
      ? { ...webhook, off_reason: reason }
      : null;
  }

  function onDisabled({
    number,
    webhook_id: webhookId,
    account_id: accountId,
    off_reason: reason,
  }: WebhookRow): void {
    log.warn(
      { webhookId, accountId, reason },
      reason === 'gone'
        ? 'webhook disabled: its endpoint responded with 410 Gone'
        : 'webhook disabled: all its calls failed for five days',
    );
    const queue = queues.get(number);
    if (queue !== undefined) abortCalls(queue);
  }

  function abortCalls(queue: EndpointQueue): void {
    for (const abort of queue.inFlight.values()) abort.abort();
    queues.delete(queue.webhook);
  }

  function refresh(queue: EndpointQueue): void {
    if (tables.webhooks.byNumber(queue.webhook)?.is_active === 1) pump(queue.webhook);
    else abortCalls(queue);
  }

  /** Starts calls for everything that is due; `start` does so every second. */
  async function round(): Promise<void> {
    if (hasDue()) await writer.run((tx) => tx.webhookDeliveries.promote(clock.now(), PROMOTE_BATCH_SIZE));
    // Another process can have changed or deleted a webhook.
    for (const queue of queues.values()) refresh(queue);
    let number = tables.webhookDeliveries.nextWithReady(0);
    for (; number !== null; number = tables.webhookDeliveries.nextWithReady(number)) pump(number);
    await purge();
  }

  function hasDue(): boolean {
    const at = tables.webhookDeliveries.nextDue();
    return at !== null && at <= clock.now();
  }

  /** Deletes deliveries of deleted webhooks in small units of work. */
  async function purge(): Promise<void> {
    if (clock.now() - purgedAt < PURGE_INTERVAL_MS) return;
    if (tables.webhookDeliveries.hasOrphans())
      await writer.run((tx) => tx.webhookDeliveries.purgeOrphans(PURGE_BATCH_SIZE));
    else purgedAt = clock.now();
  }

  /** Resolves when no call is in progress. */
  async function idle(): Promise<void> {
    while (calls.size > 0) await Promise.all(calls);
  }

  const loop = createLoop({
    name: 'webhook-deliveries',
    run: async () => {
      await round();
      return hasDue() ? BUSY_ROUND_INTERVAL_MS : ROUND_INTERVAL_MS;
    },
    intervalMs: ROUND_INTERVAL_MS,
    log,
    ref: true,
  });

  return {
    start: loop.start,
    /** Called in a unit of work that makes a delivery of this webhook ready. */
    due: (webhook: number): void =>
      writer.afterCommit(`webhook ${webhook}`, () => {
        if (!stopping.signal.aborted) pump(webhook);
      }),
    /** Called after a webhook was changed or deleted: aborts its calls if it is disabled or deleted. */
    changed: (webhook: number): void => {
      const queue = queues.get(webhook);
      if (queue !== undefined) refresh(queue);
    },
    /** When an endpoint that is overloaded is called again, epoch ms; null: deliveries do not wait for it. */
    nextProbeAt: (webhook: number): number | null =>
      queues.get(webhook)?.pace.pausedUntil(clock.now()) ?? null,
    round,
    idle,
    inFlight: (): number => calls.size,
    /** Aborts calls in progress after a grace period; they are repeated after the next start. */
    stop: async (): Promise<void> => {
      stopping.abort();
      const grace = setTimeout(() => {
        giveUp.abort();
        for (const queue of queues.values()) for (const abort of queue.inFlight.values()) abort.abort();
      }, GRACE_MS);
      await loop.stop();
      await idle();
      clearTimeout(grace);
      await caller.close();
    },
  };
}

export type WebhookSender = ReturnType<typeof createWebhookSender>;

/**
 * Equal shares of concurrent webhook calls for the accounts that have calls in progress. The share shrinks when another
 * account begins; calls above it are not aborted, so that the total can exceed `maxCalls` for the duration of a call.
 * Begins without calls. In memory: an entry for each account with calls in progress.
 */
export function createCallShares(maxCalls: number) {
  const calls = createTally();

  return {
    /** Whether the account has fewer calls in progress than its share, with this account counted. */
    isBelowShare: (accountId: string): boolean => {
      const count = calls.of(accountId);
      const accounts = count === 0 ? calls.keys + 1 : calls.keys;
      return count < maxCalls / accounts;
    },
    started: (accountId: string): void => calls.add(accountId, 1),
    ended: (accountId: string): void => calls.add(accountId, -1),
  };
}

const MAX_WIDTH = 10;
const FIRST_PAUSE_MS = SECOND;
const MAX_PAUSE_MS = MINUTE;

/**
 * How fast one endpoint is called: several concurrent calls while it responds, fewer with pauses after it replied that
 * it is overloaded, or did not respond in time. Other failures are about the event: its retry waits, not the endpoint.
 * Begins with 10 concurrent calls. An overload halves the number, and calls pause for 1 s, doubled up to a minute, or
 * for the requested wait. Has no timer: `now` is the caller's.
 */
export function createEndpointPace() {
  let width = MAX_WIDTH;
  let pauseMs = FIRST_PAUSE_MS;
  let pausedUntil = 0;

  return {
    /** Concurrent calls that are allowed now; 0 during a pause. */
    width: (now: number): number => (now < pausedUntil ? 0 : width),
    /** When the pause ends; null: there is none. */
    pausedUntil: (now: number): number | null => (now < pausedUntil ? pausedUntil : null),
    succeeded: (): void => {
      pauseMs = FIRST_PAUSE_MS;
      width = Math.min(MAX_WIDTH, width + 1);
    },
    /** The endpoint is overloaded. `retryAfterMs`: the wait that it requested. */
    overloaded: (now: number, retryAfterMs: number | null): void => {
      // Concurrent calls fail together: they count as one failure.
      const isPaused = now < pausedUntil;
      pausedUntil = Math.max(pausedUntil, now + Math.max(isPaused ? 0 : pauseMs, retryAfterMs ?? 0));
      if (isPaused) return;
      width = Math.max(1, Math.floor(width / 2));
      pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS);
    },
    /** Whether the state is that of a new pace. */
    isInitial: (now: number): boolean => now >= pausedUntil && width === MAX_WIDTH,
  };
}

type EndpointPace = ReturnType<typeof createEndpointPace>;
