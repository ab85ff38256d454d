import { MINUTE } from '../../../src/core/clock.ts';
import { selfSigned } from '../../support/certificates.ts';
import { deferred, delivered } from '../support/attempts.ts';
import { AUTHORITY } from '../support/environment.ts';
import { BY_POLICY, policyOf } from '../support/published-policies.ts';
import type { Scenario } from '../support/scenario.ts';

const CERTIFICATE = AUTHORITY.issue(['mx.policy-kept.example']);

export default {
  title: 'enforces a stored policy while neither its TXT record nor its host can be looked up',
  settings: ({ domain }) => ({ 'delivery.shaping': [{ match: domain, idleSeconds: 0 }] }),
  mtaSts: policyOf('policy-kept'),
  hosts: { mx: { tls: CERTIFICATE } },
  messages: {
    ada: BY_POLICY,
    bob: {
      attempts: [
        deferred(
          '454 4.7.5',
          'tls-failed',
          5 * MINUTE,
          'mx starttls: TLS handshake failed: self-signed certificate (required by the MTA-STS policy of policy-kept.example)',
        ),
        delivered('mx dot 250 TLS verified'),
      ],
      status: 'delivered',
    },
  },
  play: async (run) => {
    await run.send('ada');
    await run.finish();
    run.publish({ '_mta-sts': { TXT: 'SERVFAIL' }, 'mta-sts': { A: 'SERVFAIL' } });
    run.sink('mx').program({ tls: selfSigned(['mx.policy-kept.example']) });
    await run.env.advance(10 * MINUTE);
    await run.send('bob');
    await run.settle();
    run.sink('mx').program({ tls: CERTIFICATE });
  },
} satisfies Scenario;
