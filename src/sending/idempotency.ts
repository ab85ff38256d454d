import { createHash } from 'node:crypto';
import { type Refusal, refuse } from '../core/refusal.ts';
import type { Tables } from '../store/tables.ts';

export interface KeyUse {
  accountId: string;
  /** `transactional/send`, … */
  endpoint: string;
  key: string;
  /** The parsed request body. */
  body: unknown;
}

export interface StoredResponse {
  kind: 'stored';
  status: number;
  body: string;
}

export interface Reservation {
  kind: 'reserved';
  /**
   * Called in the unit of work that stores the messages. Throws if another process has used the key, so that the unit of
   * work is rolled back.
   */
  store(tables: Tables, status: number, body: string): void;
  release(): void;
}

/**
 * Parses the key: 1 to 255 printable characters; the quoted form of the IETF draft is the same key. Null when malformed.
 */
export function parseIdempotencyKey(header: string): string | null {
  const key = /^"(.*)"$/.exec(header)?.[1] ?? header;
  return /^[\x20-\x7e]{1,255}$/.test(key) ? key : null;
}

/**
 * Idempotency keys: each key accepts one message. While a request is processed its key is reserved in memory; when it
 * is accepted, its response is stored in the same transaction as the message. After a refusal, an error or a crash
 * there is no row, so the key can be used again. Begins without reservations. They exclude concurrent requests in this
 * process; those of another one fail at the primary key of the table. `now`: epoch ms.
 */
export function createIdempotencyKeys(deps: {
  tables: Tables;
  now: () => number;
  /** How long responses are stored. */
  lifetimeMs: number;
}) {
  const { tables, now, lifetimeMs } = deps;
  const reserved = new Set<string>();
  return {
    /**
     * Returns the stored response of an earlier request, a refusal, or a reservation that the caller must release after
     * the response.
     */
    begin: ({ accountId, endpoint, key, body }: KeyUse): StoredResponse | Refusal | Reservation => {
      const name = `${accountId} ${endpoint} ${key}`;
      // Checked before the table: the row of a request in progress may not be on disk yet.
      if (reserved.has(name)) {
        return refuse('IDEMPOTENCY_IN_PROGRESS', 'A request with this Idempotency-Key is in progress', {
          retryAfter: 1,
        });
      }
      const fingerprint = createHash('sha256').update(canonicalJson(body)).digest();
      const stored = tables.idempotency.get(accountId, endpoint, key, now());
      if (stored !== null) {
        return stored.fingerprint.equals(fingerprint)
          ? { kind: 'stored', status: stored.status, body: stored.body }
          : refuse('IDEMPOTENCY_KEY_REUSED', 'This Idempotency-Key was used with a different request body');
      }
      reserved.add(name);
      return {
        kind: 'reserved',
        store: (tx, status, response) => {
          const row = {
            account_id: accountId,
            endpoint,
            key,
            fingerprint,
            status,
            body: response,
            expires_at: now() + lifetimeMs,
          };
          tx.idempotency.insert(row, now());
        },
        release: () => {
          reserved.delete(name);
        },
      };
    },
  };
}

export type IdempotencyKeys = ReturnType<typeof createIdempotencyKeys>;

/** JSON with sorted keys, as in RFC 8785: equal for equal requests. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}
