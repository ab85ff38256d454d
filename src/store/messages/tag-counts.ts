import type { DataPolicy } from '../data-policy.ts';
import type { Database } from '../database/database.ts';
import { statements } from '../database/statements.ts';
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
/** Full hours of accounts in memory. */
const MAX_REMEMBERED = 1000;

/** Where a message is counted. */
export interface TagCount {
  /** Epoch ms at which the hour begins. */
  hour: number;
  accountId: string;
  tag: string;
  outcome: CountedOutcome;
}

/** `tag_counts`. `maxRows`: see MAX_TAG_ROWS_PER_HOUR. */
export function tagCountTable(db: Database, maxRows = MAX_TAG_ROWS_PER_HOUR) {
  const sql = statements(db);
  const { account } = idNumbers(db);
  const increase = sql.changed<[number, BoundId, string, number]>(
    'UPDATE tag_counts SET messages = messages + 1 WHERE hour = ? AND account = ? AND tag = ? AND outcome_code = ?',
  );
  const insert = sql.run<[number, BoundId, string, number]>(
    'INSERT INTO tag_counts (hour, account, tag, outcome_code, messages) VALUES (?, ?, ?, ?, 1)',
  );
  const rowsOf = sql.count<[number, BoundId, number]>(
    'SELECT count(*) FROM (SELECT 1 FROM tag_counts WHERE hour = ? AND account = ? LIMIT +?)',
  );
  const sums = sql.all<[number, BoundId, string], { outcome_code: number; messages: number }>(
    'SELECT outcome_code, messages FROM tag_counts WHERE hour = ? AND account = ? AND tag = ?',
  );
  const full = new Set<string>();

  function isFull(hour: number, number: BoundId): boolean {
    const key = `${hour} ${number}`;
    if (full.has(key)) return true;
    if (rowsOf(hour, number, maxRows) < maxRows) return false;
    if (full.size >= MAX_REMEMBERED) full.clear();
    full.add(key);
    return true;
  }

  return {
    /** Counts a message, in a unit of work. */
    add: ({ hour, accountId, tag, outcome }: TagCount): void => {
      const number = account.assign(accountId);
      const code = OUTCOME_CODES.code(outcome);
      if (!increase(hour, number, tag, code) && !isFull(hour, number)) insert(hour, number, tag, code);
    },
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
