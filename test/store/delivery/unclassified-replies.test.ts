import { expect, it } from 'vitest';
import { unclassifiedReplyTable } from '../../../src/store/delivery/unclassified-replies.ts';
import { startStore } from '../../support/store.ts';

const row = (text: string, at: number, replies = 1) => ({
  code: 451,
  enhanced: '',
  phase: 'rcpt',
  text,
  host: `mx${at}.test`,
  replies,
  first_at: at,
  last_at: at,
});

it('adds to the count of a stored reply, and lists the most frequent first', () => {
  const { tables } = startStore();
  tables.unclassifiedReplies.add([row('mumble', 1, 2), row('grumble', 2)]);
  tables.unclassifiedReplies.add([row('grumble', 3, 4)]);
  expect(tables.unclassifiedReplies.frequent(10)).toEqual([
    { ...row('grumble', 2, 5), host: 'mx3.test', last_at: 3 },
    row('mumble', 1, 2),
  ]);
  expect(tables.unclassifiedReplies.frequent(1)).toHaveLength(1);
});

it('deletes the replies that were received least recently when there are too many', () => {
  const { db } = startStore();
  const table = unclassifiedReplyTable(db, 2);
  table.add([row('a', 1), row('b', 2), row('c', 3)]);
  table.add([row('b', 4)]);
  table.add([row('d', 5)]);
  expect(table.frequent(10).map(({ text }) => text)).toEqual(['b', 'd']);
});
