import { networkInterfaces } from 'node:os';

/**
 * Whether this machine has the loopback address of IPv6. Tests that need it are skipped without it, also in CI: it cannot be
 * installed.
 */
export const HAS_IPV6 = Object.values(networkInterfaces()).some((each) =>
  each?.some(({ address }) => address === '::1'),
);
