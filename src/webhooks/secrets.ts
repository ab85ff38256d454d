import type { Context } from '../store/context.ts';
import type { Tables } from '../store/tables.ts';

/* Secrets of webhooks (Standard Webhooks): `whsec_` and 32 random bytes in base64 in the API, sealed on disk. */

const PREFIX = 'whsec_';
const KEY_BYTES = 32;

/**
 * Keeps no state and caches no key: `keys` reads and decrypts at each call, and throws when a secret cannot be
 * decrypted with the master key.
 */
export function createWebhookSecrets({ seal, random }: Pick<Context, 'seal' | 'random'>) {
  return {
    /** Creates a secret for this webhook, sealed. */
    create: (webhookId: string): Buffer => seal.seal(random.bytes(KEY_BYTES), webhookSealContext(webhookId)),
    /** All keys that sign at `now`, the current one first. */
    keys: (
      tables: Tables,
      { number, webhook_id: webhookId }: { number: number; webhook_id: string },
      now: number,
    ): Buffer[] =>
      tables.webhooks
        .secrets(number, now)
        .map(({ secret }) => seal.open(secret, webhookSealContext(webhookId))),
  };
}

export type WebhookSecrets = ReturnType<typeof createWebhookSecrets>;

/** The secret as the API presents it. */
export function presentSecret(key: Buffer): string {
  return PREFIX + key.toString('base64');
}

/** The context with which a secret is sealed. */
export function webhookSealContext(webhookId: string): string {
  return `webhook:${webhookId}`;
}
