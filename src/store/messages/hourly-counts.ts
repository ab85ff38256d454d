import { HOUR } from '../../core/clock.ts';
import type { DataPolicy } from '../data-policy.ts';
import type { Database } from '../database/database.ts';
import { statements } from '../database/statements.ts';
import type { Stream } from '../domains/domains.ts';
import { createPendingCounts, createRowLimit } from '../pending-counts.ts';
import { type BoundId, idNumbers, type StoredId } from '../rows/id-numbers.ts';
import { createCodes, STATUS_CODES, USE_CASE_CODES } from '../rows/row-keys.ts';

/*
 * Outcomes of messages by hour, account, sending domain, provider and stream. The time to read them does not depend on the
 * number of messages.
 */

/** What is counted. */
export const COUNTED_OUTCOMES = [
  'accepted',
  'delivered',
  /** Each attempt that failed temporarily. */
  'deferred',
  'bounced',
  'failed',
  'cancelled',
  'complained',
  /** The first open of a message by a person; `clicked` likewise. */
  'opened',
  'clicked',
  'unsubscribed',
] as const;
export type CountedOutcome = (typeof COUNTED_OUTCOMES)[number];

/** The codes are stored: outcomes are only appended. */
export const OUTCOME_CODES = createCodes(0, COUNTED_OUTCOMES);

/** The row in which a message is counted. `outcomeClass`: the class of a bounce, a deferral or a failure; else ''. */
export interface CountKey {
  /** Epoch ms at which the hour begins. */
  hour: number;
  accountId: string;
  domainId: string;
  provider: string;
  stream: Stream;
  outcome: CountedOutcome;
  outcomeClass: string;
}

export type CountedMessages = CountKey & { messages: number };

export const COUNT_DIMENSIONS = ['account', 'domain', 'provider'] as const;
export type CountDimension = (typeof COUNT_DIMENSIONS)[number];

/** A sum over one hour. `name`: the account, domain or provider; '' when they are not distinguished. */
export interface HourSum {
  name: string;
  outcome: CountedOutcome;
  outcomeClass: string;
  messages: number;
}

export interface HourFilter {
  /** Epoch ms at which the hour begins. */
  hour: number;
  /** Default: all accounts. */
  accountId?: string | undefined;
}

export const HOURLY_COUNT_POLICY = {
  table: 'hourly_counts',
  personal: ['provider'],
  erasure: { stays: 'the domain of recipients without their mailbox, counted with that of others' },
  retention: {
    kind: 'hourlyCounts',
    rows: 'timed',
    period: 'events',
    key: 'hour, account, provider, domain, stream_code, outcome_code, class',
    time: 'hour',
  },
} as const satisfies DataPolicy;

/** The provider of recipient domains that are not counted separately. */
export const OTHER_PROVIDER = 'other';
/**
 * Maximum number of rows of one hour and account. Above it, further combinations are counted for the provider `other`:
 * recipient domains are chosen by callers, and must not fill the table.
 */
const MAX_ROWS_PER_HOUR = 500;
/** The number up to which the deferred messages of one account are counted. */
export const MAX_DEFERRED = 1_000_000;

/** The beginning of the hour, epoch ms. */
export function hourOf(at: number): number {
  return at - (at % HOUR);
}

interface StoredCount {
  hour: number;
  account: BoundId;
  provider: string;
  domain: BoundId;
  stream_code: number;
  outcome_code: number;
  class: string;
  messages: number;
}

/**
 * `hourly_counts`. Counts of open units are in memory: reads return them only after the writer has called `endUnit` and
 * `write`. `maxRowsPerHour`: rows of an account and hour before further ones count for `other`.
 */
export function hourlyCountTable(db: Database, maxRowsPerHour = MAX_ROWS_PER_HOUR) {
  const sql = statements(db);
  const numbers = idNumbers(db);
  const increase = sql.changed<[StoredCount]>(`
    UPDATE hourly_counts SET messages = messages + @messages
    WHERE hour = @hour AND account = @account AND provider = @provider AND domain = @domain
      AND stream_code = @stream_code AND outcome_code = @outcome_code AND class = @class`);
  const insert = sql.run<[StoredCount]>(`
    INSERT INTO ${sql.row('hourly_counts')}
    ON CONFLICT DO UPDATE SET messages = messages + excluded.messages`);
  const isFull = createRowLimit(
    maxRowsPerHour,
    sql.count<[hour: number, account: BoundId, limit: number]>(
      'SELECT count(*) FROM (SELECT 1 FROM hourly_counts WHERE hour = ? AND account = ? LIMIT +?)',
    ),
  );
  const sums = new Map(
    [null, ...COUNT_DIMENSIONS].flatMap((dimension) =>
      [true, false].map((ofAccount) => [`${dimension} ${ofAccount}`, prepareSums(dimension, ofAccount)]),
    ),
  );
  const deferred = sql.count<[BoundId, number]>(`
    SELECT count(*) FROM (SELECT 1 FROM messages INDEXED BY messages_by_status
      WHERE account = ? AND status_code = ${STATUS_CODES.sql('deferred')}
        AND status_code <> ${STATUS_CODES.sql('delivered')} LIMIT +?)`);

  function prepareSums(dimension: CountDimension | null, ofAccount: boolean) {
    return db.prepare<
      { hour: number; account?: BoundId },
      { name: StoredId; outcome_code: number; class: string; messages: number }
    >(`
      SELECT ${dimension ?? "''"} AS name, outcome_code, class, sum(messages) AS messages
      FROM hourly_counts WHERE hour = @hour ${ofAccount ? 'AND account = @account' : ''}
      GROUP BY name, outcome_code, class`);
  }

  const pending = createPendingCounts<CountedMessages>((row, added) => {
    row.messages += added.messages;
  });

  function store({ hour, accountId, domainId, provider, stream, outcome, ...rest }: CountedMessages): void {
    const row: StoredCount = {
      hour,
      account: numbers.account.assign(accountId),
      provider,
      domain: numbers.domain.assign(domainId),
      stream_code: USE_CASE_CODES.code(stream),
      outcome_code: OUTCOME_CODES.code(outcome),
      class: rest.outcomeClass,
      messages: rest.messages,
    };
    if (increase(row)) return;
    insert(isFull(hour, row.account) ? { ...row, provider: OTHER_PROVIDER } : row);
  }

  return {
    /** Counts messages, in a unit of work. They are in the table when the unit is committed. */
    add: (key: CountKey, messages = 1): void => pending.add(idOf(key), { messages, ...key }),
    /** For the writer, like `write` and `discard`. */
    endUnit: pending.endUnit,
    /** Writes the counts of all units of the open transaction and returns them. */
    write: (): CountedMessages[] => {
      const counted = pending.take();
      for (const one of counted) store(one);
      return counted;
    },
    discard: pending.discard,
    /** The first hour with counts from `hour` on, epoch ms; null: there is none. */
    nextHour: sql.value<[hour: number], number>(
      'SELECT hour FROM hourly_counts WHERE hour >= ? ORDER BY hour LIMIT 1',
    ),
    /** Sums of one hour, by the values of `dimension`; null: all together. */
    sums: ({ hour, accountId }: HourFilter, dimension: CountDimension | null): HourSum[] => {
      const statement = sums.get(`${dimension} ${accountId !== undefined}`);
      if (statement === undefined) throw new Error(`there are no sums by ${dimension}`);
      const account = accountId === undefined ? {} : { account: numbers.account.find(accountId) };
      return statement
        .all({ hour, ...account })
        .map(({ name, outcome_code, class: outcomeClass, messages }) => ({
          name:
            dimension === 'account' || dimension === 'domain' ? numbers[dimension].id(name) : String(name),
          outcome: OUTCOME_CODES.value(outcome_code),
          outcomeClass,
          messages,
        }));
    },
    /** Messages of an account that are deferred now, counted up to MAX_DEFERRED. */
    deferredNow: (accountId: string): number => deferred(numbers.account.find(accountId), MAX_DEFERRED),
  };
}

function idOf({ hour, accountId, domainId, provider, stream, outcome, outcomeClass }: CountKey): string {
  return `${hour} ${accountId} ${domainId} ${stream} ${outcome} ${outcomeClass} ${provider}`;
}
