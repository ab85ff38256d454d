import { rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DATABASE_FILE } from '../../src/store/database/database.ts';
import { buildHistory } from './large/history.ts';
import { prepareInstallation } from './large/installation.ts';
import { readOptions } from './options.ts';

/*
 * Fills a data directory with the history of `npm run bench:large`, for experiments:
 *
 *     npm run build && node --import tsx test/bench/build-large.ts --messages 1000000 --dir /tmp/large
 */
const { messages, dir } = readOptions({
  command: 'node --import tsx test/bench/build-large.ts',
  summary: 'Fills a data directory with the history of "npm run bench:large". Build first (npm run build).',
  options: {
    messages: { integer: 1_000_000, help: 'messages of the history' },
    dir: { text: 'DIR', help: 'the directory, which is created (required)' },
  },
});
if (dir === '') throw new Error('--dir is required');
const began = performance.now();
const seconds = () => ((performance.now() - began) / 1000).toFixed(1);

const prepared = `${dir}.prepared`;
try {
  const installation = await prepareInstallation(prepared);
  buildHistory(prepared, dir, installation, {
    messages,
    now: Date.now(),
    onProgress: (done) => console.log(`${seconds()} s  ${done}`),
  });
} finally {
  rmSync(prepared, { recursive: true, force: true });
}
const { size } = statSync(join(dir, DATABASE_FILE));
console.log(`${messages} messages in ${dir}: ${(size / 1e6).toFixed(0)} MB after ${seconds()} s`);
process.exit();
