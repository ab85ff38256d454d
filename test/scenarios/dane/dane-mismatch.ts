import { selfSigned } from '../../support/certificates.ts';
import { tlsaRecord } from '../../support/tlsa.ts';
import { deferredForTls } from '../support/deferred-for-tls.ts';
import { AUTHORITY } from '../support/environment.ts';
import { BY_DANE } from '../support/published-policies.ts';
import { withTlsa } from '../support/signed-destination.ts';

const PUBLISHED = selfSigned(['mx.dane-mismatch.example']);

export default deferredForTls({
  title:
    'defers mail while no TLSA record matches the certificate, although a trusted authority has issued it',
  signed: withTlsa(tlsaRecord(3, PUBLISHED)),
  tls: AUTHORITY.issue(['mx.dane-mismatch.example']),
  session:
    'mx starttls: TLS handshake failed: the certificate does not match the TLSA records of _25._tcp.mx.dane-mismatch.example (required by the TLSA records of _25._tcp.mx.dane-mismatch.example)',
  certificate: PUBLISHED,
  encryption: BY_DANE.tls ?? {},
});
