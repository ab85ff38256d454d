import { selfSigned } from '../../support/certificates.ts';
import { tlsaRecord } from '../../support/tlsa.ts';
import { deferredForTls } from '../support/deferred-for-tls.ts';
import { AUTHORITY } from '../support/environment.ts';
import { policyOf } from '../support/published-policies.ts';
import { withTlsa } from '../support/signed-destination.ts';

const PUBLISHED = selfSigned(['mx.dane-fails-with-sts.example']);

export default deferredForTls({
  title: 'defers mail when no TLSA record matches, although the certificate satisfies the MTA-STS policy',
  mtaSts: policyOf('dane-fails-with-sts'),
  signed: withTlsa(tlsaRecord(3, PUBLISHED)),
  tls: AUTHORITY.issue(['mx.dane-fails-with-sts.example']),
  session:
    'mx starttls: TLS handshake failed: the certificate does not match the TLSA records of _25._tcp.mx.dane-fails-with-sts.example (required by the TLSA records of _25._tcp.mx.dane-fails-with-sts.example)',
  certificate: PUBLISHED,
});
