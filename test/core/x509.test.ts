import { execFileSync } from 'node:child_process';
import { createPrivateKey, createPublicKey } from 'node:crypto';
import { expect, it } from 'vitest';
import { generateCertificateRequest } from '../../src/core/x509.ts';
import { requirePrograms } from '../support/required-programs.ts';

const required = requirePrograms('openssl');

it.skipIf(required.missing)(
  `generates a request for a certificate that OpenSSL verifies${required.reason}`,
  () => {
    const { key, request } = generateCertificateRequest('track.example.com');
    const openssl = (...args: string[]) =>
      execFileSync('openssl', ['req', '-inform', 'der', '-noout', ...args], {
        input: request,
        encoding: 'utf8',
      });
    expect(openssl('-verify', '-text')).toMatch(/DNS:track\.example\.com/);
    const publicKey = createPublicKey(createPrivateKey(key)).export({ type: 'spki', format: 'pem' });
    expect(openssl('-pubkey')).toBe(publicKey);
  },
);

it('generates another key each time', () => {
  expect(generateCertificateRequest('a.example').key).not.toBe(generateCertificateRequest('a.example').key);
});
