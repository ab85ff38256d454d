import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { lockDaemon } from '../../src/store/database/database.ts';
import { schemaOf } from '../../src/store/migrate/migrate.ts';
import { IN_PLACE } from '../support/example-migrations.ts';
import { createOldDatabase, OLD_SCHEMA } from '../support/old-database.ts';
import { requirePrograms } from '../support/required-programs.ts';
import { createShell } from './run.ts';

const rootRequired = requirePrograms('root');
const NEWEST = IN_PLACE.version;
const UPGRADE = new URL('../../docs/upgrade.md', import.meta.url);
let shell: ReturnType<typeof createShell>;
let dir: string;

beforeEach(() => {
  shell = createShell();
  dir = join(dirname(shell.file), 'data');
});
afterEach(() => shell.remove());

function makeOld(large = false): string {
  rmSync(dir, { recursive: true });
  return createOldDatabase(dir, { large });
}

describe('postrider migrate', () => {
  it('migrates, and prints where the copy is', async () => {
    const file = makeOld(true);
    const { status, out } = await shell.run('migrate');
    expect(status).toBe(0);
    expect(out).toContain(`from schema ${OLD_SCHEMA} to ${NEWEST}.`);
    const copy = readdirSync(dir).find((name) => name.includes('.before-'));
    expect(out).toContain(join(dir, String(copy)));
    expect(schemaOf(file)).toBe(NEWEST);
  });

  it('changes nothing at the current schema', async () => {
    expect(await shell.run('migrate')).toMatchObject({ status: 0, out: expect.stringContaining('already') });
    expect(await shell.run('migrate', '--dry-run')).toMatchObject({ status: 0 });
  });

  it('changes nothing in a dry run, also while a daemon runs', async () => {
    const file = makeOld();
    const before = readdirSync(dir);
    const lock = lockDaemon(dir);
    const { status, out } = await shell.run('migrate', '--dry-run');
    const json = await shell.json('migrate', '--dry-run', '--json');
    lock.release();
    expect(status).toBe(0);
    expect(out).toMatch(/space +about .+ needed, .+ available/);
    const names = (output: string) => output.match(/^\w+(?= {2,})/gm);
    const [, example = ''] =
      /run by test\/cli\/migrate[^\n]*\n```\n(.+?)```/s.exec(readFileSync(UPGRADE, 'utf8')) ?? [];
    expect(names(out)).toEqual(names(example));
    expect(json).toMatchObject({ schema: OLD_SCHEMA, newSchema: NEWEST, fits: true, dir });
    expect(json.neededBytes).toBeGreaterThan(0);
    expect(schemaOf(file)).toBe(OLD_SCHEMA);
    expect(readdirSync(dir).filter((name) => name !== 'daemon.lock')).toEqual(before);
  });

  it.skipIf(rootRequired.missing)(
    `exits with 3 and the figures in a dry run without the space${rootRequired.reason}`,
    async () => {
      const file = makeOld(true);
      const content = readFileSync(file);
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=80m', 'tmpfs', dir]);
      try {
        writeFileSync(file, content.subarray(0, 8 * 2 ** 20));
        truncateSync(file, content.byteLength);
        const { status, out, err } = await shell.run('migrate', '--dry-run');
        expect(status).toBe(3);
        expect(out).toMatch(/space +about [\d.]+ MB needed, [\d.]+ MB available/);
        expect(err).toMatch(/too little free space: about [\d.]+ MB more is needed/);
        expect(readdirSync(dir).filter((name) => !/-(?:wal|shm)$/.test(name))).toEqual(['postrider.db']);
      } finally {
        execFileSync('umount', ['--lazy', dir]);
      }
    },
  );

  it('is refused while a daemon runs', async () => {
    const file = makeOld();
    const lock = lockDaemon(dir);
    await expect(shell.run('migrate')).rejects.toThrow(/Another postrider daemon is running/);
    lock.release();
    expect(schemaOf(file)).toBe(OLD_SCHEMA);
  });

  it('is named by other commands when the database is large', async () => {
    makeOld(true);
    await expect(shell.run('account', 'list')).rejects.toThrow(/run "postrider migrate"/);
  });

  it('is reported by a command that migrates a small database', async () => {
    makeOld();
    const { status, err } = await shell.run('account', 'list');
    expect(status).toBe(0);
    const copy = readdirSync(dir).find((name) => name.includes('.before-'));
    expect(err).toContain(`from schema ${OLD_SCHEMA} to ${NEWEST}`);
    expect(err).toContain(join(dir, String(copy)));
    expect((await shell.run('account', 'list')).err).not.toContain('schema');
  });
});
