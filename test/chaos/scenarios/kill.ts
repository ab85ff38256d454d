import { pause } from '../context.ts';
import { startEnvironment } from '../environment.ts';
import type { Scenario } from '../scenario.ts';

/** The daemon is killed repeatedly in the middle of sends. */
export const KILL: Scenario[] = [
  {
    name: 'kill-9-storm',
    summary: 'kill -9 and restart eight times at irregular intervals during traffic',
    run: async (context) => {
      const env = await startEnvironment(context, {
        sink: { script: { dot: { reply: '250 2.0.0 taken', delayMs: 5 } } },
      });
      const traffic = env.traffic({ perSecond: 200 });
      await env.baseline(traffic);
      for (let kill = 0; kill < context.lasting(8); kill++) {
        await pause(300 + 170 * (kill % 4), context.signal);
        await env.kill();
        env.heal();
        await env.daemon.start();
      }
      return env.result(traffic);
    },
  },
];
