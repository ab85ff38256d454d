import { MINUTE } from '../../../src/core/clock.ts';
import { inTurn } from '../support/answers.ts';
import { bounced, deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'records the result of each recipient separately',
  settings: ({ domain }) => ({ 'delivery.shaping': [{ match: domain, connections: 1 }] }),
  hosts: {
    mx: {
      recipients: {
        'bob@': '550 5.1.1 No such user',
        'eve@': inTurn('451 4.3.0 later'),
        'kim@': '552 5.2.2 Mailbox full',
        'lea@': '550 5.7.1 Sender not permitted to send to this recipient',
      },
    },
  },
  messages: {
    ada: { attempts: [delivered('mx dot 250')], status: 'delivered' },
    bob: {
      attempts: [bounced('550 5.1.1', 'invalid-recipient', 'mx rcpt 550')],
      status: 'bounced',
      lastEvent: { bounceType: 'hard', suppressed: true },
    },
    eve: {
      attempts: [deferred('451 4.3.0', 'server-error', 5 * MINUTE), delivered('mx dot 250')],
      status: 'delivered',
    },
    kim: {
      attempts: [bounced('552 5.2.2', 'mailbox-full', 'mx rcpt 552')],
      status: 'bounced',
      lastEvent: { bounceType: 'soft', suppressed: false },
    },
    lea: {
      attempts: [bounced('550 5.7.1', 'policy-block', 'mx rcpt 550')],
      status: 'bounced',
      lastEvent: { suppressed: false },
    },
    zoe: { attempts: [delivered('mx dot 250')], status: 'delivered' },
  },
  suppressed: ['bob'],
} satisfies Scenario;
