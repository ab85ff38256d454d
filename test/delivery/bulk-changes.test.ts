import { expect, it } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { createBulkChanges, parseNextHop } from '../../src/delivery/control.ts';
import { StoreUnavailable } from '../../src/store/database/failure.ts';
import type { Writer } from '../../src/store/database/writer.ts';
import { enqueue, startStore } from '../support/store.ts';

it('states how many messages it has changed when the database fails', async () => {
  const { dir, db, tables, writer, recorder, clock } = startStore();
  let units = 0;
  const failing: Writer = {
    ...writer,
    run: (unit, share) =>
      ++units > 2 ? Promise.reject(new StoreUnavailable('busy', 'locked')) : writer.run(unit, share),
  };
  const bulk = createBulkChanges(
    { writer: failing },
    {
      config: loadConfig({ cwd: dir, env: {} }),
      recorder,
      read: {
        waiting: async (filter, page) => tables.queue.waiting(filter, page),
        counts: async (filter) => tables.queue.counts(filter),
      },
    },
  );
  for (let n = 0; n < 50; n++) enqueue(tables, clock.now(), { recipient: `a${n}@one.test` });
  await expect(bulk.purge({ destination: 'one.test' }, 'mistake')).rejects.toMatchObject({
    done: '40 messages were changed; it may be repeated',
  });
  expect(db.prepare('SELECT count(*) FROM queue').pluck().get()).toBe(10);
});

/** A queued message, and bulk changes over its store. */
function setup() {
  const { dir, tables, writer, recorder, clock } = startStore();
  const bulk = createBulkChanges(
    { writer },
    {
      config: loadConfig({ cwd: dir, env: {} }),
      recorder,
      read: {
        waiting: async (filter, page) => tables.queue.waiting(filter, page),
        counts: async (filter) => tables.queue.counts(filter),
      },
    },
  );
  const message = enqueue(tables, clock.now(), { recipient: 'a@one.test' });
  return { bulk, tables, message };
}

it.each([
  ['relay.example', { host: 'relay.example', port: 25 }],
  ['Relay.Example:587', { host: 'relay.example', port: 587 }],
  ['192.0.2.1', { host: '192.0.2.1', port: 25 }],
  ['[2001:db8::1]:2525', { host: '2001:db8::1', port: 2525 }],
])('accepts the next hop %s', (text, hop) => {
  expect(parseNextHop(text)).toEqual(hop);
});

it.each([
  '[relay.example]',
  '[1.2.3.4.5]',
  '[:::]',
  '192.0.2.300',
  '-.-',
  'relay..example',
  'relay.example:0',
])('rejects the next hop %s', (text) => {
  expect(parseNextHop(text)).toBeNull();
});

it.each([
  ['an empty reason', ' '],
  ['a line break in the reason', 'a\nb'],
  ['a long reason', 'x'.repeat(201)],
])('refuses to purge with %s', async (_, reason) => {
  const { bulk, tables, message } = setup();
  expect(await bulk.purge({ destination: 'one.test' }, reason)).toMatchObject({
    code: 'VALIDATION_ERROR',
    extras: { details: [{ field: 'reason' }] },
  });
  expect(tables.messages.bySeq(message.seq)).toMatchObject({ status: 'queued' });
});
