import { iso, isoOrNull } from '../core/clock.ts';
import { type Refusal, refuse } from '../core/refusal.ts';
import { withoutNulls } from '../core/without-nulls.ts';
import type { WebhookFilter } from '../events/webhook-filter.ts';
import { HELD_BY_RESTORE } from '../store/messages/queue.ts';
import type { Tables } from '../store/tables.ts';
import type { ListedWebhookDelivery } from '../store/webhook-deliveries.ts';
import type { WebhookRow } from '../store/webhooks.ts';
import { verificationKey, type WebhookFormat } from './formats.ts';
import { presentSecret, readHeaders } from './secrets.ts';

/** What an account can set. */
export interface WebhookFields {
  url: string;
  /** Whose bodies its calls have. */
  format: WebhookFormat;
  events: string[];
  /** Null: all events of these kinds. */
  filter: WebhookFilter | null;
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

/** Webhooks and their deliveries as the API and the CLI present them. Fields without a value are absent. */
export type Webhook = ReturnType<typeof presentWebhook>;
export type WebhookDetail = ReturnType<typeof presentWebhookDetail>;
export type WebhookDelivery = ReturnType<typeof presentDelivery>;

/** Without description, secret and the values of headers. `failingSince`: all calls since then failed. */
export function presentWebhook(row: WebhookRow) {
  const { url, format, name, events, filter, isActive } = fieldsOf(row);
  const headerNames = Object.keys(readHeaders(row.headers));
  return {
    webhookId: row.webhook_id,
    name,
    url,
    events,
    isActive,
    createdAt: row.created_at,
    ...withoutNulls({
      format: format === 'postrider' ? null : format,
      filter,
      headerNames: headerNames.length === 0 ? null : headerNames,
      failingSince: isoOrNull(row.failing_since),
    }),
  };
}

/** `key`: the current one. `offReason`: why the service disabled it. */
export function presentWebhookDetail(row: WebhookRow, key: Buffer) {
  return {
    ...presentWebhook(row),
    secret: presentSecret(key),
    ...withoutNulls({
      verificationKey: row.format === 'sendgrid' ? verificationKey(key) : null,
      description: row.description,
      offReason: row.off_reason,
    }),
    updatedAt: row.updated_at,
  };
}

/** What the account has set; parses the stored list of kinds. `events` may contain `EVERY_EVENT`. */
export function fieldsOf(row: WebhookRow): WebhookFields {
  const events: string[] = JSON.parse(row.events);
  return {
    url: row.url,
    format: row.format,
    events,
    // Sound: only this module writes the column.
    filter: row.filter === null ? null : (JSON.parse(row.filter) as WebhookFilter),
    name: row.name,
    description: row.description,
    isActive: row.is_active === 1,
  };
}

export const DELIVERY_STATUSES = ['pending', 'succeeded', 'failed'] as const;
export type WebhookDeliveryStatus = (typeof DELIVERY_STATUSES)[number];

/**
 * `pending` stands for `ready` and `waiting`. `nextAttemptAt` is present for pending deliveries only, not while a
 * restore holds them, and not once they are due: they then wait for a free call, or until `nextProbeAt` for the endpoint.
 */
export function presentDelivery(
  row: ListedWebhookDelivery,
  { now, nextProbeAt }: { now: number; nextProbeAt: number | null },
) {
  const status: WebhookDeliveryStatus =
    row.state === 'ready' || row.state === 'waiting' ? 'pending' : row.state;
  const isHeld = status !== 'pending' || row.due_at >= HELD_BY_RESTORE;
  const probeAt = isHeld || nextProbeAt === null || row.due_at > nextProbeAt ? null : nextProbeAt;
  const isLater = !isHeld && probeAt === null && row.due_at > now;
  return withoutNulls({
    deliveryId: row.delivery_id,
    // Null when the event was deleted by retention.
    eventId: row.event_id,
    event: row.kind,
    status,
    attempts: row.attempts,
    responseCode: row.response_code,
    // The first KiB.
    responseBody: row.response_body,
    error: row.error,
    lastAttemptAt: isoOrNull(row.attempted_at),
    nextAttemptAt: isLater ? iso(row.due_at) : null,
    nextProbeAt: isoOrNull(probeAt),
    createdAt: iso(row.created_at),
  });
}
