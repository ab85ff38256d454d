import { deferredForTls, requiring } from '../support/deferred-for-tls.ts';
import { AUTHORITY } from '../support/environment.ts';

export default deferredForTls({
  title: 'defers mail when verification is required and the certificate is that of another host',
  settings: requiring('verified'),
  tls: AUTHORITY.issue(['mail.elsewhere.example']),
  session:
    "mx starttls: TLS handshake failed: Host: mx.verified-other-name.example. is not in the cert's altnames: DNS:mail.elsewhere.example",
  certificate: AUTHORITY.issue(['mx.verified-other-name.example']),
});
