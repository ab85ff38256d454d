import { networkInterfaces } from 'node:os';
import ipaddr from 'ipaddr.js';
import { parseListen } from '../config/schema.ts';
import { isPublic } from '../dns/address-kinds.ts';

/**
 * Where mail may never be delivered to: private networks, unless the operator allows them, and our own
 * listeners always. A public MX record that points at 127.0.0.1 or at a metadata service is a trap.
 */
export type AddressVerdict = 'allowed' | 'private-network' | 'own-address';

export interface Guard {
  judge(address: string, port: number): AddressVerdict;
}

export function createGuard(settings: { allowPrivateNetworks: boolean; ownListeners: string[] }): Guard {
  const own = settings.ownListeners.flatMap((text) => parseListen(text) ?? []);
  return {
    judge: (address, port) => {
      const sameHost = (host: string) => host === address || (isWildcard(host) && isLocal(address));
      if (own.some((listener) => listener.port === port && sameHost(listener.host))) return 'own-address';
      return settings.allowPrivateNetworks || isPublic(address) ? 'allowed' : 'private-network';
    },
  };
}

function isWildcard(host: string): boolean {
  return host === '0.0.0.0' || host === '::';
}

function isLocal(address: string): boolean {
  if (ipaddr.process(address).range() === 'loopback') return true;
  return Object.values(networkInterfaces()).some((list) => list?.some((entry) => entry.address === address));
}
