import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemRandom } from '../../src/core/random.ts';
import { openDatabase } from '../../src/store/database/database.ts';
import { createWriter } from '../../src/store/database/writer.ts';
import { loadMasterKey, openSeal } from '../../src/store/master-key.ts';
import { createTables } from '../../src/store/tables.ts';

let dir: string;
let file: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'postrider-key-'));
  file = join(dir, 'master.key');
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const load = (credentials?: string) => loadMasterKey(file, systemRandom, credentials);

describe('the key file', () => {
  it('is created once, readable by its owner only, and read afterwards', () => {
    const key = load();
    expect(key).toHaveLength(32);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(load()).toEqual(key);
    expect(readdirSync(dir)).toEqual(['master.key']);
  });

  it('is created together with its directory', () => {
    file = join(dir, 'new', 'master.key');
    load();
    expect(statSync(join(dir, 'new')).mode & 0o777).toBe(0o700);
  });

  it.each(['600', '400'])('may have mode %s', (mode) => {
    load();
    chmodSync(file, Number.parseInt(mode, 8));
    expect(load()).toHaveLength(32);
  });

  it.each(['640', '604'])('is rejected with mode %s', (mode) => {
    load();
    chmodSync(file, Number.parseInt(mode, 8));
    expect(() => load()).toThrow(`can be read by others (mode ${mode}): run chmod 600`);
  });

  it('may be group-readable in the credentials directory of systemd', () => {
    load();
    chmodSync(file, 0o440);
    expect(load(dir)).toHaveLength(32);
    expect(() => load('/run/credentials/other')).toThrow('can be read by others');
  });

  it.each([0, 31, 33, 45])('rejects a file of %i bytes and does not change it', (length) => {
    writeFileSync(file, Buffer.alloc(length, 1), { mode: 0o600 });
    expect(() => load()).toThrow(`must have 32 bytes, but has ${length}`);
    expect(readFileSync(file)).toHaveLength(length);
  });

  it('names the file that cannot be created', () => {
    writeFileSync(join(dir, 'plain'), '');
    file = join(dir, 'plain', 'master.key');
    expect(() => load()).toThrow(/master\.key cannot be used: ENOTDIR.*Check that the directory exists/);
  });

  it('names the file if it is a directory', () => {
    mkdirSync(file, { mode: 0o700 });
    expect(() => load()).toThrow('is not a file');
  });
});

describe('the seal of a database', () => {
  function openStore() {
    const db = openDatabase(join(dir, 'data'));
    const tables = createTables(db);
    const writer = createWriter(db, tables);
    const seal = () => openSeal({ random: systemRandom, tables, writer }, { file });
    return { seal, close: () => writer.close().then(() => db.close()) };
  }

  it('opens its sealed values after a restart', async () => {
    const first = openStore();
    const sealed = (await first.seal()).seal(Buffer.from('secret'), 'row');
    await first.close();
    const second = openStore();
    expect((await second.seal()).open(sealed, 'row').toString()).toBe('secret');
    await second.close();
  });

  it('rejects another key, and creates none when the key file is missing', async () => {
    const store = openStore();
    await store.seal();
    rmSync(file);
    await expect(store.seal()).rejects.toThrow('is missing: restore the key file');
    load();
    await expect(store.seal()).rejects.toThrow('is not the key that this database was sealed with');
    await store.close();
  });
});
