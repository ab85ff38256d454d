import { DAY } from '../../../src/core/clock.ts';
import { selfSigned } from '../../support/certificates.ts';
import { AUTHORITY } from '../support/environment.ts';
import { BY_POLICY, OPPORTUNISTIC, policyOf } from '../support/published-policies.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'no longer enforces a withdrawn policy after its max_age',
  settings: ({ domain }) => ({ 'delivery.shaping': [{ match: domain, idleSeconds: 0 }] }),
  mtaSts: policyOf('policy-expired'),
  hosts: { mx: { tls: AUTHORITY.issue(['mx.policy-expired.example']) } },
  messages: { ada: BY_POLICY, bob: OPPORTUNISTIC },
  play: async (run) => {
    await run.send('ada');
    await run.finish();
    run.publish({ '_mta-sts': { TXT: 'NXDOMAIN' }, 'mta-sts': { A: 'NXDOMAIN' } });
    run.sink('mx').program({ tls: selfSigned(['mx.policy-expired.example']) });
    await run.env.advance(1.1 * DAY);
    await run.send('bob');
  },
} satisfies Scenario;
