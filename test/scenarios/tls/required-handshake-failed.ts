import { selfSigned } from '../../support/certificates.ts';
import { deferredForTls, requiring } from '../support/deferred-for-tls.ts';

export default deferredForTls({
  title: 'defers mail when encryption is required and the handshake fails, and sends nothing in plain text',
  settings: requiring('required'),
  tls: 'garbage',
  session: 'mx starttls: TLS handshake failed: wrong version number',
  certificate: selfSigned(['mx.example']),
  delivery: 'mx dot 250 TLS',
});
