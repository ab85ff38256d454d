import { join } from 'node:path';
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

export const DISK: Scenario[] = [
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
