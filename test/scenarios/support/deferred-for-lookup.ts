import { MINUTE } from '../../../src/core/clock.ts';
import type { DnsBehavior } from '../../support/dns-server.ts';
import { deferred, delivered } from './attempts.ts';
import type { Scenario } from './scenario.ts';

/** A destination whose lookups get `answer` in the first attempt; before the second it has an MX host. */
export function deferredForLookup(
  options: Pick<Scenario, 'title' | 'settings'> & {
    answer: Extract<DnsBehavior, string>;
    /** Resets the settings before the second attempt. */
    resetsSettings?: true;
  },
): Scenario {
  const { answer, resetsSettings, ...scenario } = options;
  return {
    ...scenario,
    hosts: { mx: {} },
    zone: () => ({ '@': { MX: answer, A: answer, AAAA: answer } }),
    messages: {
      ada: {
        attempts: [deferred('451 4.4.3', 'network-error', 5 * MINUTE), delivered('mx dot 250')],
        status: 'delivered',
      },
    },
    play: async (run) => {
      await run.sendAll();
      await run.settle();
      if (resetsSettings) await run.configure({});
      run.publish({ '@': { MX: ['10 mx'] } });
    },
  };
}
