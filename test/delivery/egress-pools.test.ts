import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { createEgressPools } from '../../src/delivery/egress-pools.ts';

describe('IPv6 of an egress pool', () => {
  it.each([
    ['no entries: the system chooses', '[]', 'fallback'],
    ['an entry without an address', '[{ name = "a" }]', 'fallback'],
    ['IPv4 alone', '[{ name = "a", address = "192.0.2.1" }]', 'never'],
    ['both', '[{ name = "a", address = "192.0.2.1", address6 = "2001:db8::1" }]', 'always'],
    [
      'one with, one without',
      '[{ name = "a", address = "192.0.2.1" }, { name = "b", address6 = "2001:db8::1" }]',
      'always',
    ],
  ])('%s', (_, egress, expected) => {
    const config = loadConfig({ env: { POSTRIDER_DELIVERY__EGRESS: egress } });
    expect(createEgressPools(config).ipv6Of('default')).toBe(expected);
  });
});
