import { describe, expect, it } from 'vitest';
import { callerNetwork, canonicalAddress, parseNetwork } from '../../src/accounts/caller-addresses.ts';

describe('the canonical spelling of an address', () => {
  it.each([
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['::FFFF:C000:0201', '192.0.2.1'],
    ['2001:DB8:0:0::1', '2001:db8::1'],
    ['fe80::1%eth0', 'fe80::1'],
    // Forms that other parsers accept.
    ['127.1', null],
    ['0x7f.0.0.1', null],
    ['2130706433', null],
    ['017700000001', null],
    ['192.0.2.256', null],
    ['192.0.2.1:80', null],
    ['example.com', null],
    ['', null],
  ])('%s', (text, address) => expect(canonicalAddress(text)).toBe(address));
});

it.each([
  ['192.0.2.77', '192.0.2.0/24'],
  ['::ffff:192.0.2.77', '192.0.2.0/24'],
  ['2001:db8:1:2::3', '2001:db8:1::/48'],
  ['unknown', 'unknown'],
])('%j belongs to the network %s', (address, network) => expect(callerNetwork(address)).toBe(network));

describe('a network', () => {
  it.each([
    ['192.0.2.0/24', '192.0.2.77', true],
    ['192.0.2.99/24', '192.0.2.77', true],
    ['192.0.2.0/24', '::ffff:192.0.2.77', true],
    ['192.0.2.0/24', '192.0.3.1', false],
    ['0.0.0.0/0', '203.0.113.9', true],
    ['0.0.0.0/0', '2001:db8::1', false],
    ['::/0', '203.0.113.9', false],
    ['2001:db8::/33', '2001:db8:7fff::1', true],
    ['2001:db8::/33', '2001:db8:8000::1', false],
  ])('%s contains %s: %s', (network, address, inside) => {
    expect(parseNetwork(network)?.contains(address)).toBe(inside);
  });

  it.each(['192.0.2.0/', '192.0.2.0/33', '192.0.2/24', '/24', '2001:db8::/129', 'any', ''])(
    'rejects %j',
    (text) => expect(parseNetwork(text)).toBeNull(),
  );
});
