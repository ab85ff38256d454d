import { isIP } from 'node:net';
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
      const canonical = canonicalAddress(address);
      const reaches = (host: string) =>
        isSpecific(host) ? canonicalAddress(host) === canonical : isLocal(canonical);
      if (own.some((listener) => listener.port === port && reaches(listener.host))) return 'own-address';
      return settings.allowPrivateNetworks || isPublic(address) ? 'allowed' : 'private-network';
    },
  };
}

/** Whether a listener is bound to one address; a wildcard or a name may stand for any address of this machine. */
function isSpecific(host: string): boolean {
  return isIP(host) !== 0 && host !== '0.0.0.0' && host !== '::';
}

/** A connection to an unspecified address reaches this machine as well. */
function isLocal(canonical: string): boolean {
  if (['loopback', 'unspecified'].includes(ipaddr.parse(canonical).range())) return true;
  return Object.values(networkInterfaces()).some((list) =>
    list?.some((entry) => canonicalAddress(entry.address) === canonical),
  );
}

/** One spelling of each address, an IPv4-mapped one as IPv4. */
function canonicalAddress(address: string): string {
  return ipaddr.process(address.split('%', 1)[0] ?? '').toString();
}
