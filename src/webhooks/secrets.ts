import type { Random } from '../core/random.ts';
import { mac, type Seal } from '../core/seal.ts';
import type { Tables } from '../store/tables.ts';

/**
 * What webhooks sign with, as Standard Webhooks has it: `whsec_` and 32 random bytes in base64 for the
 * caller, sealed bytes on disk. Who holds the secret knows that a call came from here, and that nobody
 * changed it or kept it for later.
 */
const PREFIX = 'whsec_';
const BYTES = 32;

export interface WebhookSecrets {
  /** Sealed, to be stored for this webhook. */
  make(webhookId: string): Buffer;
  /** All keys that sign at this time, the current one first. */
  keys(tables: Tables, webhook: { number: number; webhook_id: string }, now: number): Buffer[];
}

export function createWebhookSecrets({ seal, random }: { seal: Seal; random: Random }): WebhookSecrets {
  return {
    make: (webhookId) => seal.seal(random.bytes(BYTES), sealContext(webhookId)),
    keys: (tables, { number, webhook_id: webhookId }, now) =>
      tables.webhooks.secrets(number, now).map(({ secret }) => seal.open(secret, sealContext(webhookId))),
  };
}

/** As its account sees it. */
export function writtenSecret(key: Buffer): string {
  return PREFIX + key.toString('base64');
}

export interface Signed {
  /** The event's id: the same on every try, so that a receiver can tell a repetition. */
  id: string;
  body: string;
  /** Epoch ms of this try; receivers refuse what is minutes old. */
  now: number;
}

/** The three headers; one signature for each key, so that a receiver may change its secret when it likes. */
export function signatureHeaders(keys: readonly Buffer[], { id, body, now }: Signed): Record<string, string> {
  const timestamp = String(Math.floor(now / 1000));
  const signatures = keys.map((key) => `v1,${mac(key, `${id}.${timestamp}.${body}`).toString('base64')}`);
  return {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': signatures.join(' '),
  };
}

function sealContext(webhookId: string): string {
  return `webhook:${webhookId}`;
}
