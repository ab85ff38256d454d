import { createHash } from 'node:crypto';
import { publicKeyInfoOf } from '../../src/delivery/worker/tls.ts';
import { derOf } from './certificates.ts';

/** The TLSA record `usage 1 1` (public key, SHA-256) of a certificate in PEM, as in a zone file: `TLSA 3 1 1 ab…`. */
export function tlsaRecord(usage: 2 | 3, certificate: { cert: string }): string {
  const key = publicKeyInfoOf(derOf(certificate.cert));
  if (key === null) throw new Error('the certificate has no public key');
  return `TLSA ${usage} 1 1 ${createHash('sha256').update(key).digest('hex')}`;
}
