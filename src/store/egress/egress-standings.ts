import type { DataPolicy } from '../data-policy.ts';
import type { Database } from '../database.ts';

/** Where the warm-up of a source address differs from the configured schedule. */
export interface EgressWarmupRow {
  /** Name of the entry of `delivery.egress`. */
  entry: string;
  /** '': all providers; a row of one provider counts in addition. */
  provider: string;
  /** `warmup.started` of the entry when the row was written; with another one the row is obsolete. */
  started: string;
  /** Days behind the schedule; negative: ahead. */
  shift: number;
  finished: 0 | 1;
  changed_at: number;
  reason: string;
}

/** A source address that a provider refuses. */
export interface EgressHealthRow {
  entry: string;
  provider: string;
  /** Epoch ms, like `probe_at`. */
  since: number;
  /** When the next message may be sent from the address. */
  probe_at: number;
  /** Refusals in a row. */
  failures: number;
  /** Accepted probes in a row. */
  passed: number;
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

export function egressWarmupTable(db: Database) {
  const put = db.prepare<EgressWarmupRow>(`
    INSERT INTO egress_warmup (entry, provider, started, shift, finished, changed_at, reason)
    VALUES (@entry, @provider, @started, @shift, @finished, @changed_at, @reason)
    ON CONFLICT DO UPDATE SET started = excluded.started, shift = excluded.shift, finished = excluded.finished,
      changed_at = excluded.changed_at, reason = excluded.reason`);
  const all = db.prepare<[], EgressWarmupRow>(
    'SELECT entry, provider, started, shift, finished, changed_at, reason FROM egress_warmup ORDER BY entry, provider',
  );
  const remove = db.prepare<[string]>('DELETE FROM egress_warmup WHERE entry = ?');
  return {
    put: (row: EgressWarmupRow): void => void put.run(row),
    all: (): EgressWarmupRow[] => all.all(),
    /** Removes the rows of an entry: for all providers and for each one. */
    removeAll: (entry: string): void => void remove.run(entry),
  };
}

export function egressHealthTable(db: Database) {
  const put = db.prepare<EgressHealthRow>(`
    INSERT INTO egress_health (entry, provider, since, probe_at, failures, passed, reply)
    VALUES (@entry, @provider, @since, @probe_at, @failures, @passed, @reply)
    ON CONFLICT DO UPDATE SET since = excluded.since, probe_at = excluded.probe_at, failures = excluded.failures,
      passed = excluded.passed, reply = excluded.reply`);
  const all = db.prepare<[], EgressHealthRow>(
    'SELECT entry, provider, since, probe_at, failures, passed, reply FROM egress_health ORDER BY entry, provider',
  );
  const remove = db.prepare<[string, string]>('DELETE FROM egress_health WHERE entry = ? AND provider = ?');
  return {
    put: (row: EgressHealthRow): void => void put.run(row),
    all: (): EgressHealthRow[] => all.all(),
    remove: (entry: string, provider: string): void => void remove.run(entry, provider),
  };
}
