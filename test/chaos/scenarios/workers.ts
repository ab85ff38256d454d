import { rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '../../support/eventually.ts';
import type { SinkOptions } from '../../support/smtp-sink.ts';
import { pause } from '../context.ts';
import { DOMAINS, startEnvironment } from '../environment.ts';
import type { Scenario } from '../scenario.ts';

/** Worker threads die at random times. Their jobs and slots must not be lost. */
const PRELOAD = new URL('../mortal-workers.cjs', import.meta.url).pathname;
const DYING_MS = 15_000;
/** Connections of a site in the default profile. */
const SLOTS = 10;
const BURST = 60;

export const WORKERS: Scenario[] = [
  {
    name: 'dead-workers',
    summary: `worker threads die at random times for ${DYING_MS / 1000} s, then once more directly before SIGTERM`,
    short: true,
    limitSeconds: 160,
    run: async (context) => {
      const mortal = join(context.dir, 'workers-are-mortal');
      let busy = 0;
      let most = 0;
      /** A slow destination that counts the messages in progress. */
      const answering = (delayMs: number): SinkOptions => ({
        script: {
          dot: () => {
            most = Math.max(most, ++busy);
            setTimeout(() => busy--, delayMs);
            return { reply: '250 2.0.0 taken', delayMs };
          },
        },
      });
      const env = await startEnvironment(context, {
        nodeArgs: ['--require', PRELOAD],
        env: { CHAOS_MORTAL_WORKERS: mortal },
        sink: answering(50),
      });
      const other = await env.destination(['slots.example'], answering(50));
      const traffic = env.traffic({ domains: [...DOMAINS, 'slots.example'] });
      await env.baseline(traffic);

      let deaths = 0;
      const endDying = () => {
        deaths += statSync(mortal).size;
        rmSync(mortal);
      };
      writeFileSync(mortal, '');
      await pause(context.lasting(DYING_MS), context.signal);
      endDying();
      env.heal();
      const maxInProgress = most;

      // All slots are free again: a burst to a slow destination uses all of them.
      env.sink.program({ script: {} });
      await pause(100, context.signal);
      most = 0;
      other.program(answering(1500));
      const burst = env.traffic({ perSecond: 200, count: BURST, domains: ['slots.example'] });
      await eventually('all slots to be used', () => most >= SLOTS, { ms: 10_000 }).catch(() =>
        env.fault(`only ${most} of ${SLOTS} slots are used after the deaths`),
      );
      const used = most;
      other.program({ script: {} });

      writeFileSync(mortal, '');
      await eventually('another death', () => statSync(mortal).size > 0);
      const exit = await env.daemon.terminate();
      if (exit === null) env.fault('SIGTERM after the death of a worker did not end the daemon');
      endDying();
      env.note(`${deaths} deaths, ${used} of ${SLOTS} slots used afterwards`);
      env.allowDuplicates(deaths * maxInProgress, `in progress at ${deaths} deaths of workers`);
      await env.daemon.start();
      return env.result([traffic, burst]);
    },
  },
];
