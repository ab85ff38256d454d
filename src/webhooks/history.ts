import type { Clock } from '../core/clock.ts';
import type { Ids } from '../core/ids.ts';
import { isRefusal, type Refusal, refuse } from '../core/refusal.ts';
import { createLocalReader, type Reader } from '../store/readers/reads.ts';
import type { Tables } from '../store/tables.ts';
import type {
  ListedWebhookDelivery,
  ReplayCandidate,
  WebhookDeliveryState,
} from '../store/webhook-deliveries.ts';
import type { WebhookRow } from '../store/webhooks.ts';
import type { Writer } from '../store/writer.ts';
import { findWebhook } from './find.ts';
import { EVERY_EVENT } from './form.ts';
import { type DeliveryStatus, fieldsOf, type ShownDelivery, shownDelivery } from './shown.ts';

/** What webhooks were told, and telling it again: what is made ready here the sender finds within a second. */
export interface WebhookHistory {
  /** Newest event first; `nextSeq` is given while more follow. */
  deliveries(accountId: string, webhookId: string, page: DeliveryPage): Promise<DeliveriesPage | Refusal>;
  /** One delivery, now, whatever became of it before. */
  retry(accountId: string, webhookId: string, deliveryId: string): Promise<ShownDelivery | Refusal>;
  /** The events of a time again, now. */
  replay(accountId: string, webhookId: string, wish: ReplayWish): Promise<Replayed | Refusal>;
}

export interface DeliveriesPage {
  deliveries: ShownDelivery[];
  nextSeq: number | null;
}

export interface DeliveryPage {
  status?: DeliveryStatus | undefined;
  /** Only of events before this one. */
  beforeSeq: number | null;
  limit: number;
}

export interface ReplayWish {
  /** Epoch ms, at or after; before. */
  from: number;
  to: number;
  /**
   * `undelivered`: what the webhook takes now and was not told, because calls failed, still wait, or were never
   * made while it was off. `all`: also what it was told.
   */
  which: 'undelivered' | 'all';
}

export interface Replayed {
  /** Events made ready. */
  replayed: number;
  /** Epoch ms where to go on, when there was more than one request replays; null: done. */
  nextFrom: number | null;
}

const STATES: Record<DeliveryStatus, readonly WebhookDeliveryState[]> = {
  pending: ['ready', 'waiting'],
  succeeded: ['succeeded'],
  failed: ['failed'],
};

/** Events looked at in one unit of work, and in one request. */
const SLICE = 500;
const MOST = 100_000;

interface HistorySettings {
  tables: Tables;
  /** Where lists are read; default: this thread. */
  reader?: Reader;
  writer: Writer;
  clock: Clock;
  ids: Ids;
}

export function createWebhookHistory(settings: HistorySettings): WebhookHistory {
  const { tables, writer, clock, ids } = settings;
  const reader = settings.reader ?? createLocalReader(tables);

  function findActive(all: Tables, accountId: string, webhookId: string): WebhookRow | Refusal {
    const webhook = findWebhook(all, accountId, webhookId);
    if (isRefusal(webhook) || webhook.is_active === 1) return webhook;
    return refuse('INVALID_STATE', 'the webhook is off; turn it on first');
  }

  /** In a unit of work: makes ready what is wanted of these events; returns how many. */
  function makeReady(
    all: Tables,
    webhook: WebhookRow,
    told: readonly ReplayCandidate[],
    wish: ReplayWish,
  ): number {
    const { number } = webhook;
    const { events } = fieldsOf(webhook);
    const now = clock.now();
    let count = 0;
    for (const { event_seq: eventSeq, kind, state } of told) {
      if (!events.includes(EVERY_EVENT) && !events.includes(kind)) continue;
      if (state === 'ready' || (state === 'succeeded' && wish.which === 'undelivered')) continue;
      if (state !== null) all.webhookDeliveries.makeReady(number, eventSeq, now);
      else all.webhookDeliveries.insert({ webhook: number, eventSeq, deliveryId: ids.make('whd'), at: now });
      count++;
    }
    return count;
  }

  return {
    deliveries: async (accountId, webhookId, { status, beforeSeq, limit }) => {
      const webhook = findWebhook(tables, accountId, webhookId);
      if (isRefusal(webhook)) return webhook;
      const { rows, nextSeq } = await reader.table(accountId, 'webhookDeliveries', 'list', {
        webhook: webhook.number,
        states: status === undefined ? [] : STATES[status],
        beforeSeq: beforeSeq ?? Number.MAX_SAFE_INTEGER,
        limit,
      });
      return { deliveries: rows.map(shownDelivery), nextSeq };
    },
    retry: async (accountId, webhookId, deliveryId) => {
      const row = await writer.run((all): ListedWebhookDelivery | Refusal => {
        const webhook = findActive(all, accountId, webhookId);
        if (isRefusal(webhook)) return webhook;
        const delivery = all.webhookDeliveries.byId(webhook.number, deliveryId);
        if (delivery === null)
          return refuse('NOT_FOUND', `there is no delivery ${deliveryId} of this webhook`);
        if (delivery.event_id === null) return refuse('INVALID_STATE', 'its event is past its retention');
        all.webhookDeliveries.makeReady(webhook.number, delivery.event_seq, clock.now());
        return all.webhookDeliveries.byId(webhook.number, deliveryId) ?? delivery;
      });
      return isRefusal(row) ? row : shownDelivery(row);
    },
    replay: async (accountId, webhookId, wish) => {
      let afterSeq = tables.events.firstSeqAt(wish.from) - 1;
      const lastSeq = tables.events.firstSeqAt(wish.to) - 1;
      let replayed = 0;
      for (let looked = 0; ; looked += SLICE) {
        const slice = await writer.run((all): { told: ReplayCandidate[]; count: number } | Refusal => {
          const webhook = findActive(all, accountId, webhookId);
          if (isRefusal(webhook)) return webhook;
          const range = { afterSeq, lastSeq, limit: SLICE };
          const told = all.webhookDeliveries.replayCandidates(webhook.number, accountId, range);
          return { told, count: makeReady(all, webhook, told, wish) };
        });
        if (isRefusal(slice)) return slice;
        replayed += slice.count;
        const last = slice.told.at(-1);
        if (last === undefined || slice.told.length < SLICE) return { replayed, nextFrom: null };
        // The events of this very millisecond come again: they are ready, and so are not counted twice.
        if (looked + SLICE >= MOST) return { replayed, nextFrom: last.at };
        afterSeq = last.event_seq;
      }
    },
  };
}
