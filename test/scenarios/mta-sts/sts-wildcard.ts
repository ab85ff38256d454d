import { AUTHORITY } from '../support/environment.ts';
import { BY_POLICY, policyOf } from '../support/published-policies.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'matches a host with the wildcard pattern of a policy',
  mtaSts: policyOf('sts-wildcard', 'enforce', ['*.sts-wildcard.example']),
  hosts: { mx: { tls: AUTHORITY.issue(['mx.sts-wildcard.example']) } },
  messages: { ada: BY_POLICY },
} satisfies Scenario;
