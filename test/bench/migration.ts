import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { upgradeDatabase } from '../../src/store/migrate/upgrade.ts';
import { createOldestDatabase, digestOfMigrated, digestOfOldest } from '../support/oldest-database.ts';
import { readOptions } from './options.ts';

/*
 * Migrates a database of the first release with a million messages, and compares its content before and after.
 *
 *   npm run bench:migration -- --messages 1000000
 */
const { messages: MESSAGES } = readOptions({
  command: 'npm run bench:migration',
  summary: `Migrates a database of the first release and compares its content before and after. Exits with 1 when they
differ.`,
  options: { messages: { integer: 1_000_000, help: 'messages of the database' } },
});
const dir = mkdtempSync(join(tmpdir(), 'postrider-migration-'));
try {
  const data = join(dir, 'data');
  const file = createOldestDatabase(data, MESSAGES);
  const before = digestOfOldest(file);
  const bytes = statSync(file).size;
  const began = performance.now();
  const { from, to } = upgradeDatabase(data);
  const seconds = (performance.now() - began) / 1000;
  const isEqual = digestOfMigrated(data) === before;
  console.log(
    JSON.stringify({
      messages: MESSAGES,
      from,
      to,
      seconds: Number(seconds.toFixed(1)),
      bytesBefore: bytes,
      bytesAfter: statSync(file).size,
      isEqual,
    }),
  );
  if (!isEqual) process.exitCode = 1;
} finally {
  rmSync(dir, { recursive: true, force: true });
}
