import { describe, expect, it } from 'vitest';
import { isForbidden, isPublic } from '../../src/dns/address-kinds.ts';

describe('kinds of addresses', () => {
  it.each([
    ['8.8.8.8', 'public'],
    ['2001:4860:4860::8888', 'public'],
    ['::ffff:8.8.8.8', 'public'],
    ['127.0.0.1', 'private'],
    ['10.1.2.3', 'private'],
    ['172.16.0.1', 'private'],
    ['192.168.1.1', 'private'],
    ['100.64.0.1', 'private'],
    ['0.0.0.0', 'private'],
    ['::1', 'private'],
    ['::', 'private'],
    ['fc00::1', 'private'],
    ['::ffff:127.0.0.1', 'private'],
    ['::ffff:7f00:1', 'private'],
    // Translators: what they lead to may be public, but we cannot know that it is.
    ['64:ff9b::8.8.8.8', 'private'],
    ['2002:0808:0808::1', 'private'],
    ['169.254.169.254', 'forbidden'],
    ['169.254.0.1', 'forbidden'],
    ['::ffff:169.254.169.254', 'forbidden'],
    ['64:ff9b::169.254.169.254', 'forbidden'],
    ['2002:a9fe:a9fe::1', 'forbidden'],
    ['fe80::1', 'forbidden'],
    ['fe80::1%eth0', 'forbidden'],
    ['fd00:ec2::254', 'forbidden'],
    ['100.100.100.200', 'forbidden'],
    ['168.63.129.16', 'forbidden'],
    ['255.255.255.255', 'forbidden'],
    ['224.0.0.1', 'forbidden'],
    ['ff02::1', 'forbidden'],
    ['not an address', 'forbidden'],
    ['', 'forbidden'],
  ])('%s is %s', (address, expected) => {
    const kind = isForbidden(address) ? 'forbidden' : isPublic(address) ? 'public' : 'private';
    expect(kind).toBe(expected);
    // Whatever must never be called is not public either.
    if (expected === 'forbidden') expect(isPublic(address)).toBe(false);
  });
});
