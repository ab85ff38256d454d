import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { listBackups, removeOldBackups } from '../../src/backup/folder.ts';
import { verifyBackup } from '../../src/backup/verify.ts';
import { eventually } from '../support/eventually.ts';
import { RSA_KEY } from '../support/rsa-keys.ts';
import { enqueue, insertDomain, temporaryDir } from '../support/store.ts';
import { startInstallation } from './setup.ts';

const filesOf = (backup: string) =>
  readdirSync(backup, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(backup.length + 1))
    .toSorted();

describe('createBackup', () => {
  it('contains the database, the operator’s files and the configuration, without master keys and the reserve', async () => {
    const { dir, backup, config, tables, clock } = await startInstallation();
    enqueue(tables, clock.now());
    mkdirSync(join(dir, 'tls'));
    writeFileSync(join(dir, 'tls/mx.pem'), 'certificate', { mode: 0o640 });
    for (const name of ['master.key.1', 'master.key.new', 'reserve']) writeFileSync(join(dir, name), name);
    const { path, manifest } = await backup();
    expect(filesOf(path)).toEqual([
      'config/postrider.toml',
      'data/tls/mx.pem',
      'manifest.json',
      'postrider.db',
    ]);
    expect(manifest).toMatchObject({
      includesKey: false,
      createdAt: '2026-01-15T12:00:00.000Z',
      hostname: 'mail.postrider.test',
      counts: { accounts: 1, domains: 1, messages: { queued: 1 }, queued: 1, webhookDeliveries: 0 },
    });
    expect(manifest.files).toContainEqual(
      expect.objectContaining({ path: 'config/postrider.toml', source: config.file }),
    );
    expect(statSync(join(path, 'data/tls/mx.pem')).mode & 0o777).toBe(0o640);
    expect(statSync(path).mode & 0o777).toBe(0o700);
  });

  it('contains the files that the configuration names', async () => {
    const { backup, config } = await startInstallation();
    const folder = temporaryDir();
    const named = (name: string) => {
      writeFileSync(join(folder, name), name);
      return join(folder, name);
    };
    const { api, delivery } = config;
    const { path } = await backup({
      config: {
        ...config,
        api: { ...api, metricsKeyFile: named('metrics.key') },
        delivery: {
          ...delivery,
          egress: [{ name: 'far', pools: ['default'], proxyPasswordFile: named('proxy.password') }],
        },
      },
    });
    expect(filesOf(path)).toEqual([
      'config/1-metrics.key',
      'config/2-proxy.password',
      'config/postrider.toml',
      'manifest.json',
      'postrider.db',
    ]);
  });

  it('is consistent and complete while units of work are committed', async () => {
    const { backup, tables, writer, clock, config, db } = await startInstallation();
    let accepted = 0;
    const stop = new AbortController();
    const load = (async () => {
      while (!stop.signal.aborted) {
        await writer.run((tx) => void enqueue(tx, clock.now()));
        accepted++;
        await new Promise(setImmediate);
      }
    })();
    await expect.poll(() => accepted).toBeGreaterThan(50);
    const before = accepted;
    const { path, manifest } = await backup();
    stop.abort();
    await load;
    expect(accepted).toBeGreaterThan(before);
    expect(manifest.counts?.queued).toBeGreaterThanOrEqual(before);
    expect(manifest.counts?.messages).toEqual({ queued: manifest.counts?.queued });
    const verified = await verifyBackup(path, {
      masterKeyFile: config.data.masterKeyFile,
    });
    expect(verified).toMatchObject({ key: 'fits', problems: [] });
    expect(tables.queue.count()).toBe(accepted);
    expect(db.open).toBe(true);
  });

  it('never overwrites: a second backup in the same second has another name', async () => {
    const { backup, backups } = await startInstallation();
    const one = await backup();
    const two = await backup();
    expect(two.path).toBe(`${one.path}-2`);
    expect((await listBackups(backups)).map(({ path }) => path)).toEqual([two.path, one.path]);
  });

  it('leaves nothing when it is aborted, and removes what a killed process left', async () => {
    const { backup, backups, config, db } = await startInstallation();
    // The copy takes more than one step.
    db.exec('CREATE TABLE filler (data BLOB)');
    db.exec('INSERT INTO filler VALUES (zeroblob(8000000))');
    const stop = new AbortController();
    const slow = { ...config, backup: { ...config.backup, bytesPerSecond: 1_048_576 } };
    const aborted = backup({ signal: stop.signal, config: slow });
    const isPartial = () => readdirSync(backups).some((name) => name.endsWith('.partial'));
    await eventually('a partial backup', isPartial, { everyMs: 5 });
    stop.abort(new Error('enough'));
    await expect(aborted).rejects.toThrow('enough');
    expect(readdirSync(backups)).toEqual(['.backup.lock']);

    mkdirSync(join(backups, '.postrider-20250101T000000Z.partial'));
    writeFileSync(join(backups, '.postrider-20250101T000000Z.partial/manifest.json'), '{}');
    expect(await listBackups(backups)).toEqual([]);
    const { path } = await backup();
    expect(readdirSync(backups).toSorted()).toEqual(['.backup.lock', path.slice(backups.length + 1)]);
  });

  it('copies nothing when it is stopped before the copy', async () => {
    const { backup, backups } = await startInstallation();
    const steps: string[] = [];
    const stopped = backup({
      signal: AbortSignal.abort(new Error('stopped')),
      onProgress: ({ step }) => void steps.push(step),
    });
    await expect(stopped).rejects.toThrow('stopped');
    expect(steps).toEqual([]);
    expect(readdirSync(backups)).toEqual(['.backup.lock']);
  });

  it.skipIf(!existsSync('/proc/self'))(
    `rejects a directory that cannot be created${existsSync('/proc/self') ? '' : ' [skipped: needs /proc]'}`,
    async () => {
      const { backup } = await startInstallation();
      await expect(backup({ dir: '/proc/postrider/backups' })).rejects.toThrow(
        '/proc/postrider cannot be created: ',
      );
    },
  );

  it('rejects files so deep below data.dir that they would be missing in the backup', async () => {
    const { backup, dir } = await startInstallation();
    const deep = join(dir, ...Array.from({ length: 17 }, () => 'd'));
    mkdirSync(deep, { recursive: true });
    writeFileSync(join(deep, 'file'), 'x');
    await expect(backup()).rejects.toThrow('would be missing in the backup');
  });

  it('refuses to run twice in one directory', async () => {
    const { backup } = await startInstallation();
    const results = await Promise.allSettled([backup(), backup()]);
    expect(results.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
    const [refused] = results.filter((result) => result.status === 'rejected');
    expect(String(refused?.reason)).toContain('Another backup is being written');
  });

  it('does not put the backups of a directory below data.dir into a backup', async () => {
    const { backup, config, dir } = await startInstallation();
    expect(config.backup.dir).toBe(join(dir, 'backups'));
    mkdirSync(config.backup.dir);
    writeFileSync(join(config.backup.dir, 'large'), 'x');
    expect(filesOf((await backup()).path)).toEqual([
      'config/postrider.toml',
      'manifest.json',
      'postrider.db',
    ]);
  });
});

describe('verifyBackup', () => {
  it('finds a changed byte in every file, and a missing file', async () => {
    const { backup, config, dir } = await startInstallation();
    writeFileSync(join(dir, 'notes.txt'), 'text of the operator');
    const options = { masterKeyFile: config.data.masterKeyFile };
    const { path } = await backup();
    for (const name of filesOf(path)) {
      const file = join(path, name);
      const original = readFileSync(file);
      const damaged = Buffer.from(original);
      const at = Math.floor(damaged.length / 2);
      damaged.writeUInt8(damaged.readUInt8(at) ^ 1, at);
      writeFileSync(file, damaged);
      const { problems } = await verifyBackup(path, options);
      expect(problems.join('\n'), name).toMatch(
        name === 'manifest.json' ? /damaged|invalid/ : `${name} is damaged`,
      );
      writeFileSync(file, original);
    }
    expect((await verifyBackup(path, options)).problems).toEqual([]);
    writeFileSync(join(path, 'data/notes.txt'), '');
    expect((await verifyBackup(path, options)).problems).toEqual([
      'data/notes.txt has 0 bytes, the manifest 20',
    ]);
  });

  it('reports whether the master key opens what is sealed', async () => {
    const { backup, config, otherKey, seal, tables, clock } = await startInstallation();
    insertDomain(
      tables,
      { account_id: 'acct_one', domain_id: 'domain_two', name: 'example.net' },
      clock.now(),
    );
    tables.dkimKeys.insert({
      domain_id: 'domain_two',
      lane: 'primary',
      selector: 'pr1',
      state: 'active',
      private_key: seal.seal(RSA_KEY.export({ type: 'pkcs8', format: 'der' }), 'dkim:domain_two:pr1'),
      public_key: 'key',
      created_at: clock.now(),
    });
    const { path } = await backup();
    const verify = (masterKeyFile: string) => verifyBackup(path, { masterKeyFile });
    expect(await verify(config.data.masterKeyFile)).toMatchObject({ key: 'fits', problems: [] });
    const other = otherKey();
    expect(await verify(other)).toMatchObject({
      key: 'does not fit',
      problems: [
        expect.stringMatching(`^${other} is not the master key of this backup: .*docs/lost-master-key.md$`),
      ],
    });
    // The key was replaced after the backup.
    copyFileSync(config.data.masterKeyFile, `${other}.1`);
    expect(await verify(other)).toMatchObject({ key: 'fits', problems: [] });
    expect(await verify(`${other}.missing`)).toMatchObject({ key: 'unavailable', problems: [] });
    const included = await backup({ includeKey: true });
    expect(existsSync(join(included.path, 'master.key'))).toBe(true);
    expect(await verifyBackup(included.path, { masterKeyFile: other })).toMatchObject({
      key: 'fits',
      problems: [],
    });
  });
});

describe('removeOldBackups', () => {
  it('keeps the newest complete ones of the instance, and does not remove anything else', async () => {
    const { backup, backups, clock, writer } = await startInstallation();
    await writer.run((tx) => tx.settings.put('instance-id', 'one'));
    const created: string[] = [];
    for (let day = 0; day < 4; day++) {
      created.push((await backup()).path);
      clock.advance(86_400_000);
    }
    const [first = '', second = '', third = '', last = ''] = created;
    const incomplete = join(backups, 'postrider-20260201T000000Z');
    mkdirSync(incomplete);
    expect(await removeOldBackups(backups, 'another', { keep: 1, keepDays: null }, clock.now())).toEqual([]);
    // The third is two days old.
    const byDays = { keep: 1, keepDays: 2 };
    expect(await removeOldBackups(backups, 'one', byDays, clock.now())).toEqual([second, first]);
    expect(await removeOldBackups(backups, 'one', { keep: 1, keepDays: null }, clock.now())).toEqual([third]);
    const listed = await listBackups(backups);
    expect(listed.map(({ path, fault }) => [path, fault === null])).toEqual([
      [incomplete, false],
      [last, true],
    ]);
  });
});
