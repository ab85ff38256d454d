import { createHash } from 'node:crypto';
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { describeDatabase, sealCopy } from './content.ts';
import type { TaskResult } from './copy.ts';
import { createThrottle, serveTasks } from './thread.ts';

/* The program of the thread that reads files which no process uses, see copy.ts. */

const CHUNK_BYTES = 2 ** 20;

serveTasks(({ kind, file }): TaskResult => {
  if (kind === 'copy') throw new Error('this thread has no task copy');
  if (kind === 'hash') return { kind: 'hashed', sha256: hash(file) };
  const content = kind === 'seal' ? sealCopy(file) : describeDatabase(file, { check: true });
  return { kind: 'content', content };
});

function hash(file: string): string {
  const fd = openSync(file, 'r');
  try {
    const digest = createHash('sha256');
    const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
    const total = fstatSync(fd).size;
    const throttle = createThrottle();
    for (let done = 0; ; ) {
      const bytesRead = readSync(fd, chunk, 0, chunk.length, done);
      if (bytesRead === 0) return digest.digest('hex');
      digest.update(chunk.subarray(0, bytesRead));
      done += bytesRead;
      throttle({ done, total, logGrowth: 0 });
    }
  } finally {
    closeSync(fd);
  }
}
