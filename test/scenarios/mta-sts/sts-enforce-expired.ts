import { deferredForTls } from '../support/deferred-for-tls.ts';
import { AUTHORITY } from '../support/environment.ts';
import { BY_POLICY, policyOf } from '../support/published-policies.ts';

const NAMES = ['mx.sts-enforce-expired.example'];

export default deferredForTls({
  title: 'defers mail while the certificate of a host in an enforced policy has expired',
  mtaSts: policyOf('sts-enforce-expired'),
  tls: AUTHORITY.issue(NAMES, new Date('2020-01-01')),
  session:
    'mx starttls: TLS handshake failed: certificate has expired (required by the MTA-STS policy of sts-enforce-expired.example)',
  certificate: AUTHORITY.issue(NAMES),
  encryption: BY_POLICY.tls ?? {},
});
