import type { Context } from '../store/context.ts';
import type { Tables } from '../store/tables.ts';
import type { WebhookRow } from '../store/webhooks.ts';

/*
 * Secrets of webhooks (Standard Webhooks): `whsec_` and 32 random bytes in base64 in the API, sealed on disk. The values of
 * headers that an account adds are sealed, too, because they are tokens in most cases.
 */

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
    /** The headers as the column stores them; null: there are none. */
    sealHeaders: (webhookId: string, headers: Readonly<Record<string, string>>): string | null => {
      const sealed = mapValues(headers, (value, name) =>
        seal.seal(Buffer.from(value), headerSealContext(webhookId, name)).toString('base64'),
      );
      return Object.keys(sealed).length === 0 ? null : JSON.stringify(sealed);
    },
    /** The headers that the account adds to the calls of a webhook. */
    headers: ({ webhook_id: webhookId, headers }: Pick<WebhookRow, 'webhook_id' | 'headers'>) =>
      mapValues(readHeaders(headers), (sealed, name) =>
        seal.open(Buffer.from(sealed, 'base64'), headerSealContext(webhookId, name)).toString(),
      ),
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

/** The context with which the value of a header is sealed. */
export function headerSealContext(webhookId: string, name: string): string {
  return `${webhookSealContext(webhookId)}:header:${name}`;
}

/** Reads the column: sealed values, in base64, by name. */
export function readHeaders(json: string | null): Record<string, string> {
  // Sound: only `sealHeaders` and the import, which checks it, write the column.
  return json === null ? {} : (JSON.parse(json) as Record<string, string>);
}

/** A copy with other values. */
export function mapValues(
  record: Readonly<Record<string, string>>,
  map: (value: string, name: string) => string,
): Record<string, string> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, map(value, name)]));
}
