import type { DataPolicy } from '../data-policy.ts';
import type { Database } from '../database/database.ts';

/**
 * How many messages each source address (an entry of `delivery.egress`) sent to each mailbox provider, by day (UTC).
 *
 * As in messages/hourly-counts, a unit of work counts in memory, and the writer adds the counts of all units of a commit
 * immediately before it, in the same transaction: many messages to one provider cost one statement. The counts of a unit
 * that is rolled back are dropped with it.
 */
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

type Pending = Map<string, EgressCountRow>;

/** A new object with 0 for every counter. */
export function emptyCounts(): EgressCounts {
  return { transactional: 0, marketing: 0, delivered: 0, throttled: 0, refused: 0, complained: 0 };
}

/**
 * `egress_counts`. Counts of open units are in memory: reads return them only after the writer has called `endUnit` and
 * `write`.
 */
export function egressCountTable(db: Database) {
  const add = db.prepare<EgressCountRow>(`
    INSERT INTO egress_counts (day, entry, provider, ${EGRESS_COUNTERS.join(', ')})
    VALUES (@day, @entry, @provider, ${EGRESS_COUNTERS.map((name) => `@${name}`).join(', ')})
    ON CONFLICT DO UPDATE SET ${EGRESS_COUNTERS.map((name) => `${name} = ${name} + excluded.${name}`).join(', ')}`);
  const ofDay = db.prepare<[number, string, number], EgressCountRow>(`
    SELECT day, entry, provider, ${EGRESS_COUNTERS.join(', ')} FROM egress_counts
    WHERE day = ? AND entry = ? ORDER BY provider LIMIT +?`);
  const one = db.prepare<[number, string, string], EgressCountRow>(`
    SELECT day, entry, provider, ${EGRESS_COUNTERS.join(', ')} FROM egress_counts
    WHERE day = ? AND entry = ? AND provider = ?`);

  /** Counts of the unit of work that is running, and of the earlier units in the open transaction. */
  const unit: Pending = new Map();
  const group: Pending = new Map();

  return {
    /** Counts in a unit of work; the counts are in the table when the unit is committed. */
    add: (key: EgressCountKey, counts: Partial<EgressCounts>): void => addTo(unit, key, counts),
    /** Ends a unit of work; a unit that is not committed was rolled back. For the writer. */
    endUnit: (isCommitted: boolean): void => {
      if (unit.size === 0) return;
      if (isCommitted) for (const row of unit.values()) addTo(group, row, row);
      unit.clear();
    },
    /** Writes the counts of all units of the open transaction. For the writer. */
    write: (): void => {
      for (const row of group.values()) add.run(row);
      group.clear();
    },
    /** Drops the counts of a transaction that was rolled back. For the writer. */
    discard: (): void => {
      unit.clear();
      group.clear();
    },
    /** The counts of an entry on one day, by provider, at most `limit`. */
    ofDay: (day: number, entry: string, limit: number): EgressCountRow[] => ofDay.all(day, entry, limit),
    /** Null when nothing was counted. */
    get: ({ day, entry, provider }: EgressCountKey): EgressCountRow | null =>
      one.get(day, entry, provider) ?? null,
  };
}

function addTo(
  pending: Pending,
  { day, entry, provider }: EgressCountKey,
  counts: Partial<EgressCounts>,
): void {
  const key = `${day} ${entry} ${provider}`;
  let row = pending.get(key);
  if (row === undefined) {
    row = { day, entry, provider, ...emptyCounts() };
    pending.set(key, row);
  }
  for (const counter of EGRESS_COUNTERS) row[counter] += counts[counter] ?? 0;
}
