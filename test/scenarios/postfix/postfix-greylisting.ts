import { MINUTE } from '../../../src/core/clock.ts';
import { deferred } from '../support/attempts.ts';
import { postfix } from '../support/real-servers.ts';
import type { Scenario } from '../support/scenario.ts';

const GREYLISTED = '450 4.2.0 Recipient address rejected: Greylisted, see http://postgrey.example';

export default {
  title: 'tries mail that a Postfix greylists again after two minutes',
  settings: () => ({ 'delivery.retry.expireTransactional': '10m' }),
  hosts: {
    mx: postfix({
      domain: 'postfix-greylisting.example',
      users: ['ada'],
      parameters: {
        smtpd_recipient_restrictions: `check_recipient_access inline:{ {ada@postfix-greylisting.example = ${GREYLISTED}} }, permit`,
      },
    }),
  },
  messages: {
    ada: {
      attempts: [
        deferred('450 4.2.0', 'greylisted', 2 * MINUTE, 'mx rcpt 450 TLS'),
        deferred('450 4.2.0', 'greylisted', undefined, 'mx rcpt 450 TLS'),
      ],
      status: 'failed',
      lastEvent: { reason: 'expired' },
    },
  },
} satisfies Scenario;
