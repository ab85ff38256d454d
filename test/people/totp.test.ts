import { describe, expect, it } from 'vitest';
import { matchTotp, totpAddress, totpCode, totpStep } from '../../src/people/credentials.ts';

const SECRET = Buffer.from('12345678901234567890');

describe('one-time codes', () => {
  // RFC 6238, appendix B: SHA-1, the last six of eight digits.
  it.each([
    [59, '287082'],
    [1111111109, '081804'],
    [1111111111, '050471'],
    [1234567890, '005924'],
    [2000000000, '279037'],
    [20000000000, '353130'],
  ])('at %i s is %s, as in RFC 6238', (seconds, code) => {
    expect(totpCode(SECRET, totpStep(seconds * 1000))).toBe(code);
  });

  it('are accepted one step early or late, with spaces, and not two', () => {
    const now = 1111111109_000;
    const step = totpStep(now);
    expect(matchTotp(SECRET, '081 804', now, 0)).toBe(step);
    expect(matchTotp(SECRET, '081804', now - 30_000, 0)).toBe(step);
    expect(matchTotp(SECRET, '081804', now + 30_000, 0)).toBe(step);
    expect(matchTotp(SECRET, '081804', now - 60_000, 0)).toBeNull();
    expect(matchTotp(SECRET, '081804', now + 60_000, 0)).toBeNull();
  });

  it('are accepted once', () => {
    const now = 1111111109_000;
    expect(matchTotp(SECRET, '081804', now, totpStep(now))).toBeNull();
  });

  it.each(['', '0818', '081804x', '٠٨١٨٠٤', '0818040'])('reject %j', (code) => {
    expect(matchTotp(SECRET, code, 1111111109_000, 0)).toBeNull();
  });
});

it('the address for authenticator applications encodes the mail address', () => {
  expect(totpAddress(SECRET, 'a+b@example.com', 'Postrider')).toBe(
    'otpauth://totp/Postrider%3Aa%2Bb%40example.com?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=Postrider',
  );
});
