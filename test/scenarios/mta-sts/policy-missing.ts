import { unavailablePolicy } from '../support/unavailable-policy.ts';

export default unavailablePolicy('delivers without a policy when its host does not know the domain', {
  policy: null,
});
