import { expect } from 'vitest';
import { HOUR, MINUTE } from '../../../src/core/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { inTurn } from '../support/answers.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'holds the mail of a disabled account, and sends each message once when it is enabled',
  hosts: { mx: { script: { rcpt: inTurn('451 4.3.0 later') } } },
  messages: {
    ada: {
      attempts: [deferred('451 4.3.0', 'server-error', 5 * MINUTE, 'mx rcpt 451'), delivered('mx dot 250')],
      status: 'delivered',
    },
  },
  play: async (run) => {
    const id = await run.send('ada');
    await run.settle();
    run.env.setAccountStatus('disabled');
    await run.env.advance(HOUR);
    const { tables } = run.env.daemon;
    const seq = tables.messages.byId(id)?.seq ?? 0;
    await eventually('the message to be held', () => tables.queue.get(seq)?.held === 1);
    expect(run.sink('mx').count).toBe(0);
    run.env.setAccountStatus('active');
    await eventually('the message to be sent', async () => (await run.message('ada')).status === 'delivered');
  },
} satisfies Scenario;
