import { selfSigned } from '../../support/certificates.ts';
import { tlsaRecord } from '../../support/tlsa.ts';
import { deferredForTls } from '../support/deferred-for-tls.ts';
import { withTlsa } from '../support/signed-destination.ts';

const CERTIFICATE = selfSigned(['mx.dane-not-offered.example']);

export default deferredForTls({
  title:
    'defers mail while a host with TLSA records does not offer STARTTLS, and sends nothing in plain text',
  signed: withTlsa(tlsaRecord(3, CERTIFICATE)),
  tls: null,
  session:
    'mx starttls: mx.dane-not-offered.example does not offer STARTTLS (required by the TLSA records of _25._tcp.mx.dane-not-offered.example)',
  connection: 'EHLO QUIT',
  certificate: CERTIFICATE,
});
