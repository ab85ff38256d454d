import { selfSigned } from '../../support/certificates.ts';
import { OPPORTUNISTIC, policyOf } from '../support/published-policies.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'delivers to a host that is not in the policy in mode testing',
  mtaSts: policyOf('sts-testing-other-host', 'testing', ['mail.elsewhere.example']),
  hosts: { mx: { tls: selfSigned(['mx.example']) } },
  messages: { ada: OPPORTUNISTIC },
} satisfies Scenario;
