import { createHash } from 'node:crypto';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { createCopier } from '../../../src/store/backup/copy.ts';
import { builtThread } from '../../support/built-thread.ts';
import { temporaryDir } from '../../support/store.ts';

const UNLIMITED = Number.MAX_SAFE_INTEGER;
const copy = builtThread('store/backup/copy-thread.ts');

it('hashes a file', async () => {
  const file = join(temporaryDir(), 'contacts.csv');
  const bytes = Buffer.alloc(3 * 2 ** 20 + 1, 'row\n');
  writeFileSync(file, bytes);
  const check = builtThread('store/backup/check-thread.ts');
  const copier = createCopier({ bytesPerSecond: UNLIMITED, programs: { copy, check } });
  onTestFinished(() => copier.close());
  expect(await copier.hash(file)).toBe(createHash('sha256').update(bytes).digest('hex'));
});

it('rejects a task whose thread ends, and starts another thread for the next task', async () => {
  const check = new URL('data:text/javascript,process.exit(3)');
  const copier = createCopier({ bytesPerSecond: UNLIMITED, programs: { copy, check } });
  onTestFinished(() => copier.close());
  for (const file of ['one', 'two'])
    await expect(copier.hash(file)).rejects.toThrow('the thread of a hash ended with code 3');
});

it('replaces a thread that fails between two tasks', async () => {
  const dir = temporaryDir();
  const [idle, ended] = [join(dir, 'idle'), join(dir, 'ended')];
  const code = `
    import { existsSync, writeFileSync } from 'node:fs';
    import { parentPort } from 'node:worker_threads';
    process.on('exit', () => writeFileSync(${JSON.stringify(ended)}, ''));
    parentPort.once('message', () => {
      parentPort.postMessage({ kind: 'hashed', sha256: 'first' });
      setInterval(() => { if (existsSync(${JSON.stringify(idle)})) throw new Error('failed while idle'); }, 5);
    });`;
  const check = new URL(`data:text/javascript,${encodeURIComponent(code)}`);
  const copier = createCopier({ bytesPerSecond: UNLIMITED, programs: { copy, check } });
  onTestFinished(() => copier.close());
  expect(await copier.hash('one')).toBe('first');
  writeFileSync(idle, '');
  await expect.poll(() => existsSync(ended)).toBe(true);
  rmSync(idle);
  // A task that meets the end of the old thread is rejected.
  await expect.poll(() => copier.hash('two').catch(() => 'rejected')).toBe('first');
});
