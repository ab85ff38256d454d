import { policyOf } from '../support/published-policies.ts';
import { unavailablePolicy } from '../support/unavailable-policy.ts';

export default unavailablePolicy(
  'delivers without a policy when the policy host refuses connections',
  policyOf('policy-host-down'),
  () => ({ 'mta-sts': { A: ['127.99.99.99'] } }),
);
