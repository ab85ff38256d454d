// Long: locks the database and fills the disk of running daemons.
import { execFileSync, spawnSync } from 'node:child_process';
import {
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  rmSync,
  statfsSync,
  statSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { openDatabase } from '../../src/store/database/database.ts';
import { RESERVE_BYTES } from '../../src/store/reserve.ts';
import { runProgram } from '../cli/run.ts';
import { eventually } from '../support/eventually.ts';
import { faultsInEvents, readLedger } from '../support/ledger.ts';
import { SHORT_MAIL } from '../support/recipients.ts';
import { type SendingSetup, startSendingSetup, startSetupForTest } from '../support/sending-setup.ts';

/*
 * Another process locks the database of a running daemon, or its disk is full.
 */
/** Sends with the user as idempotency key; returns the status code. */
async function sendTo({ daemon }: SendingSetup, user: string): Promise<number> {
  const body = { ...SHORT_MAIL, from: 'a@kunde.example', to: `${user}@empfang.example` };
  const { status, headers } = await daemon.api.send(body, { 'Idempotency-Key': user });
  if (status === 503) expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
  return status;
}

/** Sends to all users concurrently; returns the status codes. */
async function sendAll(setup: SendingSetup, users: readonly string[]): Promise<number[]> {
  return Promise.all(users.map((user) => sendTo(setup, user)));
}

async function expectAllDelivered(setup: SendingSetup, accepted: number): Promise<void> {
  await setup.waitForEmptyQueue();
  const ledger = { accepted, delivered: accepted, bounced: 0, failed: 0, queued: 0 };
  expect(await readLedger(setup.daemon.api)).toEqual(ledger);
  expect(setup.sink.count).toBe(accepted);
  expect(await faultsInEvents(setup.daemon.api)).toEqual([]);
}

const users = (name: string, count: number) => Array.from({ length: count }, (_, n) => `${name}${n}`);

describe('a lock held by another process', () => {
  let setup: SendingSetup;
  let accepted = 0;

  beforeAll(async () => {
    setup = await startSendingSetup();
  });
  afterAll(() => setup?.stop());

  it('delays sends, but not requests that read only', async () => {
    const other = openDatabase(setup.daemon.dataDir);
    onTestFinished(() => void other.close());
    other.exec('BEGIN IMMEDIATE');
    const all = users('during', 20);
    accepted += all.length;
    // Twice with the same key: the 409 for one of them proves that the other is in progress, waiting for the lock.
    const sends = all.map((user) => [sendTo(setup, user), sendTo(setup, user)] as const);
    expect(new Set(await Promise.all(sends.map((pair) => Promise.race(pair))))).toEqual(new Set([409]));

    for (let n = 0; n < 10; n++) expect((await fetch(`${setup.daemon.baseUrl}/healthz`)).status).toBe(200);
    // The daemon waits 5 s for the lock before it refuses.
    other.exec('ROLLBACK');
    const statuses = await Promise.all(sends.map((pair) => Promise.all(pair)));
    expect(new Set(statuses.map((pair) => pair.toSorted((a, b) => a - b).join()))).toEqual(
      new Set(['200,409']),
    );
    await expectAllDelivered(setup, accepted);
  });

  it('causes 503 responses and a failing /readyz until it is released', async () => {
    const { daemon } = setup;
    const readiness = async () => {
      const response = await fetch(`${daemon.baseUrl}/readyz`);
      return { status: response.status, text: await response.text() };
    };
    const other = openDatabase(daemon.dataDir);
    onTestFinished(() => void other.close());
    other.exec('BEGIN IMMEDIATE');
    const all = users('patient', 30);
    accepted += all.length;
    expect(new Set(await sendAll(setup, all))).toEqual(new Set([503]));
    await eventually('/readyz to report the database', async () =>
      (await readiness()).text.includes('another process holds the lock of the database'),
    );
    other.exec('ROLLBACK');
    expect(new Set(await sendAll(setup, all))).toEqual(new Set([200]));
    await eventually('/readyz to recover', async () => (await readiness()).status === 200);
    // One log line for the 30 requests with the same error.
    expect(daemon.log().match(/"msg":"request failed"/g)).toHaveLength(1);
    await expectAllDelivered(setup, accepted);
  });
});

/** Mounts a small file system; null when the process has no permission, as in some containers. */
function mountDisk(size: string): string | null {
  const disk = mkdtempSync(join(tmpdir(), 'postrider-disk-'));
  const { status } = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', disk]);
  if (status === 0) return disk;
  rmSync(disk, { recursive: true, force: true });
  return null;
}

const disk = mountDisk('24m');
const largeDisk = mountDisk('96m');
afterAll(() => {
  for (const mounted of [disk, largeDisk]) {
    if (mounted === null) continue;
    execFileSync('umount', ['--lazy', mounted]);
    rmSync(mounted, { recursive: true, force: true });
  }
});

describe.skipIf(disk === null)(
  `a full disk${disk === null ? ' [skipped: this process may not mount a file system]' : ''}`,
  () => {
    it('causes 503 responses and a failing /readyz, and loses no accepted message', async () => {
      if (disk === null) throw new Error('no disk');
      const setup = await startSetupForTest({ 'data.dir': join(disk, 'data'), 'limits.freeDiskBytes': 0 });
      const { daemon } = setup;
      const before = users('before', 20);
      expect(new Set(await sendAll(setup, before))).toEqual(new Set([200]));

      fill(join(disk, 'filler'));
      let accepted = before.length;
      await eventually('a send to be rejected', async () => {
        const all = users(`during${Date.now()}x`, 20);
        const statuses = await sendAll(setup, all);
        const succeeded = statuses.filter((status) => status === 200).length;
        const rejected = statuses.filter((status) => status === 503).length;
        expect(succeeded + rejected).toBe(all.length);
        accepted += succeeded;
        return rejected > 0;
      });
      await eventually('/readyz to report the disk', async () => {
        const response = await fetch(`${daemon.baseUrl}/readyz`);
        return response.status === 503 && (await response.text()).includes('the disk is full');
      });

      await daemon.kill('SIGKILL');
      const start = await daemon.restart().then(
        () => 'it started',
        (error: Error) => error.message,
      );
      expect(start).toMatch(/postrider: \S+ cannot be used: SQLITE_\w+: .*Free space/);
      expect(start).not.toMatch(/\n\s+at /);

      rmSync(join(disk, 'filler'));
      await daemon.restart();
      await eventually('all to be delivered', async () => {
        const ledger = await readLedger(daemon.api);
        return ledger.accepted === accepted && ledger.delivered === ledger.accepted;
      });
    });

    it('leaves space for the commands of the operator', async () => {
      if (largeDisk === null) throw new Error('no disk');
      const dataDir = join(largeDisk, 'reserved');
      const { daemon } = await startSetupForTest({ 'data.dir': dataDir, 'limits.freeDiskBytes': 4_000_000 });
      const reserve = join(dataDir, 'reserve');
      await eventually('the reserve', () => existsSync(reserve) && statSync(reserve).size === RESERVE_BYTES);
      const filler = join(largeDisk, 'filler');
      const stored = await eventually('the database to be full', async () => {
        fill(filler);
        const body = { email: `a${Date.now()}@example.net`, customFields: { note: 'x'.repeat(40_000) } };
        const { status } = await daemon.api.post('/web-setup/contacts', body);
        return status === 503 && statfsSync(largeDisk).bavail === 0;
      });
      expect(stored).toBe(true);
      const run = (...args: string[]) => runProgram(args, { POSTRIDER_DATA__DIR: dataDir });
      const disabled = await run('account', 'disable', daemon.api.accountId);
      expect(disabled.err).toContain('The disk is full: the reserve of 16.8 MB');
      expect(disabled.status, disabled.err).toBe(0);
      expect(existsSync(reserve)).toBe(false);
      expect((await daemon.api.get('/web-setup/account')).error.code).toBe('ACCOUNT_DISABLED');
      rmSync(filler);
      await eventually(
        'the reserve again',
        () => existsSync(reserve) && statSync(reserve).size === RESERVE_BYTES,
      );
      expect((await run('account', 'enable', daemon.api.accountId)).err).toBe('');
    });
  },
);

/** Writes until the disk is full. */
function fill(file: string): void {
  const fd = openSync(file, 'w');
  try {
    for (let size = 64 * 1024; size >= 512; size /= 2) writeUntilFull(fd, Buffer.alloc(size, 1));
  } finally {
    closeSync(fd);
  }
}

function writeUntilFull(fd: number, chunk: Buffer): void {
  try {
    for (;;) writeSync(fd, chunk);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOSPC')) throw error;
  }
}
