import { deferredForTls } from '../support/deferred-for-tls.ts';
import { AUTHORITY } from '../support/environment.ts';
import { policyOf } from '../support/published-policies.ts';

export default deferredForTls({
  title: 'defers mail while a host in an enforced policy has the certificate of another host',
  mtaSts: policyOf('sts-enforce-other-name'),
  tls: AUTHORITY.issue(['mail.elsewhere.example']),
  session:
    "mx starttls: TLS handshake failed: Host: mx.sts-enforce-other-name.example. is not in the cert's altnames: DNS:mail.elsewhere.example (required by the MTA-STS policy of sts-enforce-other-name.example)",
  certificate: AUTHORITY.issue(['mx.sts-enforce-other-name.example']),
});
