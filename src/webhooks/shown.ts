import { iso } from '../core/clock.ts';
import type { ListedWebhookDelivery } from '../store/webhook-deliveries.ts';
import type { WebhookRow } from '../store/webhooks.ts';
import type { WebhookFields } from './form.ts';

/** Webhooks and their deliveries as callers and operators read them. */
export interface ShownWebhook {
  webhookId: string;
  name: string;
  url: string;
  events: string[];
  isActive: boolean;
  /** Epoch ms. */
  createdAt: number;
}

export interface WholeWebhook extends ShownWebhook {
  description?: string;
  secret: string;
  /** Why the service turned it off. */
  offReason?: 'gone' | 'failing';
  /** ISO 8601: nothing but failures since then. */
  failingSince?: string;
  updatedAt: number;
}

export function shownWebhook(row: WebhookRow): ShownWebhook {
  const { url, name, events, isActive } = fieldsOf(row);
  return { webhookId: row.webhook_id, name, url, events, isActive, createdAt: row.created_at };
}

export function wholeWebhook(row: WebhookRow, secret: string): WholeWebhook {
  return {
    ...shownWebhook(row),
    ...(row.description === null ? {} : { description: row.description }),
    secret,
    ...(row.off_reason === null ? {} : { offReason: row.off_reason }),
    ...(row.failing_since === null ? {} : { failingSince: iso(row.failing_since) }),
    updatedAt: row.updated_at,
  };
}

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
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

export interface ShownDelivery {
  deliveryId: string;
  /** Absent when the event is past its retention. */
  eventId?: string;
  event?: string;
  status: DeliveryStatus;
  attempts: number;
  responseCode?: number;
  /** Its first 1 KiB. */
  responseBody?: string;
  error?: string;
  lastAttemptAt?: string;
  nextAttemptAt?: string;
  createdAt: string;
}

export function shownDelivery(row: ListedWebhookDelivery): ShownDelivery {
  const pending = row.state === 'ready' || row.state === 'waiting';
  return {
    deliveryId: row.delivery_id,
    ...(row.event_id === null ? {} : { eventId: row.event_id }),
    ...(row.kind === null ? {} : { event: row.kind }),
    status: row.state === 'ready' || row.state === 'waiting' ? 'pending' : row.state,
    attempts: row.attempts,
    ...(row.response_code === null ? {} : { responseCode: row.response_code }),
    ...(row.response_body === null ? {} : { responseBody: row.response_body }),
    ...(row.error === null ? {} : { error: row.error }),
    ...(row.attempted_at === null ? {} : { lastAttemptAt: iso(row.attempted_at) }),
    ...(pending ? { nextAttemptAt: iso(row.due_at) } : {}),
    createdAt: iso(row.created_at),
  };
}
