import { AUTHORITY } from '../support/environment.ts';
import { BY_POLICY, policyOf } from '../support/published-policies.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  // RFC 8461 §3.3: the certificate and the Host field are those of the policy host, not those of the alias target.
  title: 'enforces a policy whose host is an alias of a host of its provider',
  mtaSts: policyOf('sts-policy-host-alias'),
  hosts: { mx: { tls: AUTHORITY.issue(['mx.sts-policy-host-alias.example']) } },
  messages: { ada: BY_POLICY },
  play: async (run) => {
    run.publish({
      'mta-sts': { A: 'NODATA', CNAME: ['tenant.provider'] },
      'tenant.provider': { A: [run.env.policyHost().address] },
    });
    await run.sendAll();
  },
} satisfies Scenario;
