import type { Clock } from '../core/clock.ts';
import type { Ids } from '../core/ids.ts';
import { isRefusal, type Refusal, refuse } from '../core/refusal.ts';
import { partlyDone, unitAfter } from '../store/database/failure.ts';
import type { Writer } from '../store/database/writer.ts';
import { createLocalReader, type Reader } from '../store/readers/reads.ts';
import type { Tables } from '../store/tables.ts';
import type {
  ListedWebhookDelivery,
  ReplayCandidate,
  WebhookDeliveryState,
} from '../store/webhook-deliveries.ts';
import type { WebhookRow } from '../store/webhooks.ts';
import { EVERY_EVENT } from './input.ts';
import { type WebhookPayload, webhookPayload } from './payload.ts';
import {
  fieldsOf,
  findWebhook,
  presentDelivery,
  type WebhookDelivery,
  type WebhookDeliveryStatus,
} from './resource.ts';

export interface WebhookDeliveryDetail extends WebhookDelivery {
  /** Null: retention has deleted the event. */
  payload: WebhookPayload | null;
}

export interface DeliveryPage {
  deliveries: WebhookDelivery[];
  nextSeq: number | null;
}

export interface DeliveryQuery {
  status?: WebhookDeliveryStatus | undefined;
  /** Only of events before this one. */
  beforeSeq: number | null;
  limit: number;
}

export interface ReplayInput {
  /** Epoch ms, inclusive. */
  from: number;
  /** Epoch ms, exclusive. */
  to: number;
  /**
   * Which events of the kinds to which the webhook subscribes now. `undelivered`: those without a successful call, because
   * calls failed, are pending, or were not made while the webhook was disabled. `all`: also those that succeeded.
   */
  which: 'undelivered' | 'all';
}

export interface ReplayResult {
  /** Events made ready. */
  replayed: number;
  /** Epoch ms: `from` of the next request, when there were more events than one request replays; null: complete. */
  nextFrom: number | null;
}

const STATES: Record<WebhookDeliveryStatus, readonly WebhookDeliveryState[]> = {
  pending: ['ready', 'waiting'],
  succeeded: ['succeeded'],
  failed: ['failed'],
};

/** Events that are read in one unit of work, and in one request. */
const REPLAY_BATCH_SIZE = 500;
const MAX_REPLAYED = 100_000;

export interface WebhookDeliveriesDeps {
  tables: Tables;
  /** Reads lists; default: on this thread. */
  reader?: Reader;
  writer: Writer;
  clock: Clock;
  ids: Ids;
  /** `WebhookSender.nextProbeAt`; none: not known, outside of the daemon. */
  nextProbeAt?: (webhook: number) => number | null;
}

/**
 * Lists deliveries and makes them ready again; the sender sends ready deliveries within a second. Keeps no state.
 * `retry` and `replay` refuse a disabled webhook (`INVALID_STATE`). A replay reads 500 events in a unit of work, and at
 * most 100,000 in one call.
 */
export function createWebhookDeliveries(deps: WebhookDeliveriesDeps) {
  const { tables, writer, clock, ids } = deps;
  const reader = deps.reader ?? createLocalReader(tables);

  const present = (row: ListedWebhookDelivery): WebhookDelivery =>
    presentDelivery(row, { now: clock.now(), nextProbeAt: deps.nextProbeAt?.(row.webhook) ?? null });

  function findActive(all: Tables, accountId: string, webhookId: string): WebhookRow | Refusal {
    const webhook = findWebhook(all, accountId, webhookId);
    if (isRefusal(webhook) || webhook.is_active === 1) return webhook;
    return refuse('INVALID_STATE', `Webhook ${webhookId} is disabled: enable it first`);
  }

  /** In a unit of work: makes the selected events ready; returns their number. */
  function makeReady(
    all: Tables,
    webhook: WebhookRow,
    candidates: readonly ReplayCandidate[],
    { which }: ReplayInput,
  ): number {
    const { number } = webhook;
    const { events } = fieldsOf(webhook);
    const now = clock.now();
    let count = 0;
    for (const { event_seq: eventSeq, kind, state } of candidates) {
      if (!events.includes(EVERY_EVENT) && !events.includes(kind)) continue;
      if (state === 'ready' || (state === 'succeeded' && which === 'undelivered')) continue;
      if (state !== null) all.webhookDeliveries.makeReady(number, eventSeq, now);
      else all.webhookDeliveries.insert({ webhook: number, eventSeq, deliveryId: ids.make('whd'), at: now });
      count++;
    }
    return count;
  }

  return {
    /** Newest event first; `nextSeq` is not null while more follow. */
    deliveries: async (
      accountId: string,
      webhookId: string,
      { status, beforeSeq, limit }: DeliveryQuery,
    ): Promise<DeliveryPage | Refusal> => {
      const webhook = findWebhook(tables, accountId, webhookId);
      if (isRefusal(webhook)) return webhook;
      const { rows, nextSeq } = await reader.table(accountId, 'webhookDeliveries', 'list', {
        webhook: webhook.number,
        states: status === undefined ? [] : STATES[status],
        beforeSeq: beforeSeq ?? Number.MAX_SAFE_INTEGER,
        limit,
      });
      return { deliveries: rows.map(present), nextSeq };
    },
    /** One delivery with the body of its calls. */
    delivery: (accountId: string, webhookId: string, deliveryId: string): WebhookDeliveryDetail | Refusal => {
      const webhook = findWebhook(tables, accountId, webhookId);
      if (isRefusal(webhook)) return webhook;
      const row = tables.webhookDeliveries.byId(webhook.number, deliveryId);
      if (row === null) return unknownDelivery(webhookId, deliveryId);
      const event = tables.events.bySeq(row.event_seq);
      return { ...present(row), payload: event === null ? null : webhookPayload(event) };
    },
    /** Makes one delivery ready, whatever its status is. */
    retry: async (
      accountId: string,
      webhookId: string,
      deliveryId: string,
    ): Promise<WebhookDelivery | Refusal> => {
      const row = await writer.run((all): ListedWebhookDelivery | Refusal => {
        const webhook = findActive(all, accountId, webhookId);
        if (isRefusal(webhook)) return webhook;
        const delivery = all.webhookDeliveries.byId(webhook.number, deliveryId);
        if (delivery === null) return unknownDelivery(webhookId, deliveryId);
        if (delivery.event_id === null)
          return refuse('INVALID_STATE', `The event of delivery ${deliveryId} is past its retention`);
        all.webhookDeliveries.makeReady(webhook.number, delivery.event_seq, clock.now());
        return all.webhookDeliveries.byId(webhook.number, deliveryId) ?? delivery;
      }, accountId);
      return isRefusal(row) ? row : present(row);
    },
    /** Makes the events of a time range ready. */
    replay: async (
      accountId: string,
      webhookId: string,
      input: ReplayInput,
    ): Promise<ReplayResult | Refusal> => {
      let afterSeq = tables.events.firstSeqAt(input.from) - 1;
      const lastSeq = tables.events.firstSeqAt(input.to) - 1;
      let replayed = 0;
      for (let read = 0; ; read += REPLAY_BATCH_SIZE) {
        const done = partlyDone(replayed, 'event', 'replayed');
        const unit = writer.run((all): { candidates: ReplayCandidate[]; count: number } | Refusal => {
          const webhook = findActive(all, accountId, webhookId);
          if (isRefusal(webhook)) return webhook;
          const range = { afterSeq, lastSeq, limit: REPLAY_BATCH_SIZE };
          const candidates = all.webhookDeliveries.replayCandidates(webhook.number, accountId, range);
          return { candidates, count: makeReady(all, webhook, candidates, input) };
        }, accountId);
        const batch = await unitAfter(done, unit);
        if (isRefusal(batch)) return batch;
        replayed += batch.count;
        const last = batch.candidates.at(-1);
        if (last === undefined || batch.candidates.length < REPLAY_BATCH_SIZE)
          return { replayed, nextFrom: null };
        // The next request reads the events of this millisecond again: they are ready, so they are not counted twice.
        if (read + REPLAY_BATCH_SIZE >= MAX_REPLAYED) return { replayed, nextFrom: last.at };
        afterSeq = last.event_seq;
      }
    },
  };
}

export type WebhookDeliveries = ReturnType<typeof createWebhookDeliveries>;

function unknownDelivery(webhookId: string, deliveryId: string): Refusal {
  return refuse('NOT_FOUND', `There is no delivery ${deliveryId} of webhook ${webhookId}`);
}
