import { HOUR } from '../../../src/core/clock.ts';
import { inTurn } from '../support/answers.ts';
import { bounced, deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'applies the rules for replies in the configuration before the built-in ones',
  settings: () => ({
    'delivery.replies': [
      { text: 'user unknown * sunday', meaning: 'mailbox inactive', action: 'defer', retryAfter: '3h' },
      { text: 'under strange maintenance', meaning: 'spam', action: 'bounce' },
    ],
  }),
  hosts: {
    mx: {
      script: {
        rcpt: inTurn(
          '550 5.1.1 User unknown, as every Sunday',
          undefined,
          '451 4.3.0 Under strange maintenance',
        ),
      },
    },
  },
  messages: {
    ada: {
      attempts: [
        deferred('550 5.1.1', 'inactive-mailbox', { named: 3 * HOUR }, 'mx rcpt 550'),
        delivered('mx dot 250'),
      ],
      status: 'delivered',
    },
    bob: {
      attempts: [bounced('451 4.3.0', 'spam-block', 'mx rcpt 451')],
      status: 'bounced',
      events: ['email_sent', 'email_rejected'],
    },
  },
  play: async (run) => {
    await run.send('ada');
    await run.finish();
    await run.send('bob');
  },
} satisfies Scenario;
