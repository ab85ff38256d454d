import { MINUTE } from '../../../src/core/clock.ts';
import { deferred } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

const BLOCKED = '554 5.7.1 Service unavailable; Client host [192.0.2.25] blocked using zen.spamhaus.org';
const SESSIONS = ['mx greeting 554', 'mx2 greeting 554'];

export default {
  title: 'defers mail until it expires while every host rejects our address as blocklisted',
  settings: () => ({ 'delivery.retry.expireTransactional': '9m' }),
  hosts: {
    mx: { script: { greeting: BLOCKED } },
    mx2: { script: { greeting: BLOCKED } },
  },
  messages: {
    ada: {
      attempts: [
        deferred('554 5.7.1', 'reputation-block', 5 * MINUTE, ...SESSIONS),
        deferred('554 5.7.1', 'reputation-block', undefined, ...SESSIONS),
      ],
      status: 'failed',
      events: ['email_sent', 'email_delayed', 'email_failed'],
      lastEvent: { reason: 'expired', classification: 'reputation-block' },
    },
  },
  connections: { mx: ['QUIT', 'QUIT'], mx2: ['QUIT', 'QUIT'] },
} satisfies Scenario;
