import type { Scenario } from '../scenario.ts';
import { pause } from '../stage.ts';
import { startWorld } from '../world.ts';

/** The power goes off in the middle of sends, again and again. */
export const KILL: Scenario[] = [
  {
    name: 'kill-9-storm',
    summary: 'kill -9 and restart eight times at irregular intervals while mail flows',
    run: async (stage) => {
      const world = await startWorld(stage, {
        sink: { script: { dot: { reply: '250 2.0.0 taken', delayMs: 5 } } },
      });
      const traffic = world.traffic({ perSecond: 200 });
      await world.baseline(traffic);
      for (let kill = 0; kill < stage.lasting(8); kill++) {
        await pause(300 + 170 * (kill % 4), stage.signal);
        await world.kill();
        world.heal();
        await world.daemon.start();
      }
      return world.result(traffic);
    },
  },
];
