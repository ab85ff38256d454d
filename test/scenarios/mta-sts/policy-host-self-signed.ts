import { selfSigned } from '../../support/certificates.ts';
import { policyOf } from '../support/published-policies.ts';
import { unavailablePolicy } from '../support/unavailable-policy.ts';

export default unavailablePolicy('ignores a policy from a host whose certificate is self-signed', {
  ...policyOf('policy-host-self-signed'),
  certificate: selfSigned(['mta-sts.policy-host-self-signed.example']),
});
