import { rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { DATABASE_FILE } from '../../src/store/database.ts';
import { buildHistory } from './large/history.ts';
import { prepareInstallation } from './large/installation.ts';

/*
 * Fills a data directory with the history of `npm run bench:large`, for experiments:
 *
 *     npm run build && node --import tsx test/bench/build-large.ts --messages 1000000 --dir /tmp/large
 *
 * The database has schema 16; the daemon migrates it when it starts.
 */
const { values } = parseArgs({
  options: { messages: { type: 'string', default: '1000000' }, dir: { type: 'string' } },
});
const { dir } = values;
if (dir === undefined) throw new Error('--dir is required');
const messages = Number(values.messages);
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
