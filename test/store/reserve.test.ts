import { existsSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { StoreUnavailable } from '../../src/store/database/failure.ts';
import {
  ensureReserve,
  openWithReserve,
  RESERVE_BYTES,
  RESERVE_FILE,
  releaseReserve,
  withReserve,
} from '../../src/store/reserve.ts';
import { startStore, temporaryDir } from '../support/store.ts';

const FULL = Object.assign(new Error('database or disk is full'), { code: 'SQLITE_FULL' });

it('reserves space until it is released, and completes a file that is not complete', async () => {
  const dir = temporaryDir();
  const file = join(dir, RESERVE_FILE);
  expect(releaseReserve(dir)).toBe(false);
  await ensureReserve(dir);
  expect(statSync(file)).toMatchObject({ size: RESERVE_BYTES, mode: 0o100600 });
  truncateSync(file, 10);
  await ensureReserve(dir);
  expect(statSync(file).size).toBe(RESERVE_BYTES);
  expect(releaseReserve(dir)).toBe(true);
  expect(existsSync(file)).toBe(false);
});

it('repeats a unit of work that a full disk has rolled back, once', async () => {
  const { writer, tables } = startStore();
  let space = 1;
  let released = 0;
  const reserved = withReserve(writer, () => space-- > 0 && ++released > 0);
  let runs = 0;
  const unit = () =>
    reserved.run((tx) => {
      tx.settings.put('a', 'b');
      if (++runs < 2) throw FULL;
      return 'done';
    });
  expect(await unit()).toBe('done');
  expect([runs, released, tables.settings.get('a')]).toEqual([2, 1, 'b']);
  runs = -1;
  await expect(unit()).rejects.toBe(FULL);
  const busy = new StoreUnavailable('busy', 'locked');
  await expect(
    reserved.run(() => {
      throw busy;
    }),
  ).rejects.toBe(busy);
});

it('opens again after it has made space', () => {
  let opened = 0;
  const open = () => {
    if (++opened === 1) throw FULL;
    return 'database';
  };
  expect(openWithReserve(open, () => true)).toBe('database');
  opened = 0;
  expect(() => openWithReserve(open, () => false)).toThrow(FULL);
});
