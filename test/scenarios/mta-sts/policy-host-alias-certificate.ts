import { selfSigned } from '../../support/certificates.ts';
import { AUTHORITY } from '../support/environment.ts';
import { OPPORTUNISTIC, policyOf } from '../support/published-policies.ts';
import type { Scenario } from '../support/scenario.ts';

const PROVIDER = 'tenant.provider.policy-host-alias-certificate.example';

export default {
  // RFC 8461 §3.3
  title: 'ignores a policy from a host whose certificate is only for the target of its alias',
  mtaSts: { ...policyOf('policy-host-alias-certificate'), certificate: AUTHORITY.issue([PROVIDER]) },
  hosts: { mx: { tls: selfSigned(['mx.example']) } },
  messages: { ada: OPPORTUNISTIC },
  play: async (run) => {
    run.publish({
      'mta-sts': { A: 'NODATA', CNAME: ['tenant.provider'] },
      'tenant.provider': { A: [run.env.policyHost().address] },
    });
    await run.sendAll();
  },
} satisfies Scenario;
