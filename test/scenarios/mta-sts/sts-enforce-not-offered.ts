import { deferredForTls } from '../support/deferred-for-tls.ts';
import { AUTHORITY } from '../support/environment.ts';
import { policyOf } from '../support/published-policies.ts';

export default deferredForTls({
  title: 'sends nothing in plain text to a host in an enforced policy that does not offer STARTTLS',
  mtaSts: policyOf('sts-enforce-not-offered'),
  tls: null,
  session:
    'mx starttls: mx.sts-enforce-not-offered.example does not offer STARTTLS (required by the MTA-STS policy of sts-enforce-not-offered.example)',
  connection: 'EHLO QUIT',
  certificate: AUTHORITY.issue(['mx.sts-enforce-not-offered.example']),
});
