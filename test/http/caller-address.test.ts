import { describe, expect, it } from 'vitest';
import { createCallerAddresses, isLocal } from '../../src/http/caller-address.ts';

/** The address and the forwarded flag for a peer and its header fields. */
function seen(peer: string | undefined, headers: Record<string, string>, trusted: string[]) {
  // Of the socket only its address is read.
  const socket = { remoteAddress: peer } as never;
  const from = createCallerAddresses(() => trusted, 'api.trustedProxies')({ socket, headers });
  return { ...from, local: isLocal(from) };
}

const PROXIES = ['10.0.0.0/8', '127.0.0.1'];

describe('createCallerAddresses', () => {
  it.each<[string, string | undefined, Record<string, string>, string, boolean]>([
    ['no proxy', '203.0.113.9', {}, '203.0.113.9', false],
    ['IPv4 on a dual-stack listener', '::ffff:203.0.113.9', {}, '203.0.113.9', false],
    ['the machine itself', '127.0.0.1', {}, '127.0.0.1', true],
    ['the machine itself, IPv6', '::1', {}, '::1', true],
    ['a named proxy', '10.0.0.1', { 'x-forwarded-for': '203.0.113.9' }, '203.0.113.9', false],
    ['a named proxy on the machine', '127.0.0.1', { 'x-forwarded-for': '203.0.113.9' }, '203.0.113.9', false],
    ['two named proxies', '10.0.0.1', { 'x-forwarded-for': '203.0.113.9, 10.9.9.9' }, '203.0.113.9', false],
    [
      'a caller who sends invented addresses',
      '10.0.0.1',
      { 'x-forwarded-for': '1.1.1.1, 203.0.113.9' },
      '203.0.113.9',
      false,
    ],
    [
      'a caller who pretends to be the machine',
      '10.0.0.1',
      { 'x-forwarded-for': '127.0.0.1, 203.0.113.9' },
      '203.0.113.9',
      false,
    ],
    [
      'a proxy that claims to forward a local request',
      '10.0.0.1',
      { 'x-forwarded-for': '::1' },
      '::1',
      false,
    ],
    ['nobody but proxies', '10.0.0.1', { 'x-forwarded-for': '10.0.0.3, 10.0.0.2' }, '10.0.0.3', false],
    [
      'with ports',
      '10.0.0.1',
      { 'x-forwarded-for': '203.0.113.9:4711, [::ffff:10.0.0.2]:80' },
      '203.0.113.9',
      false,
    ],
    ['IPv6', '10.0.0.1', { 'x-forwarded-for': '2001:DB8::0:7' }, '2001:db8::7', false],
    [
      'an entry that is not an address',
      '10.0.0.1',
      { 'x-forwarded-for': '203.0.113.9, unknown' },
      '10.0.0.1',
      false,
    ],
    ['an empty field', '10.0.0.1', { 'x-forwarded-for': '' }, '10.0.0.1', false],
    [
      'a peer that is not a configured proxy',
      '203.0.113.9',
      { 'x-forwarded-for': '127.0.0.1' },
      '203.0.113.9',
      false,
    ],
    ['another field than X-Forwarded-For', '127.0.0.1', { forwarded: 'for=203.0.113.9' }, '127.0.0.1', false],
    ['a local proxy without X-Forwarded-For', '127.0.0.1', { via: '1.1 squid' }, '127.0.0.1', false],
    ['a connection that is gone', undefined, {}, '', false],
  ])('%s', (_, peer, headers, address, local) => {
    expect(seen(peer, headers, PROXIES)).toMatchObject({ address, local });
  });

  it('does not treat a request forwarded by an unknown local proxy as local', () => {
    expect(seen('127.0.0.1', { 'x-forwarded-for': '127.0.0.1' }, [])).toEqual({
      address: '127.0.0.1',
      forwarded: true,
      local: false,
    });
  });
});

it('rejects a proxy that is neither address nor network', () => {
  expect(() => createCallerAddresses(() => ['10.0.0.0/8', 'proxy.local'], 'api.trustedProxies')).toThrow(
    'api.trustedProxies: "proxy.local" is not an address or a network',
  );
});
