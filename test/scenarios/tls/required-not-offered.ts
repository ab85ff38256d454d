import { selfSigned } from '../../support/certificates.ts';
import { deferredForTls, requiring } from '../support/deferred-for-tls.ts';

export default deferredForTls({
  title: 'defers mail when encryption is required and not offered, and sends nothing in plain text',
  settings: requiring('required'),
  tls: null,
  session: 'mx starttls: mx.required-not-offered.example does not offer STARTTLS',
  connection: 'EHLO QUIT',
  certificate: selfSigned(['mx.example']),
  delivery: 'mx dot 250 TLS',
});
