import { existsSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { RESERVE_FILE } from '../../../src/store/reserve.ts';
import type { ApiClient } from '../../support/api-client.ts';
import { eventually } from '../../support/eventually.ts';
import { pause, type ScenarioContext } from '../context.ts';
import { type Environment, startEnvironment } from '../environment.ts';
import { mountFragile, mountTmpfs } from '../machine.ts';
import type { Scenario } from '../scenario.ts';

/** The disk accepts no more data, in four ways. Mail that was accepted before must be delivered. */
const SMALL_DISK = 'size=48m';
const FULL_MS = 8000;
const REFUSAL_TIMEOUT_MS = 20_000;

async function smallDisk(context: ScenarioContext, options: string, dotDelayMs: number) {
  const volume = mountTmpfs(context, options);
  const env = await startEnvironment(context, {
    dataDir: join(volume.dir, 'data'),
    sink: { script: { dot: { reply: '250 2.0.0 taken', delayMs: dotDelayMs } } },
  });
  return { volume, env };
}

/** The disk is full for some seconds; the daemon is not restarted. */
async function fullForAWhile(context: ScenarioContext, dotDelayMs: number) {
  const { volume, env } = await smallDisk(context, SMALL_DISK, 5);
  const traffic = env.traffic();
  await env.baseline(traffic);
  // Messages that are claimed meanwhile wait for a slot until they are put back.
  env.sink.program({ script: { dot: { reply: '250 2.0.0 taken', delayMs: dotDelayMs } } });
  await pause(500, context.signal);
  const release = volume.fill();
  await pause(context.lasting(FULL_MS), context.signal);
  await expectRefusal(env, 503);
  env.sink.program({ script: {} });
  release();
  env.heal();
  return env.result(traffic);
}

/** Sends that cannot be stored must be refused as temporary: sends until one is refused. 0: no response. */
async function expectRefusal(env: Environment, status: number): Promise<void> {
  const traffic = env.traffic({ perSecond: 10 });
  const refused = await eventually('a send to be refused', () => traffic.refusals.size > 0, {
    ms: REFUSAL_TIMEOUT_MS,
  }).catch((error: Error) => {
    env.fault(error.message);
    return false;
  });
  traffic.stop();
  if (!refused) return;
  const statuses = [...traffic.refusals.keys()];
  env.note(`without a disk a send is answered with ${statuses.join(', ')}`);
  if (statuses.some((seen) => seen !== status)) env.fault(`expected ${status}, not ${statuses.join(', ')}`);
}

/** Bytes that each account may store, and those that are free when new data is refused. */
const TENANT_BYTES = 8_000_000;
const MIN_FREE_BYTES = 30_000_000;
/** Data of others on the same disk, which the operator removes. */
const OTHER_BYTES = 60_000_000;
const TENANT_CONNECTIONS = 6;

/** An account stores contacts until it is refused; resolves with the codes of the refusals. */
async function fillAsTenant(context: ScenarioContext, api: ApiClient): Promise<ReadonlySet<string>> {
  const codes = new Set<string>();
  const note = 'x'.repeat(46_000);
  const fillOne = async (connection: number) => {
    for (let n = 0; codes.size === 0; n++) {
      context.signal.throwIfAborted();
      const email = `c${connection}.${n}.${Date.now()}@example.net`;
      const response = await api.post('/web-setup/contacts', { email, customFields: { note } });
      if (response.status >= 300) codes.add(response.error.code);
    }
  };
  await Promise.all(Array.from({ length: TENANT_CONNECTIONS }, (_, connection) => fillOne(connection)));
  return codes;
}

function expectCodes(env: Environment, what: string, codes: ReadonlySet<string>, expected: string): void {
  const seen = [...codes].join(', ');
  env.note(`${what}: ${seen}`);
  if (seen !== expected) env.fault(`${what}: expected ${expected}, not ${seen}`);
}

/** An account fills the disk: to its limit, then, without one, to the limit of free space, then to the last byte. */
async function tenant(context: ScenarioContext) {
  const volume = mountTmpfs(context, 'size=180m');
  const otherData = join(volume.dir, 'other');
  writeFileSync(otherData, Buffer.alloc(OTHER_BYTES));
  const env = await startEnvironment(context, {
    dataDir: join(volume.dir, 'data'),
    config: { limits: { freeDiskBytes: MIN_FREE_BYTES, account: { storedBytes: TENANT_BYTES } } },
  });
  const { daemon } = env;
  const free = () => {
    const { bavail, bsize } = statfsSync(volume.dir);
    return bavail * bsize;
  };
  const hostile = await daemon.account('Hostile');
  const traffic = env.traffic();
  await env.baseline(traffic);
  const reserve = join(volume.dir, 'data', RESERVE_FILE);
  await eventually('the reserve', () => existsSync(reserve), { ms: REFUSAL_TIMEOUT_MS });

  expectCodes(env, 'with a limit of stored bytes', await fillAsTenant(context, hostile), 'LIMIT_REACHED');
  if (traffic.refusals.size > 0) env.fault('sends of another account were refused meanwhile');

  await daemon.cli('account', 'limits', hostile.accountId, '--stored-bytes', 'unlimited');
  expectCodes(env, 'with little free space', await fillAsTenant(context, hostile), 'UNAVAILABLE');
  if (free() < MIN_FREE_BYTES / 4) env.fault(`only ${free()} bytes were left when new data was refused`);
  const optOut = await hostile.post('/web-setup/suppressions', {
    email: 'a@example.net',
    reason: 'unsubscribe',
  });
  if (optOut.status !== 201) env.fault(`an opt-out was answered with ${optOut.status}`);

  const release = volume.fill();
  await pause(2000, context.signal);
  await daemon.cli('account', 'disable', hostile.accountId);
  const answer = await hostile.post('/web-setup/contacts', { email: 'c@example.net' });
  if (answer.status !== 403) env.fault(`a disabled account was answered with ${answer.status}`);
  release();
  rmSync(otherData);
  env.heal();
  return env.result(traffic, { withinSeconds: 60 });
}

export const DISK: Scenario[] = [
  {
    name: 'disk-tenant',
    summary:
      'an account stores data until it is refused: at its limit, at the limit of free space, and at the last byte, where the operator disables it',
    needs: ['mounts'],
    limitSeconds: 240,
    run: tenant,
  },
  {
    name: 'disk-full-fast-sink',
    summary: 'the disk is full for 8 s while the destination accepts mail immediately',
    needs: ['mounts'],
    run: (context) => fullForAWhile(context, 5),
  },
  {
    name: 'disk-full-slow-sink',
    summary:
      'the disk is full for 8 s while the destination replies after 5 s, so that claims and outcomes end late',
    short: true,
    needs: ['mounts'],
    run: (context) => fullForAWhile(context, 5000),
  },
  {
    name: 'disk-full-shutdown',
    summary:
      'SIGTERM on a full disk that has free space after 6 s: all outcomes are recorded before the exit',
    needs: ['mounts'],
    run: async (context) => {
      const { volume, env } = await smallDisk(context, SMALL_DISK, 1000);
      const traffic = env.traffic();
      await env.baseline(traffic);
      const release = volume.fill();
      // Long enough for the commits that still fit into the write-ahead log.
      await pause(2500, context.signal);
      const ended = env.daemon.terminate();
      await pause(6000, context.signal);
      release();
      env.heal();
      const exit = await ended;
      env.note(`ended with ${JSON.stringify(exit)}`);
      await env.daemon.start();
      return env.result(traffic);
    },
  },
  {
    name: 'disk-no-inodes',
    summary:
      'no file can be created: while running, after kill -9, and at a start that must report the cause',
    needs: ['mounts'],
    run: async (context) => {
      const { volume, env } = await smallDisk(context, `${SMALL_DISK},nr_inodes=64`, 5);
      const traffic = env.traffic();
      await env.baseline(traffic);
      let release = volume.fillInodes();
      await pause(2000, context.signal);
      await env.kill();
      await env.daemon.start();
      await pause(2000, context.signal);
      release();
      // A clean exit removes the write-ahead log: the next start has to create it.
      await env.daemon.terminate();
      release = volume.fillInodes();
      await expectFailedStart(env, /no space|ENOSPC|full|inode/i);
      release();
      env.heal();
      await env.daemon.start();
      return env.result(traffic);
    },
  },
  {
    name: 'disk-read-only',
    summary: 'the file system becomes read-only while the daemon runs, as after an I/O error',
    needs: ['loop'],
    run: async (context) => {
      const volume = mountFragile(context);
      const env = await startEnvironment(context, { dataDir: join(volume.dir, 'data') });
      // An exit, to recover from the disk on restart, is allowed when the disk fails.
      env.allowCrashes(/read-only|EROFS|EIO|SQLITE_(READONLY|IOERR|CANTOPEN)|disk/i);
      const traffic = env.traffic();
      await env.baseline(traffic);
      volume.makeReadOnly();
      await pause(3000, context.signal);
      await expectRefusal(env, env.daemon.running ? 503 : 0);
      await env.kill();
      await expectFailedStart(env, /read-only|EROFS|READONLY/i);
      volume.repair();
      env.heal();
      await env.daemon.start();
      return env.result(traffic);
    },
  },
];

async function expectFailedStart(env: Environment, cause: RegExp): Promise<void> {
  const { exit, output } = await env.daemon.tryStart(10_000);
  const last = output.trim().split('\n').at(-1) ?? '';
  env.note(`start: ${last.slice(0, 160)}`);
  if (exit === null) env.fault('the daemon started although it cannot work');
  else if (exit.code === 0) env.fault('the daemon exited with 0 although it could not start');
  else if (!cause.test(output) || !output.includes(env.daemon.dataDir))
    env.fault(`a failed start must name the file and the cause, not: ${last.slice(0, 200)}`);
}
