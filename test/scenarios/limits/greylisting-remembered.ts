import { expect } from 'vitest';
import { MINUTE } from '../../../src/core/clock.ts';
import { inTurn } from '../support/answers.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

const GREYLISTED = '450 4.2.0 Recipient address rejected: Greylisted';

export default {
  title: 'retries the next greylisted message after the wait that the site accepted before',
  settings: () => ({ 'delivery.retry.greylisted': '7m' }),
  hosts: { mx: { script: { rcpt: inTurn(GREYLISTED, undefined, GREYLISTED) } } },
  messages: {
    ada: {
      attempts: [deferred('450 4.2.0', 'greylisted', 7 * MINUTE, 'mx rcpt 450'), delivered('mx dot 250')],
      status: 'delivered',
    },
    bob: {
      attempts: [deferred('450 4.2.0', 'greylisted', undefined, 'mx rcpt 450'), delivered('mx dot 250')],
      status: 'delivered',
    },
  },
  play: async (run) => {
    await run.send('ada');
    await run.finish();
    await run.configure({ 'delivery.retry.greylisted': '30m' });
    await run.send('bob');
    await run.settle();
    const { timeline } = await run.message('bob');
    const delay = timeline.find(({ event }) => event === 'email_delayed');
    const wait = Date.parse(String(delay?.['nextAttemptAt'])) - Date.parse(delay?.timestamp ?? '');
    // The wait of the first message, spread by 10 % in both attempts, and not that of the changed setting.
    expect(wait).toBeGreaterThan(6 * MINUTE);
    expect(wait).toBeLessThan(9 * MINUTE);
  },
} satisfies Scenario;
