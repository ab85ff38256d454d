import { type Clock, DAY, MINUTE, SECOND } from '../core/clock.ts';
import type { Log } from '../core/log.ts';
import type { Random } from '../core/random.ts';
import type { EventRow } from '../store/messages/events.ts';
import type { Tables } from '../store/tables.ts';
import type { WebhookDeliveryRow } from '../store/webhook-deliveries.ts';
import type { WebhookRow } from '../store/webhooks.ts';
import type { Writer } from '../store/writer.ts';
import type { CallResult, WebhookCaller } from './call.ts';
import { type DeliveryOutcome, outcomeOf, withoutErased } from './outcome.ts';
import { createPace, type Pace } from './pace.ts';
import { webhookPayload } from './payload.ts';
import { signatureHeaders, type WebhookSecrets } from './secrets.ts';

/**
 * Due rows → signed POST → outcome. Each webhook has a lane of its own: what is under way for it, and its
 * endpoint's pace; so a slow one holds up nobody but itself. A delivery that is ready stays ready in the
 * database until its outcome is committed; which ones are being told just now only this memory knows, since
 * one daemon alone works on a database. So nothing is lost with it, and what it had under way is told again:
 * at least once.
 */
export interface WebhookSender {
  start(): void;
  /** Something became ready for this webhook, in a unit of work that is being committed. */
  due(webhook: number): void;
  /** The webhook was changed or deleted: what is under way for one that is off or gone ends at once. */
  changed(webhook: number): void;
  /** Looks once for everything that is due; `start` does so every second. */
  round(): Promise<void>;
  /** Resolves when nothing is under way. */
  idle(): Promise<void>;
  inFlight(): number;
  /** Gives calls under way a moment to end, then calls them off: they are made again at the next start. */
  stop(): Promise<void>;
}

export interface SenderSettings {
  clock: Clock;
  random: Random;
  log: Log;
  tables: Tables;
  writer: Writer;
  secrets: WebhookSecrets;
  caller: WebhookCaller;
  /** Told of every recorded outcome, for whoever counts. */
  observe?: (outcome: 'succeeded' | 'failed') => void;
}

/** Calls under way above which a webhook gets one at a time: every one gets that, however many are slow. */
const CALLS_IN_ALL = 256;
const READ_AHEAD = 50;
const PROMOTED_AT_ONCE = 1000;
const SWEPT_AT_ONCE = 500;
const ROUND_MS = SECOND;
const BUSY_ROUND_MS = 50;
const SWEEP_EVERY = MINUTE;
const RECORD_AGAIN_MS = SECOND;
const GRACE_MS = 5 * SECOND;
/** Nothing but failures for so long, and a webhook is turned off. */
const PATIENCE = 5 * DAY;

/** Ours: tried again by the schedule, like theirs. */
const FAULT: CallResult = { kind: 'unanswered', why: 'a fault of the service' };

interface Lane {
  webhook: number;
  pace: Pace;
  /** By event. */
  underWay: Map<number, AbortController>;
  /** Ready ones, to be told next. */
  ahead: WebhookDeliveryRow[];
}

export function createWebhookSender(settings: SenderSettings): WebhookSender {
  const { clock, random, log, tables, writer, secrets, caller } = settings;
  const lanes = new Map<number, Lane>();
  const hot = new Set<number>();
  const calls = new Set<Promise<void>>();
  let timer: NodeJS.Timeout | null = null;
  let sweptAt = Number.NEGATIVE_INFINITY;
  let ending = false;

  function laneOf(webhook: number): Lane {
    const lane = lanes.get(webhook) ?? { webhook, pace: createPace(), underWay: new Map(), ahead: [] };
    lanes.set(webhook, lane);
    return lane;
  }

  function room({ pace, underWay }: Lane): number {
    const width = calls.size < CALLS_IN_ALL ? pace.width(clock.now()) : Math.min(1, pace.width(clock.now()));
    return width - underWay.size;
  }

  /** Makes as many calls for a webhook as it has room for. */
  function pump(number: number): void {
    if (ending) return;
    try {
      fill(number);
    } catch (error) {
      log.error({ err: error, webhook: number }, 'due webhook deliveries could not be read');
    }
  }

  function fill(number: number): void {
    const lane = laneOf(number);
    const free = room(lane);
    if (free <= 0) return;
    const webhook = tables.webhooks.byNumber(number);
    if (webhook === null || webhook.is_active === 0) return callOff(lane);
    if (lane.ahead.length === 0) lane.ahead = next(lane);
    if (lane.ahead.length > 0) {
      const keys = secrets.keys(tables, webhook, clock.now());
      for (const row of lane.ahead.splice(0, free)) begin(lane, webhook, row, keys);
    } else if (lane.underWay.size === 0 && lane.pace.fresh(clock.now())) lanes.delete(number);
  }

  /** What is ready and not under way; several calls' worth, since each look-up costs as much as a few. */
  function next({ webhook, underWay }: Lane): WebhookDeliveryRow[] {
    return tables.webhookDeliveries
      .ready(webhook, READ_AHEAD + underWay.size)
      .filter((row) => !underWay.has(row.event_seq));
  }

  function begin(lane: Lane, webhook: WebhookRow, row: WebhookDeliveryRow, keys: readonly Buffer[]): void {
    const abort = new AbortController();
    lane.underWay.set(row.event_seq, abort);
    const call = tell(lane, webhook, row, keys, abort.signal)
      .catch((error: unknown) => {
        log.error({ err: error, deliveryId: row.delivery_id }, 'telling a webhook failed');
        return record(outcomeOf(row, FAULT, { now: clock.now(), random }), null);
      })
      .finally(() => {
        lane.underWay.delete(row.event_seq);
        calls.delete(call);
        pump(lane.webhook);
      });
    calls.add(call);
  }

  async function tell(
    lane: Lane,
    webhook: WebhookRow,
    row: WebhookDeliveryRow,
    keys: readonly Buffer[],
    signal: AbortSignal,
  ): Promise<void> {
    const event = tables.events.bySeq(row.event_seq);
    if (event === null) {
      const error = 'the event is past its retention';
      await writer.run((all) => all.webhookDeliveries.record({ ...row, state: 'failed', error }));
      return;
    }
    // Nobody is told of what a power cut may take back.
    await writer.settled();
    const body = JSON.stringify(webhookPayload(event));
    const headers = signatureHeaders(keys, { id: event.event_id, body, now: clock.now() });
    const result = await caller.call({ url: webhook.url, headers, body }, signal);
    if (result === null) return;
    const outcome = outcomeOf(row, result, { now: clock.now(), random });
    if (outcome.succeeded) lane.pace.succeeded();
    else lane.pace.failed(clock.now(), outcome);
    const { attempts, error, response_code: status } = outcome.row;
    const detail = result.kind === 'unanswered' ? result.detail : undefined;
    log[outcome.succeeded ? 'debug' : 'info'](
      { webhookId: webhook.webhook_id, eventId: event.event_id, attempts, status, error, detail },
      'webhook call',
    );
    await record(outcome, event);
  }

  /** Commits an outcome, and keeps trying when the database cannot take it (a full disk). */
  async function record(outcome: DeliveryOutcome, told: EventRow | null): Promise<void> {
    for (;;) {
      try {
        const off = await writer.run((all) => recordIn(all, outcome, told));
        settings.observe?.(outcome.succeeded ? 'succeeded' : 'failed');
        if (off !== null) turnedOff(off);
        return;
      } catch (error) {
        log.error({ err: error }, "a webhook call's outcome could not be recorded; trying again");
        if (ending) return;
        await new Promise((resolve) => setTimeout(resolve, RECORD_AGAIN_MS));
      }
    }
  }

  /** In a unit of work; returns the webhook when this outcome turned it off. */
  function recordIn(
    all: Tables,
    { row, succeeded, gone }: DeliveryOutcome,
    told: EventRow | null,
  ): WebhookRow | null {
    const kept = told === null ? row : withoutErased(row, told, all.events.bySeq(row.event_seq));
    all.webhookDeliveries.record(kept);
    const webhook = all.webhooks.byNumber(row.webhook);
    if (webhook === null) return null;
    const now = clock.now();
    const since = succeeded ? null : (webhook.failing_since ?? now);
    if (since !== webhook.failing_since) all.webhooks.setFailingSince(row.webhook, since);
    const reason = gone ? 'gone' : since !== null && now - since >= PATIENCE ? 'failing' : null;
    return reason !== null && all.webhooks.turnOff(row.webhook, reason, now)
      ? { ...webhook, off_reason: reason }
      : null;
  }

  function turnedOff({
    number,
    webhook_id: webhookId,
    account_id: accountId,
    off_reason: reason,
  }: WebhookRow): void {
    log.warn(
      { webhookId, accountId, reason },
      reason === 'gone'
        ? 'webhook turned off: its endpoint answered 410 Gone'
        : 'webhook turned off: it did nothing but fail for five days',
    );
    const lane = lanes.get(number);
    if (lane !== undefined) callOff(lane);
  }

  function callOff(lane: Lane): void {
    for (const abort of lane.underWay.values()) abort.abort();
    lanes.delete(lane.webhook);
  }

  /** Another process may have changed or deleted what is under way. */
  function lookAfter(lane: Lane): void {
    if (tables.webhooks.byNumber(lane.webhook)?.is_active === 1) pump(lane.webhook);
    else callOff(lane);
  }

  async function round(): Promise<void> {
    const due = tables.webhookDeliveries.nextDue();
    if (due !== null && due <= clock.now())
      await writer.run((all) => all.webhookDeliveries.promote(clock.now(), PROMOTED_AT_ONCE));
    for (const lane of lanes.values()) lookAfter(lane);
    let number = tables.webhookDeliveries.nextWithReady(0);
    for (; number !== null; number = tables.webhookDeliveries.nextWithReady(number)) pump(number);
    await sweep();
  }

  /** What deleted webhooks left behind, little by little. */
  async function sweep(): Promise<void> {
    if (clock.now() - sweptAt < SWEEP_EVERY) return;
    if (tables.webhookDeliveries.hasOrphans())
      await writer.run((all) => all.webhookDeliveries.purgeOrphans(SWEPT_AT_ONCE));
    else sweptAt = clock.now();
  }

  async function tick(): Promise<void> {
    try {
      await round();
    } catch (error) {
      log.error({ err: error }, 'looking for due webhook deliveries failed');
    }
    if (ending) return;
    const due = tables.webhookDeliveries.nextDue();
    const busy = due !== null && due <= clock.now();
    timer = setTimeout(() => void tick(), busy ? BUSY_ROUND_MS : ROUND_MS);
  }

  async function idle(): Promise<void> {
    while (calls.size > 0) await Promise.all(calls);
  }

  return {
    start: () => void tick(),
    due: (webhook) => {
      if (ending || hot.has(webhook)) return;
      if (hot.size === 0) {
        // After the group commit under way, which runs without a pause.
        setImmediate(() => {
          const numbers = [...hot];
          hot.clear();
          for (const number of numbers) pump(number);
        });
      }
      hot.add(webhook);
    },
    changed: (webhook) => {
      const lane = lanes.get(webhook);
      if (lane !== undefined) lookAfter(lane);
    },
    round,
    idle,
    inFlight: () => calls.size,
    stop: async () => {
      ending = true;
      if (timer !== null) clearTimeout(timer);
      const grace = setTimeout(() => {
        for (const lane of lanes.values()) for (const abort of lane.underWay.values()) abort.abort();
      }, GRACE_MS);
      await idle();
      clearTimeout(grace);
      await caller.close();
    },
  };
}
