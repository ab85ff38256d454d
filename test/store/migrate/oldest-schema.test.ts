import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { schemaOf } from '../../../src/store/migrate/migrate.ts';
import { estimateMigration } from '../../../src/store/migrate/migration-estimate.ts';
import { knownMigrations, newestOf } from '../../../src/store/migrate/migrations.ts';
import { upgradeDatabase } from '../../../src/store/migrate/upgrade.ts';
import { createOldestDatabase, digestOfMigrated, digestOfOldest } from '../../support/oldest-database.ts';
import { temporaryDir } from '../../support/store.ts';

/** `npm run bench:migration` migrates a million messages. */
const MESSAGES = 10_000;
const PROCESS = fileURLToPath(new URL('killed-migration.ts', import.meta.url));
const TSX = import.meta.resolve('tsx');

function killedAt(file: string, step: string, report: number): NodeJS.Signals | null {
  const args = ['--import', TSX, PROCESS, file, step, String(report)];
  return spawnSync(process.execPath, args, { stdio: 'inherit' }).signal;
}

describe('the database of the first release', () => {
  it('has the same content after a migration that was killed in several steps', () => {
    const dir = join(temporaryDir(), 'data');
    const file = createOldestDatabase(dir, MESSAGES);
    const before = digestOfOldest(file);
    const estimate = estimateMigration(file, knownMigrations());
    expect(estimate).toMatchObject({ from: 1, to: newestOf(knownMigrations()) });
    // While it is copied, between steps in place, and during the rebuild.
    for (const [step, report] of [
      ['backup', 1],
      ['migrate', 5],
      ['copy', 3],
      ['copy', 20],
      ['index', 2],
    ] as const) {
      expect(killedAt(file, step, report), `${step} ${report}`).toBe('SIGKILL');
    }
    const { copy } = upgradeDatabase(dir);
    expect(schemaOf(file)).toBe(newestOf(knownMigrations()));
    expect(digestOfMigrated(dir)).toBe(before);
    // The copy is the database as it was before the first step.
    if (copy === null) throw new Error('there is no copy');
    expect(schemaOf(copy)).toBe(1);
    expect(digestOfOldest(copy)).toBe(before);
    expect(readdirSync(dirname(file)).filter((name) => /partial|\.new|sample/.test(name))).toEqual([]);
    expect(existsSync(file)).toBe(true);
  });
});
