import { deferred } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

const ATTEMPTED = {
  attempts: [deferred('451 4.4.1', 'network-error', undefined, 'mx connect: connection refused')],
  status: 'failed',
  lastEvent: { reason: 'expired', attempts: 1 },
} as const;

export default {
  /*
   * Two failures suspend the site for a minute, each failed probe for twice as long as before. The last message is never
   * attempted: it expires after 20 minutes, during the suspension of 16 minutes that starts after 15 minutes.
   */
  title: 'fails mail that waits for a suspended site as expired',
  settings: ({ domain }) => ({
    'delivery.shaping': [{ match: domain, connections: 1 }],
    'delivery.retry.first': '1h',
    'delivery.retry.expireTransactional': '20m',
  }),
  hosts: { mx: 'refused' },
  messages: {
    ...Object.fromEntries(Array.from({ length: 6 }, (_, n) => [`user${n}`, ATTEMPTED])),
    last: {
      attempts: [],
      status: 'failed',
      lastEvent: {
        reason: 'expired',
        attempts: 0,
        lastDiagnostic: 'the mail hosts of down-until-expiry.example cannot be reached',
      },
    },
  },
} satisfies Scenario;
