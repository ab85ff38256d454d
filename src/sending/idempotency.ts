import { createHash } from 'node:crypto';
import { type Refusal, refuse } from '../core/refusal.ts';
import type { Tables } from '../store/tables.ts';

/**
 * Idempotency keys: one key, one accepted message. While a request with a key is at work the key is reserved
 * in memory; when it is accepted its answer becomes a row in the same transaction as the message. A refusal,
 * an error or a crash leaves no row, so the key is free again; a crash after the commit finds the row.
 */
export interface IdempotencyKeys {
  /**
   * The stored answer of an earlier request, a refusal, or a reservation that the caller must `release`
   * when the request has been answered.
   */
  begin(use: KeyUse): StoredAnswer | Refusal | Reservation;
}

export interface KeyUse {
  accountId: string;
  /** `transactional/send`, … */
  endpoint: string;
  key: string;
  /** The parsed request body. */
  body: unknown;
}

export interface StoredAnswer {
  kind: 'stored';
  status: number;
  body: string;
}

export interface Reservation {
  kind: 'reserved';
  /** In the unit of work that accepts. Throws when another process took the key: the unit rolls back. */
  keep(tables: Tables, status: number, body: string): void;
  release(): void;
}

/** 1 to 255 printable characters; the quoted form of the IETF draft means the same key. Null when malformed. */
export function parseIdempotencyKey(header: string): string | null {
  const key = /^"(.*)"$/.exec(header)?.[1] ?? header;
  return /^[\x20-\x7e]{1,255}$/.test(key) ? key : null;
}

export function createIdempotencyKeys(settings: {
  tables: Tables;
  now: () => number;
  keepMs: number;
}): IdempotencyKeys {
  const { tables, now, keepMs } = settings;
  const reserved = new Set<string>();
  return {
    begin: ({ accountId, endpoint, key, body }) => {
      const name = `${accountId} ${endpoint} ${key}`;
      // First of all: what the table shows of a request that is worked on may not be on disk yet.
      if (reserved.has(name)) {
        return refuse('IDEMPOTENCY_IN_PROGRESS', 'A request with this Idempotency-Key is being worked on', {
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
        keep: (all, status, answer) => {
          const row = {
            account_id: accountId,
            endpoint,
            key,
            fingerprint,
            status,
            body: answer,
            expires_at: now() + keepMs,
          };
          all.idempotency.insert(row, now());
        },
        release: () => {
          reserved.delete(name);
        },
      };
    },
  };
}

/** JSON with the keys of every object in order (in the manner of RFC 8785): equal for equal requests. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}
