import { selfSigned } from '../../support/certificates.ts';
import { deferredForTls, requiring } from '../support/deferred-for-tls.ts';
import { AUTHORITY } from '../support/environment.ts';

const NAMES = ['mx.verified-self-signed.example'];

export default deferredForTls({
  title: 'defers mail when verification is required and the certificate is self-signed',
  settings: requiring('verified'),
  tls: selfSigned(NAMES),
  session: 'mx starttls: TLS handshake failed: self-signed certificate',
  certificate: AUTHORITY.issue(NAMES),
});
