import { AUTHORITY } from '../support/environment.ts';
import { policyOf } from '../support/published-policies.ts';
import { unavailablePolicy } from '../support/unavailable-policy.ts';

export default unavailablePolicy('ignores a policy from a host whose certificate has expired', {
  ...policyOf('policy-host-expired'),
  certificate: AUTHORITY.issue(['mta-sts.policy-host-expired.example'], new Date('2020-01-01')),
});
