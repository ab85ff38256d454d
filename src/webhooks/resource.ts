import { iso } from '../core/clock.ts';
import { type Refusal, refuse } from '../core/refusal.ts';
import { HELD_BY_RESTORE } from '../store/messages/queue.ts';
import type { Tables } from '../store/tables.ts';
import type { ListedWebhookDelivery } from '../store/webhook-deliveries.ts';
import type { WebhookRow } from '../store/webhooks.ts';

/** Webhooks and their deliveries as the API and the CLI present them. */
export interface Webhook {
  webhookId: string;
  name: string;
  url: string;
  events: string[];
  isActive: boolean;
  /** Epoch ms. */
  createdAt: number;
  /** ISO 8601: all calls since then failed. */
  failingSince?: string;
}

export interface WebhookDetail extends Webhook {
  description?: string;
  secret: string;
  /** Why the service disabled it. */
  offReason?: 'gone' | 'failing';
  updatedAt: number;
}

/** What an account can set. */
export interface WebhookFields {
  url: string;
  events: string[];
  name: string;
  description: string | null;
  isActive: boolean;
}

/** Returns the same refusal for an unknown webhook and for one of another account. */
export function findWebhook(tables: Tables, accountId: string, webhookId: string): WebhookRow | Refusal {
  return (
    tables.webhooks.get(accountId, webhookId) ??
    refuse('WEBHOOK_NOT_FOUND', `There is no webhook ${webhookId}`)
  );
}

/** Without description and secret. `failingSince` is absent while calls succeed. */
export function presentWebhook(row: WebhookRow): Webhook {
  const { url, name, events, isActive } = fieldsOf(row);
  return {
    webhookId: row.webhook_id,
    name,
    url,
    events,
    isActive,
    createdAt: row.created_at,
    ...(row.failing_since === null ? {} : { failingSince: iso(row.failing_since) }),
  };
}

/** `secret`: the current one, as `presentSecret` returns it. Fields without a value are absent, not null. */
export function presentWebhookDetail(row: WebhookRow, secret: string): WebhookDetail {
  return {
    ...presentWebhook(row),
    ...(row.description === null ? {} : { description: row.description }),
    secret,
    ...(row.off_reason === null ? {} : { offReason: row.off_reason }),
    updatedAt: row.updated_at,
  };
}

/** What the account has set; parses the stored list of kinds. `events` may contain `EVERY_EVENT`. */
export function fieldsOf(row: WebhookRow): WebhookFields {
  const events: string[] = JSON.parse(row.events);
  return {
    url: row.url,
    events,
    name: row.name,
    description: row.description,
    isActive: row.is_active === 1,
  };
}

export const DELIVERY_STATUSES = ['pending', 'succeeded', 'failed'] as const;
export type WebhookDeliveryStatus = (typeof DELIVERY_STATUSES)[number];

export interface WebhookDelivery {
  deliveryId: string;
  /** Absent when the event was deleted by retention. */
  eventId?: string;
  event?: string;
  status: WebhookDeliveryStatus;
  attempts: number;
  responseCode?: number;
  /** The first KiB. */
  responseBody?: string;
  error?: string;
  lastAttemptAt?: string;
  nextAttemptAt?: string;
  nextProbeAt?: string;
  createdAt: string;
}

/**
 * `pending` stands for `ready` and `waiting`. `nextAttemptAt` is present for pending deliveries only, not while a
 * restore holds them, and not once they are due: they then wait for a free call, or until `nextProbeAt` for the endpoint.
 */
export function presentDelivery(
  row: ListedWebhookDelivery,
  { now, nextProbeAt }: { now: number; nextProbeAt: number | null },
): WebhookDelivery {
  const status = row.state === 'ready' || row.state === 'waiting' ? 'pending' : row.state;
  return {
    deliveryId: row.delivery_id,
    ...(row.event_id === null ? {} : { eventId: row.event_id }),
    ...(row.kind === null ? {} : { event: row.kind }),
    status,
    attempts: row.attempts,
    ...(row.response_code === null ? {} : { responseCode: row.response_code }),
    ...(row.response_body === null ? {} : { responseBody: row.response_body }),
    ...(row.error === null ? {} : { error: row.error }),
    ...(row.attempted_at === null ? {} : { lastAttemptAt: iso(row.attempted_at) }),
    ...(status === 'pending' && row.due_at < HELD_BY_RESTORE ? nextCallOf(row.due_at, now, nextProbeAt) : {}),
    createdAt: iso(row.created_at),
  };
}

function nextCallOf(
  dueAt: number,
  now: number,
  nextProbeAt: number | null,
): Pick<WebhookDelivery, 'nextAttemptAt' | 'nextProbeAt'> {
  if (nextProbeAt !== null && dueAt <= nextProbeAt) return { nextProbeAt: iso(nextProbeAt) };
  return dueAt > now ? { nextAttemptAt: iso(dueAt) } : {};
}
