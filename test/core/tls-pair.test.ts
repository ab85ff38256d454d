import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createSecureContext } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { OperatorFault } from '../../src/core/operator-fault.ts';
import { readCertificatesFile, verifyTlsPair } from '../../src/core/tls-pair.ts';
import { createAuthority } from '../support/certificates.ts';
import { temporaryDir } from '../support/store.ts';

const authority = createAuthority();
const pair = authority.issue(['mx.postrider.example']);
const other = authority.issue(['mx.postrider.example']);
const chain = pair.cert + authority.cert;

describe('a certificate and a key', () => {
  it('are accepted with and without a chain, and after the certificate has expired', async () => {
    const expired = authority.issue(['mx.postrider.example'], new Date(Date.now() - 86_400_000));
    for (const valid of [pair, { ...pair, cert: chain }, expired])
      await expect(verifyTlsPair(valid)).resolves.toBeUndefined();
  });

  it.each([
    ['an empty key', { ...pair, key: '' }, /the key file is empty/],
    ['a key of blanks', { ...pair, key: ' \n' }, /the key file is empty/],
    ['an empty certificate', { ...pair, cert: '' }, /the certificate file is empty/],
    ['the first half of a key', { ...pair, key: half(pair.key) }, /the key file is incomplete/],
    ['the first half of a certificate', { ...pair, cert: half(pair.cert) }, /certificate file is incomplete/],
    ['half of the chain', { ...pair, cert: pair.cert + half(authority.cert) }, /file is incomplete/],
    ['the key of another certificate', { ...pair, key: other.key }, /not that of the certificate/],
    ['text', { ...pair, key: 'key' }, /the key file is incomplete/],
  ])('are refused with %s', async (_, given, message) => {
    await expect(verifyTlsPair(given)).rejects.toThrow(message);
  });

  it('are not checked by Node itself when the key is empty', () => {
    expect(() => createSecureContext({ ...pair, key: '' })).not.toThrow();
  });
});

describe('a file of certificates', () => {
  const fileWith = (text: string) => {
    const file = join(temporaryDir(), 'ca.pem');
    writeFileSync(file, text);
    return file;
  };

  it('is returned as it is', () => {
    expect(readCertificatesFile('delivery.tls.caFile', fileWith(chain))).toBe(chain);
  });

  it.each([
    ['', /delivery\.tls\.caFile: .*ca\.pem cannot be used: the file is empty/],
    [pair.cert + half(authority.cert), /the file is incomplete/],
    [pair.cert.replaceAll(/\n[^-\n]{10}/g, '\nAAAAAAAAAA'), /cannot be used/],
  ])('is refused with other content', (text, message) => {
    const read = () => readCertificatesFile('delivery.tls.caFile', fileWith(text));
    expect(read).toThrow(OperatorFault);
    expect(read).toThrow(message);
  });
});

function half(text: string): string {
  return text.slice(0, text.length / 2);
}
