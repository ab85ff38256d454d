import { selfSigned } from '../../support/certificates.ts';
import { OPPORTUNISTIC, policyOf } from '../support/published-policies.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'delivers to a host with an invalid certificate under a policy in mode testing',
  mtaSts: policyOf('sts-testing', 'testing'),
  hosts: { mx: { tls: selfSigned(['mx.sts-testing.example']) } },
  messages: { ada: OPPORTUNISTIC },
} satisfies Scenario;
