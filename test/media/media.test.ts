import { expect, it, onTestFinished } from 'vitest';
import { createLog } from '../../src/core/log.ts';
import { createMedia } from '../../src/media/media.ts';
import { createLocalReader } from '../../src/store/readers/reads.ts';
import { eventually } from '../support/eventually.ts';
import { startStore } from '../support/store.ts';

it('deletes what an upload left that was interrupted between two parts', async () => {
  const store = startStore();
  const { tables, writer } = store;
  const before = tables.accountLimits.storedBytes('acct_one');
  const content = await writer.run((tx) => {
    const seq = tx.media.insertContent({
      account_id: 'acct_one',
      hash: Buffer.alloc(32, 1),
      state: 'storing',
      type: 'image/png',
      width: 1,
      height: 1,
      frames: 1,
      size: 300_000,
    });
    tx.media.insertPart(seq, 0, Buffer.alloc(1000));
    return seq;
  });
  expect(tables.media.body(content)).toBeNull();
  expect(tables.accountLimits.storedBytes('acct_one')).toBe(before + 300_200);
  const log = createLog({ level: 'silent', hashAddresses: true });
  const { background } = createMedia({ ...store, reader: createLocalReader(tables), log });
  background.start();
  onTestFinished(background.stop);
  await eventually('nothing is left', () => tables.accountLimits.storedBytes('acct_one') === before);
  expect([...tables.media.unfinished('storing', 1), ...tables.media.unfinished('deleting', 1)]).toEqual([]);
});
