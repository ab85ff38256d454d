import { join } from 'node:path';
import { mountFragile, mountTmpfs } from '../machine.ts';
import type { Scenario } from '../scenario.ts';
import { pause, type Stage } from '../stage.ts';
import { startWorld, type World } from '../world.ts';

/** The disk takes nothing more, in four ways. What was answered with 200 before must go out all the same. */
const SMALL_DISK = 'size=48m';
const FULL_MS = 8000;

async function smallDisk(stage: Stage, options: string, dotDelayMs: number) {
  const volume = mountTmpfs(stage, options);
  const world = await startWorld(stage, {
    dataDir: join(volume.dir, 'data'),
    sink: { script: { dot: { reply: '250 2.0.0 taken', delayMs: dotDelayMs } } },
  });
  return { volume, world };
}

/** Full for some seconds, then not: nobody restarts anything. */
async function fullForAWhile(stage: Stage, dotDelayMs: number) {
  const { volume, world } = await smallDisk(stage, SMALL_DISK, 5);
  const traffic = world.traffic();
  await world.baseline(traffic);
  // What is claimed meanwhile waits for a slot until it has to be given back.
  world.sink.program({ script: { dot: { reply: '250 2.0.0 taken', delayMs: dotDelayMs } } });
  await pause(500, stage.signal);
  const free = volume.fill();
  await pause(stage.lasting(FULL_MS), stage.signal);
  await expectRefusal(world, '503');
  world.sink.program({ script: {} });
  free();
  world.heal();
  return world.result(traffic);
}

/** What cannot be stored must not be answered with 200, and the caller must be told to come back. */
async function expectRefusal(world: World, status: string): Promise<void> {
  const traffic = world.traffic({ count: 1 });
  await pause(1000, world.stage.signal);
  traffic.stop();
  const statuses = [...traffic.refusals.keys()];
  world.note(`a send without a disk is answered with ${statuses.join(', ') || '200'}`);
  if (!statuses.every((seen) => String(seen) === status))
    world.fault(`expected ${status}, not ${statuses.join(', ')}`);
}

export const DISK: Scenario[] = [
  {
    name: 'disk-full-fast-sink',
    summary: 'no byte is free for 8 s while the destination takes mail at once',
    needs: ['mounts'],
    run: (stage) => fullForAWhile(stage, 5),
  },
  {
    name: 'disk-full-slow-sink',
    summary:
      'no byte is free for 8 s while the destination answers after 5 s, so that claims and outcomes come back late',
    short: true,
    needs: ['mounts'],
    run: (stage) => fullForAWhile(stage, 5000),
  },
  {
    name: 'disk-full-shutdown',
    summary: 'SIGTERM on a full disk that has room again after 6 s: every outcome is recorded before the end',
    needs: ['mounts'],
    run: async (stage) => {
      const { volume, world } = await smallDisk(stage, SMALL_DISK, 1000);
      const traffic = world.traffic();
      await world.baseline(traffic);
      const free = volume.fill();
      // Long enough for the commits that still find room in the write-ahead log.
      await pause(2500, stage.signal);
      const ended = world.daemon.terminate();
      await pause(6000, stage.signal);
      free();
      world.heal();
      const exit = await ended;
      world.note(`ended with ${JSON.stringify(exit)}`);
      await world.daemon.start();
      return world.result(traffic);
    },
  },
  {
    name: 'disk-no-inodes',
    summary: 'no file can be created: running on, kill -9, and a start that must say what is wrong',
    needs: ['mounts'],
    run: async (stage) => {
      const { volume, world } = await smallDisk(stage, `${SMALL_DISK},nr_inodes=64`, 5);
      const traffic = world.traffic();
      await world.baseline(traffic);
      let free = volume.fillInodes();
      await pause(2000, stage.signal);
      await world.kill();
      await world.daemon.start();
      await pause(2000, stage.signal);
      free();
      // A clean end removes the write-ahead log: the next start has to create it.
      await world.daemon.terminate();
      free = volume.fillInodes();
      await expectFailedStart(world, /no space|ENOSPC|full|inode/i);
      free();
      world.heal();
      await world.daemon.start();
      return world.result(traffic);
    },
  },
  {
    name: 'disk-read-only',
    summary: 'the file system turns read-only under the daemon, as after an I/O error',
    needs: ['loop'],
    run: async (stage) => {
      const volume = mountFragile(stage);
      const world = await startWorld(stage, { dataDir: join(volume.dir, 'data') });
      // Ending, to start again from the disk, is an answer to a disk that fails.
      world.allowCrashes(/read-only|EROFS|EIO|SQLITE_(READONLY|IOERR|CANTOPEN)|disk/i);
      const traffic = world.traffic();
      await world.baseline(traffic);
      volume.turnReadOnly();
      await pause(3000, stage.signal);
      await expectRefusal(world, world.daemon.running ? '503' : '0');
      await world.kill();
      await expectFailedStart(world, /read-only|EROFS|READONLY/i);
      volume.repair();
      world.heal();
      await world.daemon.start();
      return world.result(traffic);
    },
  },
];

async function expectFailedStart(world: World, words: RegExp): Promise<void> {
  const { exit, output } = await world.daemon.tryStart(10_000);
  const last = output.trim().split('\n').at(-1) ?? '';
  world.note(`start: ${last.slice(0, 160)}`);
  if (exit === null) world.fault('it starts although it cannot work');
  else if (exit.code === 0) world.fault('it ended with 0 although it could not start');
  else if (!words.test(output) || !output.includes(world.daemon.dataDir))
    world.fault(`a failed start must name the file and what is wrong with it, not: ${last.slice(0, 200)}`);
}
