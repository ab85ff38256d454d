import type { DataPolicy } from '../data-policy.ts';
import type { Database } from '../database/database.ts';
import { statements } from '../database/statements.ts';
import { createPendingCounts, createRowLimit } from '../pending-counts.ts';
import { type BoundId, idNumbers } from '../rows/id-numbers.ts';
import { type CountedOutcome, type HourSum, OUTCOME_CODES } from './hourly-counts.ts';

/* Outcomes of messages with a tag, by hour and account. Messages without tags have no rows. */

export const TAG_COUNT_POLICY = {
  table: 'tag_counts',
  personal: ['tag'],
  erasure: { stays: 'a label of many messages, counted with those of others' },
  retention: {
    kind: 'tagCounts',
    rows: 'timed',
    period: 'events',
    key: 'hour, account, tag, outcome_code',
    time: 'hour',
  },
} as const satisfies DataPolicy;

/** Rows of an account and hour. Above it, further combinations are not counted: tags are chosen by callers. */
export const MAX_TAG_ROWS_PER_HOUR = 2000;

/** Where a message is counted. */
export interface TagCount {
  /** Epoch ms at which the hour begins. */
  hour: number;
  accountId: string;
  tag: string;
  outcome: CountedOutcome;
}

interface StoredTagCount {
  hour: number;
  account: BoundId;
  tag: string;
  outcome_code: number;
  messages: number;
}

interface CountedTag extends TagCount {
  messages: number;
}

/**
 * `tag_counts`. Counts of open units are in memory: reads return them only after the writer has called `endUnit` and `write`.
 * `maxRows`: see MAX_TAG_ROWS_PER_HOUR.
 */
export function tagCountTable(db: Database, maxRows = MAX_TAG_ROWS_PER_HOUR) {
  const sql = statements(db);
  const { account } = idNumbers(db);
  const increase = sql.changed<[StoredTagCount]>(`
    UPDATE tag_counts SET messages = messages + @messages
    WHERE hour = @hour AND account = @account AND tag = @tag AND outcome_code = @outcome_code`);
  const insert = sql.run<[StoredTagCount]>(`INSERT INTO ${sql.row('tag_counts')}`);
  const isFull = createRowLimit(
    maxRows,
    sql.count<[hour: number, account: BoundId, limit: number]>(
      'SELECT count(*) FROM (SELECT 1 FROM tag_counts WHERE hour = ? AND account = ? LIMIT +?)',
    ),
  );
  const sums = sql.all<[number, BoundId, string], { outcome_code: number; messages: number }>(
    'SELECT outcome_code, messages FROM tag_counts WHERE hour = ? AND account = ? AND tag = ?',
  );
  const pending = createPendingCounts<CountedTag>((row, added) => {
    row.messages += added.messages;
  });

  function store({ hour, accountId, tag, outcome, messages }: CountedTag): void {
    const row = {
      hour,
      account: account.assign(accountId),
      tag,
      outcome_code: OUTCOME_CODES.code(outcome),
      messages,
    };
    if (!increase(row) && !isFull(hour, row.account)) insert(row);
  }

  return {
    /** Counts a message, in a unit of work. It is in the table when the unit is committed. */
    add: (count: TagCount): void => pending.add(idOf(count), { ...count, messages: 1 }),
    /** For the writer, like `write` and `discard`. */
    endUnit: pending.endUnit,
    /** Writes the counts of all units of the open transaction. */
    write: (): void => {
      for (const one of pending.take()) store(one);
    },
    discard: pending.discard,
    /** Sums of one hour. */
    sums: ({ hour, accountId, tag }: Omit<TagCount, 'outcome'>): HourSum[] =>
      sums(hour, account.find(accountId), tag).map(({ outcome_code, messages }) => ({
        name: '',
        outcome: OUTCOME_CODES.value(outcome_code),
        outcomeClass: '',
        messages,
      })),
  };
}

function idOf({ hour, accountId, tag, outcome }: TagCount): string {
  return `${hour} ${accountId} ${outcome} ${tag}`;
}
