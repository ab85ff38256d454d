import { expect } from 'vitest';
import { HOUR, MINUTE } from '../../../src/core/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { inTurn } from '../support/answers.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title:
    'holds the mail of a sending domain whose verification has failed, and sends it when the verification succeeds',
  hosts: { mx: { script: { rcpt: inTurn('451 4.3.0 later') } } },
  messages: {
    ada: {
      attempts: [deferred('451 4.3.0', 'server-error', 5 * MINUTE, 'mx rcpt 451'), delivered('mx dot 250')],
      status: 'delivered',
    },
  },
  play: async (run) => {
    await run.sendAll();
    await run.settle();
    run.env.setDomainStatus('transactional', 'FAILED');
    await run.env.advance(HOUR);
    await eventually(
      'the message to be held',
      async () => (await run.message('ada')).heldBecause === 'domain_failed',
    );
    expect(run.sink('mx').count).toBe(0);
    run.env.setDomainStatus('transactional', 'SUCCESS');
    await eventually('the message to be sent', async () => (await run.message('ada')).status === 'delivered');
  },
} satisfies Scenario;
