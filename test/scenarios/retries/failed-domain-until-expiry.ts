import { MINUTE } from '../../../src/core/clock.ts';
import { inTurn } from '../support/answers.ts';
import { deferred } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'fails the held mail of a failed domain as expired, with the reason',
  hosts: { mx: { script: { rcpt: inTurn('451 4.3.0 later') } } },
  messages: {
    ada: {
      attempts: [deferred('451 4.3.0', 'server-error', 5 * MINUTE, 'mx rcpt 451')],
      events: ['email_sent', 'email_delayed', 'email_failed'],
      status: 'failed',
      lastEvent: {
        reason: 'expired',
        lastDiagnostic: 'the message was held because the verification of its domain has failed',
      },
    },
  },
  play: async (run) => {
    await run.sendAll();
    await run.settle();
    run.env.setDomainStatus('transactional', 'FAILED');
    await run.finish();
    run.env.setDomainStatus('transactional', 'SUCCESS');
  },
} satisfies Scenario;
