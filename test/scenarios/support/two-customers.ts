import { expect } from 'vitest';
import { MINUTE } from '../../../src/core/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { inTurn } from './answers.ts';
import { deferred, delivered } from './attempts.ts';
import type { Scenario } from './scenario.ts';
import { expectReason } from './source-addresses.ts';

/**
 * Two domains with different hosts that match one shaping profile. The host of the first one limits the rate. `shared`: the
 * setting of the profile; if true, both hosts are one site.
 */
export function twoCustomers(title: string, shared: boolean): Scenario {
  return {
    title,
    settings: ({ domain }) => ({ 'delivery.shaping': [{ name: 'filter', match: `*.${domain}`, shared }] }),
    hosts: { one: { script: { mail: inTurn('451 4.7.1 Too many messages, slow down') } }, two: {} },
    zone: () => ({ first: { MX: ['10 one'] }, second: { MX: ['10 two'] } }),
    messages: {
      ada: {
        subdomain: 'first',
        attempts: [
          deferred('451 4.7.1', 'rate-limited', 5 * MINUTE, 'one mail 451'),
          delivered('one dot 250'),
        ],
        status: 'delivered',
      },
      bob: { subdomain: 'second', attempts: [delivered('two dot 250')], status: 'delivered' },
    },
    play: async (run) => {
      await run.send('ada');
      await run.settle();
      await run.send('bob');
      if (shared) {
        await run.settle();
        await expectReason(run, 'bob', 'site_limited', 'asked to send less');
        expect(run.sink('two').sessions).toEqual([]);
        return;
      }
      // Without advancing the time.
      await eventually('the mail of the other customer to be delivered', async () => {
        const { status } = await run.message('bob');
        return status === 'delivered';
      });
    },
  };
}
