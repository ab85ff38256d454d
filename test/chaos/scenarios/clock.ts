import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { faketimeLibrary } from '../machine.ts';
import type { Scenario } from '../scenario.ts';
import { pause, type Stage } from '../stage.ts';
import { startWorld } from '../world.ts';

/**
 * The machine's clock jumps while mail is deferred. libfaketime shifts the wall clock of the daemon by what a file
 * says; the monotonic clock goes on, as it does in reality.
 */
async function jump(stage: Stage, offset: string) {
  const file = join(stage.dir, 'clock-offset');
  writeFileSync(file, '+0\n');
  const world = await startWorld(stage, {
    env: {
      LD_PRELOAD: faketimeLibrary() ?? '',
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    },
  });
  const deferring = await world.destination(['later.example'], {
    script: { rcpt: '451 4.3.0 try again later' },
  });
  const traffic = world.traffic({ perSecond: 40 });
  const deferred = world.traffic({ perSecond: 20, domains: ['later.example'] });
  await world.baseline(traffic, 3);
  writeFileSync(file, `${offset}\n`);
  await pause(3000, stage.signal);
  deferring.program({ script: {} });
  world.heal();
  return world.result([traffic, deferred]);
}

export const CLOCK: Scenario[] = [
  {
    name: 'clock-back',
    summary: 'the clock is set back by 6 hours while messages are deferred',
    short: true,
    needs: ['faketime'],
    run: (stage) => jump(stage, '-6h'),
  },
  {
    name: 'clock-forward',
    summary: 'the clock is set forward by 6 hours while messages are deferred',
    needs: ['faketime'],
    run: (stage) => jump(stage, '+6h'),
  },
];
