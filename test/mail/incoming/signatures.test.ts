import { describe, expect, it } from 'vitest';
import { readSignatures } from '../../../src/mail/incoming/signatures.ts';

function signedMail(bodyHash: string): Buffer {
  const signature = `v=1; a=rsa-sha256; d=x.example; s=s1; h=from; bh=${bodyHash}; b=AAAA`;
  return Buffer.from(`DKIM-Signature: ${signature}\r\nFrom: r@x.example\r\n\r\nbody\r\n`);
}

describe('a signature', () => {
  it('is verified when it is aligned with the author', () => {
    expect(readSignatures(signedMail('AAAA'))?.keyNames).toEqual(['s1._domainkey.x.example']);
  });

  it('with thousands of blanks is not verified, because that takes quadratic time', () => {
    expect(readSignatures(signedMail(`A${'\t'.repeat(60_000)}A`))).toBeNull();
  });
});
