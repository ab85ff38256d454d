import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { PARTIAL } from '../../../src/cli/context.ts';
import { emailIdentifier } from '../../../src/mail/identifier.ts';
import { DATABASE_FILE, lockDaemon, openDatabase } from '../../../src/store/database/database.ts';
import { createTables } from '../../../src/store/tables.ts';
import { createShell, MAIN, runProgram } from '../run.ts';

let shell: ReturnType<typeof createShell>;
beforeEach(async () => {
  shell = createShell();
  for (const id of ['shop', 'other']) await shell.run('account', 'create', '--name', 'Shop', '--id', id);
});
afterEach(() => shell.remove());

const inDir = (name: string) => join(dirname(shell.file), name);

function fileOf(name: string, text: string): string {
  writeFileSync(inDir(name), text);
  return inDir(name);
}

const PEOPLE = `email;phone;firstName;lastName;customFields.plan;shoe
ada@example.net;+442079460000;Ada;Lovelace;gold;39
grace@example.net;;Grace;Hopper;;40
nobody;;;;;
`;

const LINUS_ID = emailIdentifier('linus@example.net');

const contacts = (...args: string[]) => shell.run('contacts', ...args, '--account', 'shop');
const contactsJson = (...args: string[]) => shell.json('contacts', ...args, '--account', 'shop', '--json');

describe('contacts import', () => {
  it('imports a file and prints the result', async () => {
    const file = fileOf('people.csv', PEOPLE);
    expect(await contacts('import', file, '--ignore-unknown')).toEqual({
      status: PARTIAL,
      err: '',
      out: `${file}: 3 rows, 2 created, 1 rejected
ignored columns: shoe
  line 4: email: has no "@"
all rejected rows with reasons: ${file}.rejected.csv`,
    });
    expect(readFileSync(`${file}.rejected.csv`, 'utf8')).toBe('line,reason\n4,"email: has no ""@"""\n');
    expect((await contactsJson('list')).map(({ email }: { email: string }) => email)).toEqual([
      'grace@example.net',
      'ada@example.net',
    ]);
  });

  it('prints JSON, writes the report to a given file, and can be repeated', async () => {
    const file = fileOf('people.ndjson', '{"email":"ada@example.net"}\n{}\n');
    const report = inDir('report.csv');
    await contacts('import', file);
    expect(await contactsJson('import', file, '--report', report)).toEqual({
      file,
      dryRun: false,
      complete: true,
      resumed: false,
      rows: 2,
      created: 0,
      updated: 0,
      unchanged: 1,
      rejected: 1,
      subscribed: 0,
      optedOut: 0,
      rejectedRows: [{ line: 2, reason: 'has neither email nor phone' }],
      rejectedRowsTruncated: false,
      reportFile: report,
      ignoredColumns: [],
      ignoredColumnsTruncated: false,
    });
    expect(existsSync(report)).toBe(true);
  });

  it.each<[what: string, name: string, text: string, message: string]>([
    ['unknown columns', 'people.csv', PEOPLE, 'the header has unknown columns: "shoe"'],
    [
      'neither email nor phone',
      'people.csv',
      'Contact,First Name\nada@example.net,Ada\n',
      'the header names neither email nor phone; its columns are "Contact", "First Name"',
    ],
    ['phone alone', 'people.csv', 'phone\n+442079460000\n', 'the header has phone, but no email'],
    [
      'unknown fields',
      'people.ndjson',
      '{"email":"ada@example.net","shoe":39}\n',
      'line 1 has unknown fields: "shoe"',
    ],
  ])('stops before the first row at %s', async (_, name, text, message) => {
    const outcome = await contacts('import', fileOf(name, text));
    expect(outcome).toMatchObject({ status: 1, out: '', err: expect.stringContaining(message) });
    expect(outcome.err).toMatch(/Nothing was imported: .*--map .*--ignore-unknown/);
    expect(await contactsJson('list')).toEqual([]);
  });

  it('maps columns with --map', async () => {
    const file = fileOf('people.csv', 'Email Address,a=b,First Name\nada@example.net,gold,Ada\n');
    const map = ['--map', 'Email Address=email', '--map', 'a=b=customFields.plan'];
    expect(await contacts('import', file, ...map)).toMatchObject({ status: 0 });
    expect(await contactsJson('show', 'ada@example.net')).toMatchObject({
      firstName: 'Ada',
      customFields: { plan: 'gold' },
    });
    const ndjson = fileOf(
      'people.ndjson',
      '{"mail":"bob@example.net","plan":7,"customFields":{"shoe":39}}\n',
    );
    const fields = ['--map', 'mail=email', '--map', 'plan=customFields.plan'];
    expect(await contacts('import', ndjson, ...fields)).toMatchObject({ status: 0 });
    expect(await contactsJson('show', 'bob@example.net')).toMatchObject({
      customFields: { plan: 7, shoe: 39 },
    });
  });

  it('rejects members who left a group', async () => {
    const file = fileOf('people.csv', 'email,isActive\nada@example.net,true\nbob@example.net,false\n');
    expect(await contactsJson('import', file)).toMatchObject({
      created: 1,
      rejectedRows: [{ line: 3, reason: expect.stringMatching(/^isActive: /) }],
      ignoredColumns: [],
    });
  });

  it.each([
    ['an unknown field', 'Email Address=mail', 2, '"mail" is not a field'],
    ['a value without a field', 'email', 2, 'Must be COLUMN=FIELD'],
    ['an absent column', 'Mail=email', 1, 'the header has no column "Mail"; it has "email"'],
    ['a field that another column has', 'x=email', 1, 'the header names email twice'],
  ])('rejects a --map to %s', async (_, map, status, message) => {
    const file = fileOf('people.csv', map.startsWith('x') ? 'email,x\n' : 'email\n');
    const outcome = await contacts('import', file, '--map', map);
    expect(outcome.status).toBe(status);
    expect(outcome.err).toContain(message);
  });

  it('accepts rows without email only with --allow-phone-only', async () => {
    const file = fileOf('people.csv', 'email,phone\nada@example.net,\n,+442079460000\n');
    expect(await contactsJson('import', file)).toMatchObject({
      created: 1,
      rejectedRows: [{ line: 3, reason: 'has a phone, but no email' }],
    });
    expect(await contactsJson('import', file, '--allow-phone-only')).toMatchObject({
      created: 1,
      unchanged: 1,
      rejected: 0,
    });
  });

  it('validates and counts rows in a dry run, without writing', async () => {
    const group = await shell.json('group', 'create', '--name', 'News', '--account', 'shop', '--json');
    const file = fileOf('people.csv', PEOPLE);
    const into = ['--ignore-unknown', '--group', group.subscriptionGroupId];
    expect(await contactsJson('import', file, ...into, '--dry-run')).toMatchObject({
      dryRun: true,
      rows: 3,
      created: 2,
      rejected: 1,
      subscribed: 2,
      rejectedRows: [{ line: 4 }],
      reportFile: null,
    });
    expect(existsSync(`${file}.rejected.csv`)).toBe(false);
    expect(await contactsJson('list')).toEqual([]);
    expect(await contacts('import', file, ...into)).toMatchObject({
      status: PARTIAL,
      out: expect.stringContaining('3 rows, 2 created, 1 rejected, 2 subscribed'),
    });
    expect((await contacts('import', file, ...into, '--dry-run')).out).toContain(
      '2 unchanged, 1 rejected (dry run',
    );
  });

  it('marks an incomplete list of rejected rows', async () => {
    const bad = Array.from({ length: 130 }, () => 'nobody');
    const file = fileOf('people.csv', `email\n${bad.join('\n')}\n`);
    const { rejected, rejectedRows, rejectedRowsTruncated } = await contactsJson('import', file);
    expect([rejected, rejectedRows.length, rejectedRowsTruncated]).toEqual([130, 100, true]);
  });

  it.each([
    ['a name without an extension', ['people', '--account', 'shop'], 2, 'use --format'],
    ['no account', ['people.csv'], 2, "required option '--account <id>'"],
    ['an unknown account', ['people.csv', '--account', 'nobody'], 1, 'There is no account nobody'],
    [
      'no such group',
      ['people.csv', '--account', 'shop', '--group', 'sgroup_1_x', '--ignore-unknown'],
      1,
      'There is no subscription group',
    ],
    [
      'an unknown format',
      ['people.csv', '--account', 'shop', '--format', 'xml'],
      2,
      'choices are csv, ndjson',
    ],
    ['no header', ['empty.csv', '--account', 'shop'], 1, 'there is no header line'],
  ])('rejects %s', async (_, [name = '', ...args], status, message) => {
    fileOf('people.csv', PEOPLE);
    fileOf('people', PEOPLE);
    fileOf('empty.csv', '');
    const outcome = await shell.run('contacts', 'import', inDir(name), ...args);
    expect(outcome.status).toBe(status);
    expect(outcome.err).toContain(message);
  });

  it.each([
    ['a missing file', 'nowhere.csv', /nowhere\.csv does not exist/],
    ['a directory', 'directory.csv', /directory\.csv is a directory/],
  ])('rejects %s', async (_, name, message) => {
    mkdirSync(inDir('directory.csv'));
    await expect(contacts('import', inDir(name))).rejects.toThrow(message);
  });

  it('resumes after a kill -9 of its process', async () => {
    const rows = Array.from({ length: 2500 }, (_, n) => `p${n}@example.net,P${n}`);
    const file = fileOf('many.csv', `email,firstName\n${rows.join('\n')}\n`);
    const args = ['--config', shell.file, 'contacts', 'import', file, '--account', 'shop', '--json'];
    const db = openDatabase(inDir('data'));
    const tables = createTables(db);
    const stored = () =>
      tables.contacts.list({ accountId: 'shop', beforeSeq: null, limit: 5000 }).rows.length;
    const killer = fileURLToPath(new URL('die-at-commit.cjs', import.meta.url));
    const env = { ...process.env, DIE_AT_COMMIT: '4' };
    const first = spawn(process.execPath, ['--require', killer, MAIN, ...args], {
      env,
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    const [, signal] = await once(first, 'exit');
    expect(signal).toBe('SIGKILL');
    // One commit is that of the import's status.
    expect(stored()).toBe(1000);
    db.close();
    const { status, out, err } = await runProgram(args);
    expect([status, err]).toEqual([0, '']);
    expect(JSON.parse(out)).toMatchObject({
      complete: true,
      resumed: true,
      rows: 2500,
      created: 2500,
      updated: 0,
      unchanged: 0,
      rejected: 0,
    });
  });
});

describe('contacts list and show', () => {
  beforeEach(() => contacts('import', fileOf('people.csv', PEOPLE), '--ignore-unknown'));

  it('find contacts by text and status', async () => {
    const emails = async (...args: string[]) =>
      (await contactsJson('list', ...args)).map(({ email }: { email: string }) => email);
    expect(await emails('--search', 'HOPP')).toEqual(['grace@example.net']);
    expect(await emails('--search', 'oppe')).toEqual(['grace@example.net']);
    expect(await emails('--limit', '1')).toEqual(['grace@example.net']);
    await shell.run('suppression', 'add', 'ada@example.net', '--account', 'shop');
    expect(await emails('--status', 'suppressed')).toEqual(['ada@example.net']);
    expect(await shell.json('contacts', 'list', '--account', 'other', '--json')).toEqual([]);
    expect(await contacts('list', '--search', 'x')).toMatchObject({ err: 'No contact matches' });
    expect(await contacts('list', '--limit', '1')).toMatchObject({
      out: expect.stringMatching(/grace@example\.net[^]*active(?![^]*more)/),
      err: 'postrider: There are more than 1: --limit shows up to 1000',
    });
  });

  it.each([
    'ada@example.net',
    'ADA@example.net',
    '+44 20 7946 0000',
    'email_ae2c0afa556b74f2d501305b54c34910',
  ])('show a contact by %s', async (person) => {
    expect(await contactsJson('show', person)).toMatchObject({
      email: 'ada@example.net',
      customFields: { plan: 'gold' },
      consentMethod: 'imported',
      addedBy: 'import',
      memberships: [],
      consents: [{ action: 'given', method: 'imported', recordedBy: 'import' }],
    });
    expect((await contacts('show', person)).out).toMatch(
      /lastName +Lovelace[^]*given {2}imported, by import/,
    );
  });

  it.each([
    ['an unknown contact', 'x@example.net', 1, 'There is no contact'],
    ['an invalid identifier', 'x', 2, 'is not an address, phone number or identifier'],
  ])('reject %s', async (_, person, status, message) => {
    for (const verb of ['show', 'erase']) {
      const outcome = await contacts(verb, person);
      expect(outcome.status).toBe(status);
      expect(outcome.err).toContain(message);
    }
  });
});

describe('contacts erase and compact', () => {
  it('leave no trace of a person', async () => {
    await contacts('import', fileOf('people.csv', PEOPLE), '--ignore-unknown');
    expect(await contacts('erase', 'ada@example.net')).toMatchObject({
      status: 0,
      out: 'email_ae2c0afa556b74f2d501305b54c34910 is erased',
    });
    const bytes = readFileSync(join(inDir('data'), DATABASE_FILE), 'latin1');
    for (const trace of ['ada@example', 'Lovelace', '2079460000'])
      expect(bytes.includes(trace), trace).toBe(false);
    expect(await contactsJson('list')).toHaveLength(1);
    expect(await shell.run('contacts', 'compact')).toMatchObject({
      status: 0,
      out: 'The database has been rewritten',
    });
  });

  it('erase is complete when its process ends', async () => {
    await contacts('import', fileOf('people.csv', PEOPLE), '--ignore-unknown');
    const args = ['contacts', 'erase', 'ada@example.net', '--account', 'shop', '--json'];
    const { status, out, err } = await runProgram(['--config', shell.file, ...args]);
    expect([status, err]).toEqual([0, '']);
    expect(JSON.parse(out)).toMatchObject({ complete: true });
  });

  it('erase a person without a contact, and one who was erased before', async () => {
    await shell.run('suppression', 'add', 'linus@example.net', '--account', 'shop');
    for (const person of ['linus@example.net', 'LINUS@example.net', LINUS_ID]) {
      expect(await contacts('erase', person)).toEqual({ status: 0, out: `${LINUS_ID} is erased`, err: '' });
      expect(readFileSync(join(inDir('data'), DATABASE_FILE), 'latin1')).not.toContain('linus@example.net');
    }
    expect(await shell.run('contacts', 'erase', LINUS_ID, '--account', 'other')).toMatchObject({
      status: 1,
      err: expect.stringContaining('and no message, event or suppression of this recipient'),
    });
  });

  it('erase leaves clearing the file to a running daemon', async () => {
    const db = openDatabase(inDir('data'));
    const tables = createTables(db);
    await contacts('import', fileOf('people.csv', PEOPLE), '--ignore-unknown');
    // A copy in free space, as page splits leave them.
    db.exec('PRAGMA secure_delete = OFF');
    db.exec('CREATE TABLE elsewhere (text TEXT) STRICT');
    for (const text of ['ada@example.net', 'kept']) db.prepare('INSERT INTO elsewhere VALUES (?)').run(text);
    db.exec("DELETE FROM elsewhere WHERE text <> 'kept'");
    db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    const lock = lockDaemon(inDir('data'));
    expect(await contacts('erase', 'ada@example.net')).toMatchObject({ status: 0 });
    lock.release();
    expect(tables.settings.get('traces-wanted')).toBe('1');
    expect(tables.settings.get('traces-cleared')).toBeNull();
    expect(readFileSync(join(inDir('data'), DATABASE_FILE), 'latin1')).toContain('ada@example.net');
    db.close();
  });

  it('compact creates a file that returns free pages, and leaves no copy', async () => {
    const old = openDatabase(inDir('data'));
    old.exec('PRAGMA auto_vacuum = NONE');
    old.exec('VACUUM');
    old.close();
    expect(await shell.run('contacts', 'compact')).toMatchObject({ status: 0 });
    const db = openDatabase(inDir('data'));
    expect(createTables(db).freeSpace.isReturnable()).toBe(true);
    db.close();
    expect(readdirSync(inDir('data')).filter((name) => name.includes('etilqs'))).toEqual([]);
  });

  it('compact is refused while a daemon is running', async () => {
    await shell.run('contacts', 'compact');
    const lock = lockDaemon(inDir('data'));
    const outcome = await shell.run('contacts', 'compact');
    lock.release();
    expect(outcome.status).toBe(1);
    expect(outcome.err).toMatch(
      /contacts compact cannot run while a postrider daemon is running on .*: stop the daemon first/,
    );
  });
});
