import { createHash, createPublicKey, X509Certificate } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { TlsaAssociation } from '../../../src/delivery/worker/protocol.ts';
import { matchesServer, publicKeyInfoOf, trustAnchors } from '../../../src/delivery/worker/tls.ts';
import { createAuthority, derOf, selfSigned } from '../../support/certificates.ts';

const authority = createAuthority();
const own = derOf(authority.issue(['mx.example.test']).cert);
const issuer = derOf(authority.cert);
const other = derOf(selfSigned(['other.example.test']).cert);
const chain = [own, issuer];

/** The association data that a receiver would publish, computed by other means than the code under test. */
function dataOf(certificate: Buffer, selector: 0 | 1, matchingType: 0 | 1 | 2): string {
  const key = createPublicKey(new X509Certificate(certificate).toString());
  const selected = selector === 0 ? certificate : key.export({ type: 'spki', format: 'der' });
  if (matchingType === 0) return selected.toString('hex');
  return createHash(matchingType === 1 ? 'sha256' : 'sha512')
    .update(selected)
    .digest('hex');
}

const record = (
  usage: 2 | 3,
  selector: 0 | 1,
  matchingType: 0 | 1 | 2,
  certificate: Buffer,
): TlsaAssociation => ({ usage, selector, matchingType, data: dataOf(certificate, selector, matchingType) });

const FORMS = ([0, 1] as const).flatMap((selector) =>
  ([0, 1, 2] as const).map((matchingType) => ({ selector, matchingType })),
);

describe('a record', () => {
  it.each(FORMS)(
    '3 $selector $matchingType matches the certificate of the server only',
    ({ selector, matchingType }) => {
      const of = (certificate: Buffer) => [record(3, selector, matchingType, certificate)];
      expect(matchesServer(of(own), chain)).toBe(true);
      expect(matchesServer(of(issuer), chain)).toBe(false);
      expect(matchesServer(of(other), chain)).toBe(false);
      expect(trustAnchors(of(issuer), chain)).toEqual([]);
    },
  );

  it.each(FORMS)(
    '2 $selector $matchingType matches an issuer in the chain only',
    ({ selector, matchingType }) => {
      const of = (certificate: Buffer) => [record(2, selector, matchingType, certificate)];
      expect(trustAnchors(of(issuer), chain)).toEqual([issuer]);
      expect(matchesServer(of(own), chain)).toBe(false);
      // A whole certificate is an anchor even if the server does not send it.
      const published = selector === 0 && matchingType === 0 ? [other] : [];
      expect(trustAnchors(of(other), chain)).toEqual(published);
    },
  );

  it('matches when any of several does', () => {
    expect(matchesServer([record(3, 1, 1, other), record(3, 0, 2, own)], chain)).toBe(true);
  });

  it.each(['', 'ab', '00'.repeat(32), `${dataOf(own, 0, 1)}00`])(
    'with the data %j matches nothing',
    (data) => {
      expect(matchesServer([{ usage: 3, selector: 0, matchingType: 1, data }], chain)).toBe(false);
    },
  );

  it('matches nothing without a certificate', () => {
    expect(matchesServer([record(3, 1, 1, own)], [])).toBe(false);
  });
});

describe('the public key of a certificate', () => {
  it('is the bytes in the certificate', () => {
    expect(publicKeyInfoOf(own)?.toString('hex')).toBe(dataOf(own, 1, 0));
    expect(publicKeyInfoOf(issuer)?.toString('hex')).toBe(dataOf(issuer, 1, 0));
  });

  it('is null for every truncated certificate', () => {
    for (let length = 0; length < own.length; length++)
      expect(publicKeyInfoOf(own.subarray(0, length))).toBeNull();
  });

  it.each(['30', '3084ffffffff', '3003020101', '30053003020101', 'ff'.repeat(40)])(
    'is null for %s',
    (hex) => {
      expect(publicKeyInfoOf(Buffer.from(hex, 'hex'))).toBeNull();
    },
  );
});
