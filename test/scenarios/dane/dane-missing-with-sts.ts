import { AUTHORITY } from '../support/environment.ts';
import { BY_POLICY, policyOf } from '../support/published-policies.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'applies the MTA-STS policy of a signed domain without TLSA records',
  mtaSts: policyOf('dane-missing-with-sts'),
  signed: () => [],
  hosts: { mx: { tls: AUTHORITY.issue(['mx.dane-missing-with-sts.example']) } },
  messages: { ada: BY_POLICY },
} satisfies Scenario;
