import type { DataPolicy } from '../data-policy.ts';
import type { Database } from '../database/database.ts';
import { statements } from '../database/statements.ts';

/** Where the warm-up of a source address differs from the configured schedule. */
export interface EgressWarmupRow {
  /** Name of the entry of `delivery.egress`. */
  entry: string;
  /** '': all providers; a row of one provider counts in addition. */
  provider: string;
  /** `warmup.started` of the entry when the row was written; the row is obsolete once it differs. */
  started: string;
  /** Days behind the schedule; negative: ahead. */
  shift: number;
  finished: 0 | 1;
  changed_at: number;
  reason: string;
}

/** A source address that a provider refuses. */
export interface EgressHealthRow {
  /** Name of the entry of `delivery.egress`; '': the address that the system chooses. */
  entry: string;
  /** The shaping profile, the MX hosts or the provider that refuses the address. */
  provider: string;
  /** Epoch ms, like `probe_at`. */
  since: number;
  /** When the next message may be sent from the address. */
  probe_at: number;
  /** Refusals in a row. */
  failures: number;
  /** Accepted probes in a row. */
  passed: number;
  /** Mail that only this address can send waits. */
  blocked: 0 | 1;
  /** The last refusal, without mail addresses. */
  reply: string;
}

const STAYS = { stays: 'the domain of recipients without their mailbox' } as const;

export const EGRESS_WARMUP_POLICY = {
  table: 'egress_warmup',
  personal: ['provider'],
  erasure: STAYS,
  retention: { until: 'the warm-up is reset, or the entry or its start changes' },
} as const satisfies DataPolicy;

export const EGRESS_HEALTH_POLICY = {
  table: 'egress_health',
  personal: ['provider'],
  erasure: STAYS,
  retention: { until: 'the provider accepts mail from the address again, or the entry is removed' },
} as const satisfies DataPolicy;

/** A table with one row for each entry and provider. */
function standings<Row extends object>(db: Database, table: string) {
  const sql = statements(db);
  return {
    /** Inserts or replaces the row of an entry and a provider. */
    put: sql.run<[row: Row]>(`INSERT OR REPLACE INTO ${sql.row(table)}`),
    /** Null: there is none. */
    get: sql.get<[entry: string, provider: string], Row>(
      `SELECT * FROM ${table} WHERE entry = ? AND provider = ?`,
    ),
    all: sql.all<[], Row>(`SELECT * FROM ${table} ORDER BY entry, provider`),
  };
}

/**
 * `egress_warmup`, by entry and provider. `all` reads the whole table, which is bounded by the entries and providers
 * that an operator or the service adjusted.
 */
export function egressWarmupTable(db: Database) {
  const remove = db.prepare<[string]>('DELETE FROM egress_warmup WHERE entry = ?');
  return {
    ...standings<EgressWarmupRow>(db, 'egress_warmup'),
    /** When a row was last changed, epoch ms; 0: there is none. */
    changedAt: statements(db).count('SELECT coalesce(max(changed_at), 0) FROM egress_warmup'),
    /** Removes the rows of an entry: for all providers and for each one. */
    removeAll: (entry: string): void => void remove.run(entry),
  };
}

/**
 * `egress_health`, by entry and provider. `all` reads the whole table, which has rows only while a provider refuses an
 * address.
 */
export function egressHealthTable(db: Database) {
  const remove = db.prepare<[string, string]>('DELETE FROM egress_health WHERE entry = ? AND provider = ?');
  return {
    ...standings<EgressHealthRow>(db, 'egress_health'),
    remove: (entry: string, provider: string): void => void remove.run(entry, provider),
  };
}
