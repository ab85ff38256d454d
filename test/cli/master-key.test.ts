import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SEALED } from '../../src/cli/master-key.ts';
import { systemRandom } from '../../src/core/random.ts';
import type { Seal } from '../../src/core/seal.ts';
import { accountTag, createTokens } from '../../src/mail/tokens.ts';
import { openDatabase } from '../../src/store/database/database.ts';
import { createWriter } from '../../src/store/database/writer.ts';
import { addMasterKey, masterKeysOf, openSeal } from '../../src/store/master-key.ts';
import { createTables } from '../../src/store/tables.ts';
import { createShell } from './run.ts';

const MIGRATIONS = join(import.meta.dirname, '../../src/store/migrations');

let shell: ReturnType<typeof createShell>;
let dataDir: string;
let keyFile: string;
beforeEach(async () => {
  shell = createShell();
  dataDir = join(dirname(shell.file), 'data');
  keyFile = join(dataDir, 'master.key');
  await shell.run('account', 'create', '--name', 'Shop', '--id', 'shop');
});
afterEach(() => shell.remove());

/** The database, as the running daemon has it open. */
async function openDaemonStore() {
  const db = openDatabase(dataDir);
  const tables = createTables(db);
  const writer = createWriter(db, tables);
  const seal = await openSeal({ random: systemRandom, tables, writer }, { file: keyFile });
  return { db, tables, writer, seal, close: () => writer.close().then(() => db.close()) };
}

type Store = Awaited<ReturnType<typeof openDaemonStore>>;

/** One value in each sealed column. */
function fill({ db, seal }: Pick<Store, 'db' | 'seal'>): void {
  const run = (sql: string, ...values: unknown[]) => void db.prepare(sql).run(...values);
  const sealed = (context: string) => seal.seal(Buffer.from(`secret of ${context}`), context);
  run(
    `INSERT INTO platform_keys (selector, state, private_key, public_key, created_at, changed_at) VALUES ('pf', 'active', ?, '', 1, 1)`,
    sealed('dkim:platform:pf'),
  );
  run(
    `INSERT INTO certificates VALUES ('links.example', ?, 'chain', 1, 1, 1, 0, NULL)`,
    sealed('certificate:links.example'),
  );
  run(
    `INSERT INTO token_keys VALUES (?, 'shop', ?)`,
    accountTag('other').toString('hex'),
    seal.seal(Buffer.alloc(32, 3), 'token-key:shop'),
  );
  run(
    `INSERT INTO people (person_id, email, email_key, name, operator, operator_by_group, status, totp, created_at, updated_at)
     VALUES ('person_1', 'ada@example.com', 'ada@example.com', 'Ada', 1, 0, 'active', ?, 1, 1)`,
    sealed('totp person_1'),
  );
  for (const name of ['acme-account-key', 'tlsrpt-dkim-key'])
    run('INSERT INTO settings VALUES (?, ?)', name, sealed(name).toString('base64'));
}

describe('key rotate-master', () => {
  it('knows every column that the schema describes as sealed', () => {
    const sql = readFileSync(join(MIGRATIONS, '0001-schema.sql'), 'utf8');
    const added = readFileSync(join(MIGRATIONS, '0002-audience.sql'), 'utf8');
    const found: string[] = [];
    for (const [, table, body = ''] of sql.matchAll(/^CREATE TABLE (\w+) \(.*\n([\s\S]*?)^\)/gm))
      for (const [, column] of body.matchAll(/^ {2}(\w+) +BLOB\b.*--.*\bsealed\b/gm))
        found.push(`${table}.${column}`);
    for (const [, table, column] of added.matchAll(
      /^--.*\bsealed\b.*\n(?:--.*\n)*ALTER TABLE (\w+) ADD COLUMN (\w+)/gm,
    ))
      found.push(`${table}.${column}`);
    expect(found).toHaveLength(8);
    expect(SEALED.map(({ table, column }) => `${table}.${column}`)).toEqual(expect.arrayContaining(found));
  });

  it('encrypts everything with a new key while the daemon runs', async () => {
    await shell.json(
      'domain',
      'add',
      'shop.example',
      '--account',
      'shop',
      '--use-case',
      'tx-local',
      '--json',
    );
    const store = await openDaemonStore();
    fill(store);
    const headers = join(dataDir, 'headers');
    writeFileSync(headers, 'X-Token: one');
    const hook = [
      'webhook',
      'create',
      'https://shop.example/hook',
      '--account',
      'shop',
      '--headers-file',
      headers,
    ];
    await shell.json(...hook, '--json');
    const scope = ['--account', 'shop', '--scope', 'transactional'];
    await shell.json('key', 'create', ...scope, '--sigv4');
    const before = readFileSync(keyFile);
    const link = createTokens(store.seal).of('shop').openUrl('msg_1700000000000_abcdefghijkl');
    const { number, renewed, complete } = await shell.json('key', 'rotate-master', '--yes', '--json');
    expect({ number, complete }).toEqual({ number: 2, complete: true });

    const after = readFileSync(keyFile);
    expect(after).toHaveLength(32);
    expect(after.equals(before)).toBe(false);
    expect(readFileSync(`${keyFile}.1`).equals(before)).toBe(true);
    expect(statSync(keyFile).mode & 0o777).toBe(0o600);

    let values = 0;
    for (const sealed of SEALED) {
      const rows = store.tables.sealedValues.rows(sealed, null, 100);
      expect(rows.length, `${sealed.table}.${sealed.column}`).toBeGreaterThan(0);
      for (const row of rows) {
        values++;
        // Null: the newest key has sealed it.
        expect(sealed.renewed(row, store.seal), `${sealed.table}.${sealed.column}`).toBeNull();
      }
    }
    expect(renewed).toBe(values);
    expect(store.seal.open(store.seal.seal(Buffer.from('new'), 'x'), 'x').toString()).toBe('new');
    expect(store.seal.newest()).toBe(2);
    // A link of a sent message, in the running daemon and after a restart.
    expect(createTokens(store.seal).openUrl(link)?.isOf('shop')).toBe(true);
    expect(createTokens(store.seal).of('shop').openUrl('msg_1700000000000_abcdefghijkl')).not.toBe(link);
    await store.close();
    const restarted = await openDaemonStore();
    expect(secretOf(restarted)).toBe('secret of certificate:links.example');
    expect(createTokens(restarted.seal).openUrl(link)?.isOf('shop')).toBe(true);
    await restarted.close();
  });

  it('needs the new key afterwards: the former one opens nothing', async () => {
    const store = await openDaemonStore();
    await store.close();
    const former = readFileSync(keyFile);
    await shell.json('key', 'rotate-master', '--yes', '--json');
    writeFileSync(keyFile, former);
    await expect(openDaemonStore()).rejects.toThrow('is not the key that this database was sealed with');
  });

  it.each([
    ['before the file has the new key', false],
    ['when the file has the new key, before the secrets are encrypted', true],
  ])('continues after an interruption %s', async (_when, hasNewKey) => {
    const store = await openDaemonStore();
    fill(store);
    await store.writer.run((tx) => {
      const keys = masterKeysOf(tx, { file: keyFile });
      if (keys === null) throw new Error('no keys');
      addMasterKey(tx, keys, systemRandom);
    });
    await store.close();
    if (hasNewKey) {
      const db = openDatabase(dataDir);
      writeFileSync(keyFile, masterKeysOf(createTables(db), { file: keyFile })?.keys.get(2) ?? '');
      db.close();
    }
    // A restart in between reads and seals everything.
    const between = await openDaemonStore();
    expect(secretOf(between)).toBe('secret of certificate:links.example');
    await between.close();
    expect(await shell.json('key', 'rotate-master', '--json')).toMatchObject({ number: 2, complete: true });
    const after = await openDaemonStore();
    expect(secretOf(after)).toBe('secret of certificate:links.example');
    expect(await shell.json('key', 'rotate-master', '--yes', '--json')).toMatchObject({ number: 3 });
    expect(secretOf(after)).toBe('secret of certificate:links.example');
    await after.close();
  });

  it('waits for the service to get a key that is written elsewhere', async () => {
    const store = await openDaemonStore();
    fill(store);
    const former = readFileSync(keyFile);
    const file = join(dataDir, 'new.key');
    const rotated = await shell.json('key', 'rotate-master', '--yes', '--json', '--write', file);
    expect(rotated).toMatchObject({ number: 2, complete: false });
    expect(readFileSync(keyFile).equals(former)).toBe(true);
    // The running daemon needs no file for the new key, and creates none.
    rmSync(keyFile);
    expect(store.seal.newest()).toBe(2);
    expect(existsSync(keyFile)).toBe(false);
    writeFileSync(keyFile, former, { mode: 0o600 });
    // Both keys open the database.
    await store.close();
    await openDaemonStore().then((opened) => opened.close());
    rmSync(keyFile);
    writeFileSync(keyFile, readFileSync(file), { mode: 0o600 });
    const restarted = await openDaemonStore();
    expect(secretOf(restarted)).toBe('secret of certificate:links.example');
    expect(await shell.json('key', 'rotate-master', '--json')).toMatchObject({
      number: 2,
      complete: true,
      renewed: 0,
    });
    await restarted.close();
  });

  it('does not overwrite a file', async () => {
    await openDaemonStore().then((opened) => opened.close());
    const file = join(dataDir, 'taken');
    writeFileSync(file, 'mine');
    const { status, err } = await shell.run('key', 'rotate-master', '--yes', '--write', file);
    expect({ status, err }).toEqual({
      status: 2,
      err: expect.stringContaining('taken exists: name another file'),
    });
    expect(readFileSync(file, 'utf8')).toBe('mine');
  });
});

function secretOf({ tables, seal }: { tables: Store['tables']; seal: Seal }): string {
  const key = tables.certificates.get('links.example')?.private_key;
  return key ? seal.open(key, 'certificate:links.example').toString() : '';
}
