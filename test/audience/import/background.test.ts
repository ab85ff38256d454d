import { existsSync, readdirSync, readlinkSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { createAddressChecks } from '../../../src/audience/hygiene/checks.ts';
import {
  createBackgroundImports,
  MAX_FILE_BYTES,
  MAX_UNFINISHED,
  type UploadedImport,
} from '../../../src/audience/import/background.ts';
import { createImporter, type Importer } from '../../../src/audience/import/import.ts';
import { errorCode } from '../../../src/core/errors.ts';
import { createLog } from '../../../src/core/log.ts';
import { isRefusal, type Refusal, refuse } from '../../../src/core/refusal.ts';
import { emailIdentifier } from '../../../src/mail/identifier.ts';
import { IMPORT_FOLDER, MAX_KEPT_IMPORTS } from '../../../src/store/contacts/background-imports.ts';
import { granted } from '../../support/refusal.ts';
import { temporaryDir } from '../../support/store.ts';
import { fakeResolver } from '../hygiene/fake-resolver.ts';
import { CALLER, codeOf, startAudience } from '../setup.ts';

async function start() {
  const audience = await startAudience();
  const dataDir = temporaryDir();
  const folder = join(dataDir, IMPORT_FOLDER);
  const checks = createAddressChecks({ resolver: fakeResolver(), monotonic: audience.clock });
  const storageRefusal = vi.fn<() => Refusal | null>(() => null);
  /** A daemon's imports; `turnMs` 0: each batch is a turn. */
  const daemon = (options: { turnMs?: number; importer?: Importer } = {}) =>
    createBackgroundImports(
      { ...audience, ...options, log: createLog({ level: 'silent', hashAddresses: false }) },
      { ...audience, ...options, checks, dataDir, storageRefusal },
    );
  const upload = (text: string, more: Partial<UploadedImport> = {}): UploadedImport => ({
    accountId: 'acct_one',
    groupId: null,
    actor: CALLER,
    format: 'csv',
    columns: undefined,
    fileName: 'people.csv',
    hygiene: 'report',
    bytes: (async function* () {
      yield Buffer.from(text);
    })(),
    ...more,
  });
  const files = () => (existsSync(folder) ? readdirSync(folder) : []);
  const ended = async (importId: string, accountId = 'acct_one') => {
    const get = () => audience.tables.backgroundImports.get(accountId, importId);
    await expect.poll(() => get()?.finished_at).not.toBeNull();
    const row = get();
    if (row === null) throw new Error('the import is gone');
    return { ...row, counts: JSON.parse(row.counts) as Record<string, number> };
  };
  const setStatus = (status: 'active' | 'disabled') =>
    audience.writer.run((tx) => {
      const account = tx.accounts.get('acct_one');
      if (account !== null) tx.accounts.update({ ...account, status, updated_at: audience.clock.now() });
    });
  return { ...audience, setStatus, folder, storageRefusal, daemon, upload, files, ended };
}

/** A CSV of `count` people whose addresses begin with `name`. */
function people(count: number, name = 'p'): string {
  return `email\n${Array.from({ length: count }, (_, n) => `${name}${n}@example.net\n`).join('')}`;
}

/** The files that this process has open. */
function openFiles(): string[] {
  return readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/self/fd/${fd}`)];
    } catch (error) {
      // Closed meanwhile, as the descriptor of this list.
      if (errorCode(error) === 'ENOENT') return [];
      throw error;
    }
  });
}

describe('an import in the background', () => {
  it('imports the file, reports the result, and deletes the file', async () => {
    const { daemon, upload, ended, files, groupId, tables } = await start();
    const imports = daemon();
    imports.start();
    const text = 'Mail,First name,Shoe size\na@example.net,A,39\nbroken,B,40\n';
    const columns = new Map([['Mail', 'email']]);
    const { import_id } = granted(await imports.add(upload(text, { groupId, columns })));
    expect(await ended(import_id)).toMatchObject({
      status: 'completed',
      bytes: text.length,
      at_byte: text.length,
      counts: { rows: 2, created: 1, rejected: 1, subscribed: 1 },
      rejected_rows: JSON.stringify([{ line: 3, reason: 'email: has no "@"' }]),
      ignored: '["Shoe size"]',
    });
    await expect.poll(() => files()).toEqual([]);
    expect(tables.contacts.byIdentifier('acct_one', emailIdentifier('a@example.net'))?.first_name).toBe('A');
    await imports.stop();
  });

  it('continues after a stop where it was, and counts every row once', async () => {
    const { daemon, upload, ended, tables, writer, clock, ids, limits } = await start();
    const importer = createImporter({ writer, clock, ids, monotonic: clock }, limits.mayAdd.contacts);
    let batches = 0;
    const first = daemon({
      importer: {
        run: (job) =>
          importer.run({
            ...job,
            afterBatch: (batch) => {
              job.afterBatch?.(batch);
              if (++batches === 2) void first.stop();
            },
          }),
      },
    });
    first.start();
    const { import_id } = granted(await first.add(upload(people(1000))));
    await expect.poll(() => batches).toBe(2);
    await first.stop();
    const between = tables.backgroundImports.get('acct_one', import_id);
    expect(between).toMatchObject({ status: 'waiting', finished_at: null });
    expect(between?.at_line).toBe(121);

    const second = daemon();
    second.start();
    expect(await ended(import_id)).toMatchObject({
      status: 'completed',
      counts: { rows: 1000, created: 1000, updated: 0, unchanged: 0 },
    });
    await second.stop();
  });

  it('gives way to the imports of other accounts', async () => {
    const { daemon, upload, ended } = await start();
    const imports = daemon({ turnMs: 0 });
    const long = granted(await imports.add(upload(people(2000))));
    const short = granted(await imports.add(upload(people(50), { accountId: 'acct_two' })));
    imports.start();
    const { finished_at: shortEnd } = await ended(short.import_id, 'acct_two');
    expect(imports.get('acct_one', long.import_id)).toMatchObject({ finished_at: null });
    expect(shortEnd).not.toBeNull();
    expect(await ended(long.import_id)).toMatchObject({ counts: { rows: 2000, created: 2000 } });
    await imports.stop();
  });

  it('ends when it is cancelled; imported rows remain', async () => {
    const { daemon, upload, tables, files, folder } = await start();
    const imports = daemon();
    const waiting = granted(await imports.add(upload(people(10))));
    expect(files()).toEqual([waiting.import_id]);
    expect(await imports.cancel('acct_one', waiting.import_id)).toMatchObject({ status: 'cancelled' });
    expect(files()).toEqual([]);

    imports.start();
    const running = granted(await imports.add(upload(people(5000))));
    const row = () => tables.backgroundImports.get('acct_one', running.import_id);
    await expect.poll(() => row()?.at_byte).toBeGreaterThan(0);
    const cancelled = granted(await imports.cancel('acct_one', running.import_id));
    const { created } = JSON.parse(cancelled.counts) as { created: number };
    await imports.stop();
    expect(row()).toEqual(cancelled);
    expect(created).toBeLessThan(5000);
    expect(tables.contacts.byIdentifier('acct_one', emailIdentifier(`p${created - 1}@example.net`))).not.toBe(
      null,
    );
    expect(tables.contacts.byIdentifier('acct_one', emailIdentifier(`p${created}@example.net`))).toBe(null);
    expect(readdirSync(folder)).toEqual([]);
    expect(codeOf(await imports.cancel('acct_one', running.import_id))).toBe('INVALID_STATE');
  });

  it('waits while its account is disabled', async () => {
    const { daemon, upload, tables, setStatus, ended } = await start();
    const imports = daemon();
    const { import_id } = granted(await imports.add(upload(people(10))));
    await setStatus('disabled');
    imports.start();
    const other = granted(await imports.add(upload(people(10), { accountId: 'acct_two' })));
    await ended(other.import_id, 'acct_two');
    expect(tables.backgroundImports.get('acct_one', import_id)).toMatchObject({
      status: 'waiting',
      at_byte: 0,
    });
    await imports.stop();
    await setStatus('active');
    const later = daemon();
    later.start();
    expect(await ended(import_id)).toMatchObject({ status: 'completed' });
    await later.stop();
  });

  it('fails with a reason when its group is deleted or its file is gone', async () => {
    const { daemon, upload, ended, folder, groups, groupId } = await start();
    const imports = daemon();
    const ofGroup = granted(await imports.add(upload(people(10), { groupId })));
    const lost = granted(await imports.add(upload(people(10))));
    await groups.remove('acct_one', groupId);
    rmSync(join(folder, lost.import_id));
    imports.start();
    expect(await ended(ofGroup.import_id)).toMatchObject({
      status: 'failed',
      reason: `There is no subscription group ${groupId}`,
    });
    expect(await ended(lost.import_id)).toMatchObject({
      status: 'failed',
      reason: 'The uploaded file cannot be read: upload it again',
    });
    await imports.stop();
  });

  it('fails with a reason when the file of an NDJSON import is gone', async () => {
    const { daemon, upload, folder, ended } = await start();
    const imports = daemon();
    const ndjson: Partial<UploadedImport> = { format: 'ndjson', fileName: 'people.ndjson' };
    const lost = granted(await imports.add(upload('{"email":"a@example.net"}\n', ndjson)));
    rmSync(join(folder, lost.import_id));
    imports.start();
    expect(await ended(lost.import_id)).toMatchObject({
      status: 'failed',
      reason: 'The uploaded file cannot be read: upload it again',
    });
    await imports.stop();
  });

  it('leaves no open files when NDJSON is uploaded', async () => {
    const { daemon, upload } = await start();
    const ndjson: Partial<UploadedImport> = { format: 'ndjson', fileName: 'people.ndjson' };
    const { import_id } = granted(await daemon().add(upload('{"email":"a@example.net"}\n', ndjson)));
    expect(openFiles()).not.toContainEqual(expect.stringContaining(import_id));
  });

  it('removes files of interrupted uploads at the start, and no others', async () => {
    const { daemon, upload, files, folder, setStatus } = await start();
    const { import_id } = granted(await daemon().add(upload(people(10))));
    await setStatus('disabled');
    writeFileSync(join(folder, 'import_1_interrupted'), 'email\n');
    const imports = daemon();
    imports.start();
    await expect.poll(() => files()).toEqual([import_id]);
    await imports.stop();
  });
});

describe('an upload', () => {
  it.each([
    ['no valid header', 'name\nAda\n', 'VALIDATION_ERROR'],
    ['no content', '', 'VALIDATION_ERROR'],
  ])('is refused with %s', async (_, text, code) => {
    const { daemon, upload, files, tables } = await start();
    expect(codeOf(await daemon().add(upload(text)))).toBe(code);
    expect([files(), tables.backgroundImports.list('acct_one')]).toEqual([[], []]);
  });

  it('is refused when it is too long, and when the disk is nearly full', async () => {
    const { daemon, upload, files, storageRefusal } = await start();
    const imports = daemon();
    const tooLong = upload('', {
      bytes: (async function* () {
        yield Buffer.from('email\n');
        // Longer than it claims to be: what was written is removed.
        yield { length: MAX_FILE_BYTES } as Buffer;
      })(),
    });
    expect(codeOf(await imports.add(tooLong))).toBe('PAYLOAD_TOO_LARGE');
    storageRefusal.mockReturnValue(refuse('UNAVAILABLE', 'the disk is nearly full'));
    expect(codeOf(await imports.add(upload(people(1))))).toBe('UNAVAILABLE');
    expect(files()).toEqual([]);
  });

  it('waits while the disk is nearly full, and continues after the rows that are stored', async () => {
    const { daemon, upload, storageRefusal, tables, ended } = await start();
    const imports = daemon();
    const { import_id: importId } = granted(await imports.add(upload(people(250))));
    let asked = 0;
    storageRefusal.mockImplementation(() =>
      ++asked > 2 ? refuse('UNAVAILABLE', 'the disk is nearly full') : null,
    );
    imports.start();
    await expect.poll(() => asked).toBeGreaterThan(2);
    await imports.stop();
    expect(tables.backgroundImports.get('acct_one', importId)).toMatchObject({
      status: 'waiting',
      counts: expect.stringContaining('"rows":20'),
    });
    storageRefusal.mockReturnValue(null);
    const next = daemon();
    next.start();
    expect(await ended(importId)).toMatchObject({ status: 'completed', counts: { rows: 250, created: 250 } });
    await next.stop();
  });

  it('leaves nothing when the client disconnects', async () => {
    const { daemon, upload, files, tables } = await start();
    const bytes = (async function* () {
      yield Buffer.from('email\n');
      throw new Error('disconnected');
    })();
    await expect(daemon().add(upload('', { bytes }))).rejects.toThrow('disconnected');
    expect([files(), tables.backgroundImports.list('acct_one')]).toEqual([[], []]);
  });

  it('counts uploads in progress to the limit of its account', async () => {
    const { daemon, upload, files } = await start();
    const imports = daemon();
    for (let n = 1; n < MAX_UNFINISHED; n++) granted(await imports.add(upload(people(1))));
    const results = await Promise.all([1, 2, 3].map(() => imports.add(upload(people(1)))));
    expect(results.filter((result) => !isRefusal(result))).toHaveLength(1);
    expect(codeOf(await imports.add(upload(people(1))))).toBe('LIMIT_REACHED');
    expect(files()).toHaveLength(MAX_UNFINISHED);
    granted(await imports.add(upload(people(1), { accountId: 'acct_two' })));
  });

  it('drops the oldest finished imports of its account', async () => {
    const { daemon, upload, tables, clock } = await start();
    const imports = daemon();
    const made: string[] = [];
    for (let n = 0; n <= MAX_KEPT_IMPORTS + 1; n++) {
      const { import_id } = granted(await imports.add(upload(people(1))));
      made.push(import_id);
      clock.advance(1);
      await imports.cancel('acct_one', import_id);
    }
    const kept = tables.backgroundImports.list('acct_one').map(({ import_id }) => import_id);
    expect(kept).toEqual(made.slice(2).toReversed());
    expect(codeOf(imports.get('acct_two', kept[0] ?? ''))).toBe('NOT_FOUND');
  });

  it('is readable by its owner only', async () => {
    const { daemon, upload, folder } = await start();
    const { import_id } = granted(await daemon().add(upload(people(1))));
    const modes = [folder, join(folder, import_id)].map((path) => statSync(path).mode & 0o777);
    expect(modes).toEqual([0o700, 0o600]);
  });
});
