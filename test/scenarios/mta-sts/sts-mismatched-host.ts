import { MINUTE } from '../../../src/core/clock.ts';
import { policyText } from '../../support/policy-host.ts';
import { deferred, delivered } from '../support/attempts.ts';
import { AUTHORITY } from '../support/environment.ts';
import { policyOf } from '../support/published-policies.ts';
import type { Scenario } from '../support/scenario.ts';
import { announcePolicy } from '../support/zone.ts';

export default {
  title:
    'defers mail while no MX host is in the policy, and delivers it when a policy with a new id permits the host',
  // Longer than the TTL of the name server's records.
  settings: () => ({ 'delivery.retry.first': '20m' }),
  mtaSts: policyOf('sts-mismatched-host', 'enforce', ['*.elsewhere.example']),
  hosts: { mx: { tls: AUTHORITY.issue(['mx.sts-mismatched-host.example']) } },
  messages: {
    ada: {
      attempts: [
        deferred(
          '454 4.7.5',
          'tls-failed',
          20 * MINUTE,
          'mx dns: mx.sts-mismatched-host.example is not a mail host in the MTA-STS policy of sts-mismatched-host.example, which permits *.elsewhere.example',
        ),
        delivered('mx dot 250 TLS verified'),
      ],
      status: 'delivered',
    },
  },
  connections: { mx: ['EHLO STARTTLS TLS EHLO MAIL RCPT DATA . QUIT'] },
  play: async ({ env, domain, sendAll, settle }) => {
    await sendAll();
    await settle();
    const policy = policyText('enforce', [`mx.${domain}`]);
    env.policyHost().serve(domain, AUTHORITY.issue([`mta-sts.${domain}`]), policy);
    announcePolicy(env, domain, '2');
  },
} satisfies Scenario;
