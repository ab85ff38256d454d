// Long: backs up, restores and takes over while mail is sent.
import { execFile, spawn } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { MAX_FRAMES } from '../../src/store/database/write-ahead-log.ts';
import { type ApiClient, createApiClient } from '../support/api-client.ts';
import { type RunningDaemon, type Settings, startDaemon } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { SHORT_MAIL } from '../support/recipients.ts';
import { type SendingSetup, startSendingSetup } from '../support/sending-setup.ts';
import type { Sink, SinkOptions } from '../support/smtp-sink.ts';

/*
 * Backups, restores and failovers of the built program. The sink receives the mail of the original and of the restored
 * daemon: no recipient may get a message twice.
 *
 *   test ──HTTP──▶ original ─────SMTP──▶ sink
 *                     │ backup            ▲
 *                     ▼                   │
 *                  restored ──────SMTP────┘
 */
const run = promisify(execFile);
const SENDERS = 4;
const FRAME_BYTES = 24 + 4096;
const DOMAIN = 'empfang.example';
/** The sink defers the mail of some recipients. */
const DEFERRING: SinkOptions['recipients'] = {
  [`@${DOMAIN}`]: (_, address) => (address.includes('later+') ? '451 4.2.0 later' : undefined),
};

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'postrider-backup-'));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

/** Messages that the sink accepted, by recipient. */
function received(sink: Sink): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { to } of sink.messages)
    for (const recipient of to) counts.set(recipient, (counts.get(recipient) ?? 0) + 1);
  return counts;
}

const twice = (sink: Sink) => [...received(sink)].filter(([, count]) => count > 1);

/** Sends to one recipient after the other until it is stopped; every fifth is deferred by the sink. */
function startLoad(api: ApiClient) {
  const accepted: { recipient: string; messageId: string }[] = [];
  const over = new AbortController();
  let next = 0;
  const sender = async () => {
    while (!over.signal.aborted) {
      const number = next++;
      const recipient = `${number % 5 === 0 ? 'later+' : 'user'}${number}@${DOMAIN}`;
      const mail = { ...SHORT_MAIL, from: 'a@kunde.example', to: recipient };
      const { data } = await api.send(mail);
      accepted.push({ recipient, messageId: data.messageId });
    }
  };
  const senders = Promise.all(Array.from({ length: SENDERS }, sender));
  return {
    accepted,
    until: (count: number) => eventually(`${count} accepted messages`, () => accepted.length >= count),
    stop: async () => {
      over.abort();
      await senders;
    },
  };
}

/** Starts a daemon on a restored data directory, which delivers to the same sink. */
async function startRestored(setup: SendingSetup, dataDir: string, settings: Settings = {}) {
  const daemon = await startDaemon({
    'data.dir': dataDir,
    'dns.resolvers': [setup.dns.address],
    'delivery.port': setup.sink.port,
    'delivery.allowPrivateNetworks': true,
    'delivery.retry.first': '1s',
    ...settings,
  });
  return { daemon, api: createApiClient(daemon.baseUrl, setup.daemon.api) };
}

interface HeldList {
  messages: { accountId: string; domain: string; messages: number }[];
}

async function heldMessages(daemon: RunningDaemon): Promise<number> {
  const held: HeldList = JSON.parse(await daemon.cli('restore', 'held', '--json'));
  return held.messages.reduce((sum, { messages }) => sum + messages, 0);
}

/** Removes a setup whose daemon was killed or has stopped by itself. */
async function remove({ daemon, sink, dns }: SendingSetup): Promise<void> {
  await expect(daemon.stop()).rejects.toThrow('the daemon exited with');
  await sink.close();
  await dns.close();
}

describe('a backup under load', () => {
  it('is restored without losing a message or sending one twice', async () => {
    const setup = await startSendingSetup(
      { 'log.level': 'warn', 'delivery.retry.first': '1s' },
      { recipients: DEFERRING },
    );
    const { daemon, sink } = setup;
    const load = startLoad(daemon.api);
    await load.until(150);
    const before = [...load.accepted];
    const created = JSON.parse(
      await daemon.cli('backup', 'create', join(dir, 'backups'), '--include-key', '--json'),
    );
    expect(created.counts.accounts).toBe(1);
    // The original delivers what was in its queue, and accepts more.
    const during = load.accepted.length;
    await load.until(during + 50);
    await load.stop();
    const delivered = before.filter(({ recipient }) => !recipient.startsWith('later+'));
    await eventually('the original to deliver', () =>
      delivered.every(({ recipient }) => received(sink).has(recipient)),
    );
    await daemon.kill('SIGKILL');

    const verified = JSON.parse(await daemon.cli('backup', 'verify', created.path, '--json'));
    expect(verified).toMatchObject({ intact: true, key: 'fits', problems: [] });
    const dataDir = join(dir, 'data');
    const restored = JSON.parse(await daemon.cli('restore', created.path, '--data', dataDir, '--json'));
    expect(restored).toMatchObject({ isKeyMissing: false, messages: created.counts.queued });
    const { daemon: second, api } = await startRestored(setup, dataDir, { 'log.level': 'warn' });
    expect(await heldMessages(second)).toBe(created.counts.queued);
    const ready = await (await fetch(`${second.baseUrl}/readyz`)).text();
    expect(ready).toContain('heldSinceRestore');

    // New messages are sent; held ones are not.
    sink.program({ recipients: {} });
    const { data } = await api.send({ ...SHORT_MAIL, from: 'a@kunde.example', to: `new@${DOMAIN}` });
    await eventually('the new message to be delivered', () => received(sink).has(`new@${DOMAIN}`));
    expect(await api.message(data.messageId)).toMatchObject({ recipient: `new@${DOMAIN}` });
    expect(twice(sink)).toEqual([]);

    // The ledger: what was accepted before the backup is delivered, or held.
    const states = new Map((await api.allMessages()).map((message) => [message.messageId, message.status]));
    const open = before.filter(({ messageId }) => states.get(messageId) !== 'delivered');
    expect(
      open.every(({ messageId }) => ['queued', 'deferred'].includes(states.get(messageId) ?? 'lost')),
    ).toBe(true);

    // The operator releases the messages that the sink has not received, and drops the rest.
    const missing = open.filter(({ recipient }) => !received(sink).has(recipient));
    expect(missing.length).toBeGreaterThan(0);
    await second.cli('restore', 'release', ...missing.map(({ messageId }) => messageId));
    await second.cli('restore', 'drop', '--all', '--yes');
    await eventually('the released messages to be delivered', () =>
      before.every(({ recipient }) => received(sink).has(recipient)),
    );
    expect(twice(sink)).toEqual([]);
    expect(await heldMessages(second)).toBe(0);
    console.log(
      `${before.length} messages accepted before the backup, ${created.counts.queued} of them unfinished and held; ${missing.length} released, the others dropped; received ${sink.count}, twice 0`,
    );
    await second.stop();
    await remove(setup);
  });

  it('leaves nothing that looks complete when it is killed', async () => {
    const setup = await startSendingSetup({ 'log.level': 'warn', 'backup.bytesPerSecond': 1_048_576 });
    onTestFinished(() => setup.stop());
    const { daemon } = setup;
    const db = new Database(join(daemon.dataDir, 'postrider.db'));
    db.exec('CREATE TABLE filler (data BLOB); INSERT INTO filler VALUES (zeroblob(16000000))');
    db.close();
    const backups = join(dir, 'backups');
    const env = {
      PATH: process.env['PATH'],
      POSTRIDER_DATA__DIR: daemon.dataDir,
      POSTRIDER_BACKUP__BYTESPERSECOND: '1048576',
    };
    const program = new URL('../../dist/main.js', import.meta.url).pathname;
    const child = spawn(process.execPath, [program, 'backup', 'create', backups], { env });
    const exited = new Promise((resolve) => child.once('exit', resolve));
    await eventually('the copy to begin', async () => {
      const names = await readdir(backups).catch(() => []);
      const partial = names.find((name) => name.endsWith('.partial'));
      return partial !== undefined && (await readdir(join(backups, partial))).length > 0;
    });
    child.kill('SIGKILL');
    await exited;
    expect(JSON.parse(await daemon.cli('backup', 'list', backups, '--json'))).toEqual([]);
    const { code, stderr } = await daemon.tryCli('restore', backups, '--data', join(dir, 'data'));
    expect({ code, stderr }).toMatchObject({ code: 1, stderr: expect.stringContaining('contains none') });
    expect(await daemon.api.get('/web-setup/account')).toMatchObject({ status: 200 });
  });

  it('is refused when a byte was changed, with exit status 3', async () => {
    const setup = await startSendingSetup({ 'log.level': 'warn' });
    onTestFinished(() => setup.stop());
    const { daemon } = setup;
    const { path } = JSON.parse(await daemon.cli('backup', join(dir, 'backups'), '--json'));
    const file = join(path, 'postrider.db');
    const bytes = await readFile(file);
    bytes.writeUInt8(bytes.readUInt8(bytes.length - 100) ^ 0x80, bytes.length - 100);
    await writeFile(file, bytes);
    const verified = await daemon.tryCli('backup', 'verify', path);
    expect(verified).toMatchObject({ code: 3, stderr: expect.stringContaining('postrider.db is damaged') });
    const restored = await daemon.tryCli('restore', path, '--data', join(dir, 'data'));
    expect(restored).toMatchObject({ code: 1, stderr: expect.stringContaining('checksum does not match') });
    expect(await readdir(join(dir, 'data'))).not.toContain('postrider.db');
  });
});

/** A connection that holds the write-ahead log as Litestream does: its tables, a read transaction, no checkpoints. */
function holdLog(file: string) {
  const db = new Database(file, { timeout: 5000 });
  db.exec('PRAGMA wal_autocheckpoint = 0');
  db.exec('CREATE TABLE IF NOT EXISTS _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER)');
  db.exec('CREATE TABLE IF NOT EXISTS _litestream_lock (id INTEGER)');
  db.exec('INSERT INTO _litestream_seq (id, seq) VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET seq = seq + 1');
  db.exec('BEGIN');
  db.prepare('SELECT count(*) FROM _litestream_seq').get();
  return db;
}

/** The salts of a write-ahead log, which change when it restarts (https://sqlite.org/fileformat2.html §4.1). */
async function saltsOf(file: string): Promise<string> {
  return (await readFile(`${file}-wal`)).subarray(16, 24).toString('hex');
}

describe('a standby', () => {
  it('takes over with the copy of a program that holds the log, and the old primary stops', async () => {
    const standbyPort = await freePort();
    const setup = await startSendingSetup(
      { 'log.level': 'warn', 'standby.peers': [`http://127.0.0.1:${standbyPort}`] },
      { recipients: DEFERRING },
    );
    const { daemon, sink } = setup;
    const file = join(daemon.dataDir, 'postrider.db');
    const reader = holdLog(file);
    const salts = await saltsOf(file);
    const load = startLoad(daemon.api);
    // A checkpoint is due, and the log that the reader needs stays complete.
    const isCheckpointDue = async () => (await stat(`${file}-wal`)).size > (MAX_FRAMES + 500) * FRAME_BYTES;
    await eventually('a long write-ahead log', isCheckpointDue);
    await load.stop();
    expect(await saltsOf(file)).toBe(salts);
    const copy = join(dir, 'replica');
    // By another process: closing the file in this one would release the reader's lock.
    await run('mkdir', [copy]);
    await run('cp', [file, `${file}-wal`, copy]);
    reader.exec('COMMIT');
    reader.close();

    const dataDir = join(dir, 'data');
    const restored = JSON.parse(
      await daemon.cli('restore', '--from-copy', join(copy, 'postrider.db'), '--data', dataDir, '--json'),
    );
    expect(restored.isKeyMissing).toBe(true);
    await run('cp', [join(daemon.dataDir, 'master.key'), dataDir]);
    const { daemon: second, api } = await startRestored(setup, dataDir, {
      'api.listen': `127.0.0.1:${standbyPort}`,
      'log.level': 'warn',
    });
    await eventually('the old primary to stop', () => daemon.log().includes('has taken over'));
    expect((await daemon.kill('SIGTERM')).code).toBe(4);
    const again = await daemon.tryCli('serve');
    expect(again).toMatchObject({ code: 4, stderr: expect.stringContaining('--force-new-generation') });

    sink.program({ recipients: {} });
    await api.send({ ...SHORT_MAIL, from: 'a@kunde.example', to: `new@${DOMAIN}` });
    await eventually('the new message to be delivered', () => received(sink).has(`new@${DOMAIN}`));
    expect(await heldMessages(second)).toBe(restored.messages);
    expect(twice(sink)).toEqual([]);
    await second.stop();
    await remove(setup);
  });

  it('stops a daemon whose data directory another one has taken over', async () => {
    const setup = await startSendingSetup({ 'log.level': 'warn' });
    const { daemon } = setup;
    const db = new Database(join(daemon.dataDir, 'postrider.db'), { timeout: 5000 });
    db.exec("UPDATE settings SET value = value + 1 WHERE name = 'generation'");
    db.close();
    const refused = await daemon.api
      .send({ ...SHORT_MAIL, from: 'a@kunde.example', to: `new@${DOMAIN}` })
      .then(
        ({ status }) => status,
        () => 0,
      );
    expect([0, 503]).toContain(refused);
    await eventually('the daemon to stop', () => daemon.log().includes('another daemon has taken over'));
    expect((await daemon.kill('SIGTERM')).code).toBe(4);
    expect(setup.sink.count).toBe(0);
    await remove(setup);
  });
});
