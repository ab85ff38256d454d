import { expect } from 'vitest';
import { MINUTE } from '../../../src/core/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { inTurn } from './answers.ts';
import { deferred, delivered } from './attempts.ts';
import type { Scenario } from './scenario.ts';
import { expectReason } from './source-addresses.ts';

/**
 * Two domains whose different hosts match one shaping profile, of which the host of the first asks to send less.
 * `shared`: that of the profile.
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
      // No time passes.
      await eventually('the other customer to have its mail', async () => {
        const { status } = await run.message('bob');
        return status === 'delivered';
      });
    },
  };
}
