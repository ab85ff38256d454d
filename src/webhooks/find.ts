import { type Refusal, refuse } from '../core/refusal.ts';
import type { Tables } from '../store/tables.ts';
import type { WebhookRow } from '../store/webhooks.ts';

/** The same refusal for an unknown webhook and for another account's. */
export function findWebhook(tables: Tables, accountId: string, webhookId: string): WebhookRow | Refusal {
  return (
    tables.webhooks.get(accountId, webhookId) ??
    refuse('WEBHOOK_NOT_FOUND', `there is no webhook ${webhookId}`)
  );
}
