import { expect, it } from 'vitest';
import { isRefusal, type Refusal } from '../../src/core/refusal.ts';
import {
  linkHostDomain,
  registrableDomain,
  returnPathDomain,
  trackingDomainUnder,
} from '../../src/domains/names.ts';

const label63 = 'a'.repeat(63);

function refusalOf(result: string | Refusal) {
  return isRefusal(result) ? [result.code, result.extras.details] : result;
}

function refusal(field: string, reason: string) {
  return ['VALIDATION_ERROR', [{ field, message: expect.stringContaining(reason) }]];
}

it('registrableDomain returns the canonical name', () => {
  const names = [
    ['example.com', 'example.com'],
    ['EXAMPLE.Com.', 'example.com'],
    [' example.com ', 'example.com'],
    ['bücher.example', 'xn--bcher-kva.example'],
    ['xn--bcher-kva.example', 'xn--bcher-kva.example'],
    ['mail.shop.co.uk', 'mail.shop.co.uk'],
    ['me.github.io', 'me.github.io'],
    // Top-level domains that are not on the list.
    ['example.test', 'example.test'],
    ['kunde.example', 'kunde.example'],
    ['printer.corp', 'printer.corp'],
    [`${label63}.example`, `${label63}.example`],
  ];
  expect(names.map(([text = '']) => [text, registrableDomain(text)])).toEqual(names);
});

it('registrableDomain refuses other names with the reason', () => {
  const refused: [string, string][] = [
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
    [`${'a'.repeat(64)}.com`, 'must not have a label longer than 63'],
    [`${`${label63}.`.repeat(4)}com`, 'at most 253 characters'],
    [`${`${label63}.`.repeat(3)}${'a'.repeat(50)}.com`, 'its records need'],
  ];
  expect(refused.map(([text]) => [text, refusalOf(registrableDomain(text))])).toEqual(
    refused.map(([text, reason]) => [text, refusal('domain', reason)]),
  );
});

it('trackingDomainUnder returns the canonical name', () => {
  const names = [
    ['EU-T-link.Example.com.', 'eu-t-link.example.com'],
    ['a.b.example.com', 'a.b.example.com'],
  ];
  expect(names.map(([text = '']) => [text, trackingDomainUnder('example.com', text)])).toEqual(names);
});

it('trackingDomainUnder refuses other names with the reason', () => {
  const refused: [string, string][] = [
    ['example.com', 'must be a subdomain'],
    ['link.example.org', 'must be a subdomain'],
    ['badexample.com', 'must be a subdomain'],
    ['return-a.example.com', 'receives the bounces'],
    ['_dmarc.example.com', 'must be a host name'],
    ['https://link.example.com', 'must be a host name'],
    ['', 'must be a host name'],
  ];
  expect(refused.map(([text]) => [text, refusalOf(trackingDomainUnder('example.com', text))])).toEqual(
    refused.map(([text, reason]) => [text, refusal('trackingDomain', reason)]),
  );
});

it('returnPathDomain and linkHostDomain return the domain, or null for other hosts', () => {
  expect(['return-a.example.com', 'example.com', 'return-b.example.com'].map(returnPathDomain)).toEqual([
    'example.com',
    null,
    null,
  ]);
  expect(['link.example.com', 'example.com', 'links.example.com'].map(linkHostDomain)).toEqual([
    'example.com',
    null,
    null,
  ]);
});
