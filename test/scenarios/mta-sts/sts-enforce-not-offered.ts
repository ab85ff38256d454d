import { deferredForTls } from '../support/deferred-for-tls.ts';
import { AUTHORITY } from '../support/environment.ts';
import { policyOf } from '../support/published-policies.ts';

export default deferredForTls({
  title:
    'defers mail while a host in an enforced policy does not offer STARTTLS, and sends nothing in plain text',
  mtaSts: policyOf('sts-enforce-not-offered'),
  tls: null,
  session:
    'mx starttls: mx.sts-enforce-not-offered.example does not offer STARTTLS (required by the MTA-STS policy of sts-enforce-not-offered.example)',
  connection: 'EHLO QUIT',
  certificate: AUTHORITY.issue(['mx.sts-enforce-not-offered.example']),
});
