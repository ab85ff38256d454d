import { recordOf } from '../../core/record-of.ts';
import type { DataPolicy } from '../data-policy.ts';
import type { Database } from '../database/database.ts';
import { statements } from '../database/statements.ts';
import { OTHER_PROVIDER } from '../messages/hourly-counts.ts';
import { createPendingCounts, createRowLimit } from '../pending-counts.ts';
import { type BoundId, idNumbers, type StoredId } from '../rows/id-numbers.ts';

/*
 * Outcomes of messages by day (UTC), account, sending domain, source address and mailbox provider. The time to read them does not
 * depend on the number of messages.
 */

/** The column of each count. */
const COLUMNS = {
  /** Accepted messages. Their source address is chosen later. */
  volume: 'volume',
  /** Attempts by their result: each counts once. */
  delivered: 'delivered',
  deferred: 'deferred',
  hardBounced: 'hard_bounced',
  softBounced: 'soft_bounced',
  /** Attempts that the provider rejected or deferred because of the sender or the content. */
  blocked: 'blocked',
  complained: 'complained',
  unsubscribed: 'unsubscribed',
  /** The first open of a message by a person; `clicked` likewise. */
  opened: 'opened',
  clicked: 'clicked',
} as const;
export type ReputationCounter = keyof typeof COLUMNS;
export const REPUTATION_COUNTERS = Object.keys(COLUMNS) as readonly ReputationCounter[]; // the table has no other keys

export type ReputationCounts = Record<ReputationCounter, number>;

/** What a row counts. */
export interface ReputationKey {
  /** Epoch ms at which the day begins, UTC. */
  day: number;
  accountId: string;
  domainId: string;
  /** Name of an entry of `delivery.egress`; '': it has none, or is not known. */
  source: string;
  /** A known mailbox provider, or OTHER_PROVIDER. */
  provider: string;
}

export type ReputationRow = ReputationKey & ReputationCounts;

export const REPUTATION_COUNT_POLICY = {
  table: 'reputation_counts',
  personal: [],
  retention: {
    kind: 'reputationCounts',
    rows: 'timed',
    period: 'events',
    key: 'day, account, domain, source, provider',
    time: 'day',
  },
} as const satisfies DataPolicy;

/**
 * Maximum number of rows of one day and account. Above it, further combinations are counted for the provider `other` of
 * their domain: an account can have many domains.
 */
const MAX_ROWS_PER_DAY = 2000;

/** What units of work add to a counter. */
interface PendingCount {
  key: ReputationKey;
  counter: ReputationCounter;
  count: number;
}

type StoredCounts = Record<(typeof COLUMNS)[ReputationCounter], number>;
type StoredKey<Id> = { day: number; account: Id; domain: Id; source: string; provider: string };

/**
 * `reputation_counts`. Counts of open units are in memory: reads return them only after the writer has called `endUnit`
 * and `write`. `maxRowsPerDay`: rows of an account and day before further ones count for `other`.
 */
export function reputationCountTable(db: Database, maxRowsPerDay = MAX_ROWS_PER_DAY) {
  const sql = statements(db);
  const numbers = idNumbers(db);
  /** Adds to one column; most commits add to few of a row. */
  const increase = recordOf(REPUTATION_COUNTERS, (counter) =>
    sql.changed<[StoredKey<BoundId> & { count: number }]>(`
      UPDATE reputation_counts SET ${COLUMNS[counter]} = ${COLUMNS[counter]} + @count
      WHERE day = @day AND account = @account AND domain = @domain AND source = @source AND provider = @provider`),
  );
  const insert = sql.run<[StoredKey<BoundId> & StoredCounts]>(
    `INSERT INTO ${sql.row('reputation_counts')} ON CONFLICT DO NOTHING`,
  );
  const isFull = createRowLimit(
    maxRowsPerDay,
    sql.count<[day: number, account: BoundId, limit: number]>(
      'SELECT count(*) FROM (SELECT 1 FROM reputation_counts WHERE day = ? AND account = ? LIMIT +?)',
    ),
  );
  const ofDay = sql.all<[number, BoundId], StoredKey<StoredId> & StoredCounts>(
    'SELECT * FROM reputation_counts WHERE day = ? AND account = ?',
  );
  const pending = createPendingCounts<PendingCount>((one, added) => {
    one.count += added.count;
  });

  function store({
    key: { day, accountId, domainId, source, provider },
    counter,
    count,
  }: PendingCount): void {
    const key = {
      day,
      account: numbers.account.assign(accountId),
      domain: numbers.domain.assign(domainId),
      source,
      provider,
    };
    if (increase[counter]({ ...key, count })) return;
    const row = isFull(day, key.account) ? { ...key, provider: OTHER_PROVIDER } : key;
    insert({ ...row, ...toStored(emptyReputationCounts()) });
    increase[counter]({ ...row, count });
  }

  return {
    /** Counts one, in a unit of work. It is in the table when the unit is committed. */
    add: (key: ReputationKey, counter: ReputationCounter): void =>
      pending.add(idOf(key, counter), { key, counter, count: 1 }),
    /** For the writer, like `write` and `discard`. */
    endUnit: pending.endUnit,
    /** Writes the counts of all units of the open transaction. */
    write: (): void => {
      for (const one of pending.take()) store(one);
    },
    discard: pending.discard,
    /** The rows of an account and day. */
    ofDay: (day: number, accountId: string): ReputationRow[] =>
      ofDay(day, numbers.account.find(accountId)).map((row) => ({
        day: row.day,
        accountId,
        domainId: numbers.domain.id(row.domain),
        source: row.source,
        provider: row.provider,
        ...toCounts(row),
      })),
  };
}

function idOf(
  { day, accountId, domainId, source, provider }: ReputationKey,
  counter: ReputationCounter,
): string {
  return `${day} ${accountId} ${domainId} ${counter} ${provider} ${source}`;
}

/** A new object with 0 for every counter. */
export function emptyReputationCounts(): ReputationCounts {
  return {
    volume: 0,
    delivered: 0,
    deferred: 0,
    hardBounced: 0,
    softBounced: 0,
    blocked: 0,
    complained: 0,
    unsubscribed: 0,
    opened: 0,
    clicked: 0,
  };
}

function toStored(counts: ReputationCounts): StoredCounts {
  const { hardBounced, softBounced, ...others } = counts;
  return { ...others, hard_bounced: hardBounced, soft_bounced: softBounced };
}

function toCounts(row: StoredCounts): ReputationCounts {
  const counts = emptyReputationCounts();
  for (const counter of REPUTATION_COUNTERS) counts[counter] = row[COLUMNS[counter]];
  return counts;
}
