import { expect, it } from 'vitest';
import { writeLabels } from '../../src/store/messages/labels.ts';
import { tagCountTable } from '../../src/store/messages/tag-counts.ts';
import { enqueue, startStore } from '../support/store.ts';

it('counts the bytes of tags and deletes their rows with the message', () => {
  const { db, tables, clock } = startStore();
  const bytes = () => db.prepare('SELECT coalesce(sum(bytes), 0) FROM stored_bytes').pluck().get();
  const tags = () => db.prepare('SELECT tag FROM message_tags ORDER BY tag').pluck().all();
  enqueue(tables, clock.now());
  const before = bytes();
  const labels = writeLabels({ tags: ['b', 'a'], metadata: { c: 'd' } });
  const { seq } = enqueue(tables, clock.now(), { labels });
  const metadataOnly = enqueue(tables, clock.now(), { labels: writeLabels({ metadata: { c: 'd' } }) });
  expect(tags()).toEqual(['a', 'b']);
  expect(bytes()).toBeGreaterThan(Number(before));
  tables.queue.remove(seq);
  tables.queue.remove(metadataOnly.seq);
  db.prepare('DELETE FROM messages WHERE seq IN (?, ?)').run(seq, metadataOnly.seq);
  expect([tags(), bytes()]).toEqual([[], before]);
});

it('counts a limited number of tags in an hour', () => {
  const { db, clock } = startStore();
  const counts = tagCountTable(db, 2);
  const hour = clock.now();
  for (const tag of ['a', 'b', 'c', 'a'])
    counts.add({ hour, accountId: 'acct_one', tag, outcome: 'accepted' });
  counts.endUnit(true);
  counts.write();
  const count = (tag: string) => counts.sums({ hour, accountId: 'acct_one', tag })[0]?.messages;
  expect(['a', 'b', 'c'].map(count)).toEqual([2, 1, undefined]);
});
