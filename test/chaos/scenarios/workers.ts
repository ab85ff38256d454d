import { rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '../../support/eventually.ts';
import type { SinkOptions } from '../../support/smtp-sink.ts';
import type { Scenario } from '../scenario.ts';
import { pause } from '../stage.ts';
import { DOMAINS, startWorld } from '../world.ts';

/** Worker threads die at random. Their jobs and their slots must not die with them. */
const PRELOAD = new URL('../mortal-workers.cjs', import.meta.url).pathname;
const DYING_MS = 15_000;
/** Connections of a site in the default profile. */
const SLOTS = 10;
const BURST = 60;

export const WORKERS: Scenario[] = [
  {
    name: 'dead-workers',
    summary: `worker threads die at random for ${DYING_MS / 1000} s, then once more right before SIGTERM`,
    short: true,
    limitSeconds: 160,
    run: async (stage) => {
      const mortal = join(stage.dir, 'workers-are-mortal');
      let busy = 0;
      let most = 0;
      /** A destination that takes its time, and counts what is under way. */
      const answering = (delayMs: number): SinkOptions => ({
        script: {
          dot: () => {
            most = Math.max(most, ++busy);
            setTimeout(() => busy--, delayMs);
            return { reply: '250 2.0.0 taken', delayMs };
          },
        },
      });
      const world = await startWorld(stage, {
        nodeArgs: ['--require', PRELOAD],
        env: { CHAOS_MORTAL_WORKERS: mortal },
        sink: answering(50),
      });
      const other = await world.destination(['slots.example'], answering(50));
      const traffic = world.traffic({ domains: [...DOMAINS, 'slots.example'] });
      await world.baseline(traffic);

      let deaths = 0;
      const endDying = () => {
        deaths += statSync(mortal).size;
        rmSync(mortal);
      };
      writeFileSync(mortal, '');
      await pause(stage.lasting(DYING_MS), stage.signal);
      endDying();
      world.heal();
      const mostUnderWay = most;

      // All slots are there again: a burst to a slow destination uses every one of them.
      world.sink.program({ script: {} });
      await pause(100, stage.signal);
      most = 0;
      other.program(answering(1500));
      const burst = world.traffic({ perSecond: 200, count: BURST, domains: ['slots.example'] });
      await eventually('all slots to be used', () => most >= SLOTS, { ms: 10_000 }).catch(() =>
        world.fault(`only ${most} of ${SLOTS} slots are used after the deaths`),
      );
      const used = most;
      other.program({ script: {} });

      writeFileSync(mortal, '');
      await eventually('another death', () => statSync(mortal).size > 0);
      const exit = await world.daemon.terminate();
      if (exit === null) world.fault('SIGTERM after the death of a worker did not end the daemon');
      endDying();
      world.note(`${deaths} deaths, ${used} of ${SLOTS} slots used afterwards`);
      world.allowDuplicates(deaths * mostUnderWay, `under way at ${deaths} deaths of workers`);
      await world.daemon.start();
      return world.result([traffic, burst]);
    },
  },
];
