import { AUTHORITY } from '../support/environment.ts';
import { BY_POLICY, policyOf } from '../support/published-policies.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'verifies the certificate of a host in an enforced policy',
  mtaSts: policyOf('sts-enforce'),
  hosts: { mx: { tls: AUTHORITY.issue(['mx.sts-enforce.example']) } },
  messages: { ada: BY_POLICY },
} satisfies Scenario;
