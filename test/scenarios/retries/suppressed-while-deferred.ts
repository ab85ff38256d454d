import { MINUTE } from '../../../src/core/clock.ts';
import { inTurn } from '../support/answers.ts';
import { deferred } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'fails a deferred message whose recipient is suppressed before the next attempt',
  settings: ({ domain }) => ({ 'delivery.shaping': [{ match: domain, connections: 1 }] }),
  hosts: { mx: { script: { rcpt: inTurn('451 4.3.0 later') } } },
  messages: {
    ada: {
      attempts: [deferred('451 4.3.0', 'server-error', 5 * MINUTE, 'mx rcpt 451')],
      events: ['email_sent', 'email_delayed', 'email_suppressed'],
      status: 'failed',
    },
  },
  connections: { mx: ['EHLO MAIL RCPT DATA QUIT'] },
  suppressed: ['ada'],
  play: async (run) => {
    await run.sendAll();
    await run.settle();
    await run.env.api.post('/web-setup/suppressions', {
      email: `ada@${run.domain}`,
      reason: 'manual',
      stream: 'all',
    });
  },
} satisfies Scenario;
