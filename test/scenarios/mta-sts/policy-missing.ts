import { unavailablePolicy } from '../support/unavailable-policy.ts';

export default unavailablePolicy('delivers without a policy when the policy host does not serve the domain', {
  policy: null,
});
