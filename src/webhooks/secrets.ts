import type { Random } from '../core/random.ts';
import type { Seal } from '../core/seal.ts';
import type { Tables } from '../store/tables.ts';

/* Secrets of webhooks (Standard Webhooks): `whsec_` and 32 random bytes in base64 in the API, sealed on disk. */

const PREFIX = 'whsec_';
const KEY_BYTES = 32;

export interface WebhookSecrets {
  /** Creates a secret for this webhook, sealed. */
  create(webhookId: string): Buffer;
  /** All keys that sign at `now`, the current one first. */
  keys(tables: Tables, webhook: { number: number; webhook_id: string }, now: number): Buffer[];
}

/**
 * Keeps no state and caches no key: `keys` reads and decrypts at each call, and throws when a secret cannot be
 * decrypted with the master key.
 */
export function createWebhookSecrets({ seal, random }: { seal: Seal; random: Random }): WebhookSecrets {
  return {
    create: (webhookId) => seal.seal(random.bytes(KEY_BYTES), webhookSealContext(webhookId)),
    keys: (tables, { number, webhook_id: webhookId }, now) =>
      tables.webhooks
        .secrets(number, now)
        .map(({ secret }) => seal.open(secret, webhookSealContext(webhookId))),
  };
}

/** The secret as the API presents it. */
export function presentSecret(key: Buffer): string {
  return PREFIX + key.toString('base64');
}

/** The context with which a secret is sealed. */
export function webhookSealContext(webhookId: string): string {
  return `webhook:${webhookId}`;
}
