import type { DataPolicy } from '../data-policy.ts';
import type { Database } from '../database/database.ts';
import { statements } from '../database/statements.ts';
import { createPendingCounts } from '../pending-counts.ts';

/* How many messages each source address (an entry of `delivery.egress`) sent to each mailbox provider, by day (UTC). */

/** What is counted of each source address at each provider. */
export const EGRESS_COUNTERS = [
  /** Attempts, by stream, to which a server of the provider replied. */
  'transactional',
  'marketing',
  'delivered',
  /** Attempts that the provider deferred because of the sender: rate, reputation, policy. */
  'throttled',
  /** Attempts that the provider refused because of the source address. */
  'refused',
  'complained',
] as const;
export type EgressCounter = (typeof EGRESS_COUNTERS)[number];

export interface EgressCountKey {
  /** Epoch ms at which the day begins, UTC. */
  day: number;
  /** Name of the entry. */
  entry: string;
  provider: string;
}

export type EgressCounts = Record<EgressCounter, number>;
export type EgressCountRow = EgressCountKey & EgressCounts;

export const EGRESS_COUNT_POLICY = {
  table: 'egress_counts',
  personal: ['provider'],
  erasure: { stays: 'the domain of recipients without their mailbox, counted with that of others' },
  retention: {
    kind: 'egressCounts',
    rows: 'timed',
    period: 'events',
    key: 'day, entry, provider',
    time: 'day',
  },
} as const satisfies DataPolicy;

/** A new object with 0 for every counter. */
export function emptyCounts(): EgressCounts {
  return { transactional: 0, marketing: 0, delivered: 0, throttled: 0, refused: 0, complained: 0 };
}

/**
 * `egress_counts`. Counts of open units are in memory: reads return them only after the writer has called `endUnit` and
 * `write`.
 */
export function egressCountTable(db: Database) {
  const sql = statements(db);
  const add = sql.run<[EgressCountRow]>(`
    INSERT INTO ${sql.row('egress_counts')}
    ON CONFLICT DO UPDATE SET ${EGRESS_COUNTERS.map((name) => `${name} = ${name} + excluded.${name}`).join(', ')}`);
  const one = sql.get<[number, string, string], EgressCountRow>(`
    SELECT * FROM egress_counts WHERE day = ? AND entry = ? AND provider = ?`);

  const pending = createPendingCounts<EgressCountRow>((row, added) => {
    for (const counter of EGRESS_COUNTERS) row[counter] += added[counter];
  });

  return {
    /** Counts in a unit of work; the counts are in the table when the unit is committed. */
    add: ({ day, entry, provider }: EgressCountKey, counts: Partial<EgressCounts>): void =>
      pending.add(`${day} ${entry} ${provider}`, { day, entry, provider, ...emptyCounts(), ...counts }),
    /** For the writer, like `write` and `discard`. */
    endUnit: pending.endUnit,
    /** Writes the counts of all units of the open transaction. */
    write: (): void => {
      for (const row of pending.take()) add(row);
    },
    discard: pending.discard,
    /** The counts of an entry on one day, by provider, at most `limit`. */
    ofDay: sql.all<[day: number, entry: string, limit: number], EgressCountRow>(`
      SELECT * FROM egress_counts WHERE day = ? AND entry = ? ORDER BY provider LIMIT +?`),
    /** Null when nothing was counted. */
    get: ({ day, entry, provider }: EgressCountKey): EgressCountRow | null => one(day, entry, provider),
  };
}
