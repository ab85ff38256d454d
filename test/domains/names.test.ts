import { describe, expect, it } from 'vitest';
import { isRefusal } from '../../src/core/refusal.ts';
import { registrableDomain, trackingDomainUnder } from '../../src/domains/names.ts';

const label63 = 'a'.repeat(63);

describe('a domain to register is taken', () => {
  it.each([
    ['example.com', 'example.com'],
    ['EXAMPLE.Com.', 'example.com'],
    [' example.com ', 'example.com'],
    ['bücher.example', 'xn--bcher-kva.example'],
    ['xn--bcher-kva.example', 'xn--bcher-kva.example'],
    ['mail.shop.co.uk', 'mail.shop.co.uk'],
    ['me.github.io', 'me.github.io'],
    // Top-level domains that the list does not know.
    ['example.test', 'example.test'],
    ['kunde.example', 'kunde.example'],
    ['printer.corp', 'printer.corp'],
    [`${label63}.example`, `${label63}.example`],
  ])('%s', (text, name) => {
    expect(registrableDomain(text)).toBe(name);
  });
});

describe('a domain to register is refused', () => {
  it.each([
    ['', 'must be a domain name'],
    ['https://example.com', 'without the protocol'],
    ['example.com/path', 'without a path'],
    ['example.com:25', 'without a port'],
    ['me@example.com', 'the part after the "@"'],
    ['192.0.2.1', 'not an IP address'],
    ['[192.0.2.1]', 'not an IP address'],
    ['2001:db8::1', 'not an IP address'],
    ['0x7f.1', 'not an IP address'],
    ['localhost', 'at least two labels'],
    ['com', 'at least two labels'],
    ['co.uk', 'is a public suffix'],
    ['github.io', 'is a public suffix'],
    ['foo.ck', 'is a public suffix'],
    ['exa mple.com', 'must not contain spaces'],
    ['-example.com', 'must be a domain name'],
    ['exam_ple.com', 'must be a domain name'],
    ['example..com', 'must be a domain name'],
    ['*.example.com', 'must be a domain name'],
    ['xn--a.com', 'must be a domain name'],
    [`${'a'.repeat(64)}.com`, 'no label may be longer than 63'],
    [`${`${label63}.`.repeat(4)}com`, 'at most 253 characters'],
    [`${`${label63}.`.repeat(3)}${'a'.repeat(50)}.com`, 'its records need'],
  ])('%s', (text, why) => {
    const refusal = registrableDomain(text);
    expect(isRefusal(refusal) && refusal).toMatchObject({
      code: 'VALIDATION_ERROR',
      extras: { details: [{ field: 'domain', message: expect.stringContaining(why) }] },
    });
  });
});

describe('a host for tracked links', () => {
  it.each([
    ['EU-T-link.Example.com.', 'eu-t-link.example.com'],
    ['a.b.example.com', 'a.b.example.com'],
  ])('%s is taken', (text, name) => {
    expect(trackingDomainUnder('example.com', text)).toBe(name);
  });

  it.each([
    ['example.com', 'must be a subdomain'],
    ['link.example.org', 'must be a subdomain'],
    ['badexample.com', 'must be a subdomain'],
    ['return-a.example.com', 'receives the bounces'],
    ['_dmarc.example.com', 'must be a host name'],
    ['https://link.example.com', 'must be a host name'],
    ['', 'must be a host name'],
  ])('%s is refused', (text, why) => {
    const refusal = trackingDomainUnder('example.com', text);
    expect(isRefusal(refusal) && refusal.extras.details).toEqual([
      { field: 'trackingDomain', message: expect.stringContaining(why) },
    ]);
  });
});
