import { MINUTE } from '../../../src/core/clock.ts';
import { inTurn } from '../support/answers.ts';
import { bounced, deferred } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'bounces a message, and suppresses the recipient, when the host rejects it in a later attempt',
  hosts: { mx: { script: { rcpt: inTurn('451 4.3.0 Directory not available', '550 5.1.1 No such user') } } },
  messages: {
    ada: {
      attempts: [
        deferred('451 4.3.0', 'server-error', 5 * MINUTE, 'mx rcpt 451'),
        bounced('550 5.1.1', 'invalid-recipient', 'mx rcpt 550'),
      ],
      status: 'bounced',
    },
  },
  suppressed: ['ada'],
} satisfies Scenario;
