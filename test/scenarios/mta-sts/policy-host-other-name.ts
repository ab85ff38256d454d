import { AUTHORITY } from '../support/environment.ts';
import { policyOf } from '../support/published-policies.ts';
import { unavailablePolicy } from '../support/unavailable-policy.ts';

export default unavailablePolicy('ignores a policy from a host with the certificate of another host', {
  ...policyOf('policy-host-other-name'),
  certificate: AUTHORITY.issue(['mta-sts.elsewhere.example']),
});
