import { deferredForTls, requiring } from '../support/deferred-for-tls.ts';
import { AUTHORITY } from '../support/environment.ts';

const NAMES = ['mx.verified-expired.example'];

export default deferredForTls({
  title: 'defers mail when verification is required and the certificate has expired',
  settings: requiring('verified'),
  tls: AUTHORITY.issue(NAMES, new Date('2020-01-01')),
  session: 'mx starttls: TLS handshake failed: certificate has expired',
  certificate: AUTHORITY.issue(NAMES),
});
