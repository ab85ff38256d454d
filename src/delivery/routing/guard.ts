import { isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import ipaddr from 'ipaddr.js';
import { parseListen } from '../../config/setting-types.ts';
import { isPublic } from '../../dns/address-kinds.ts';

/*
 * Rejects addresses that mail must not be delivered to: private networks, unless the operator allows them, and the
 * listeners of this daemon. An attacker may publish an MX record that points to 127.0.0.1 or to a metadata service.
 */

/** Whether mail may be delivered to an address; if not, why. */
export type AddressVerdict = 'allowed' | 'private-network' | 'own-address';

export interface GuardOptions {
  /** Read at each use: a reload changes it. */
  readonly allowPrivateNetworks: boolean;
  /** `host:port` of each listener. */
  ownListeners: string[];
}

export interface Guard {
  judge(address: string, port: number): AddressVerdict;
}

/**
 * Ignores texts in `ownListeners` that are not an address and a port. A listener at a wildcard address or a name
 * matches every address of this machine, whose interfaces are read at each call. Does not use DNS.
 */
export function createGuard(options: GuardOptions): Guard {
  const own = options.ownListeners.flatMap((text) => parseListen(text) ?? []);
  return {
    judge: (address, port) => {
      const canonical = canonicalAddress(address);
      const reaches = (host: string) =>
        isSpecific(host) ? canonicalAddress(host) === canonical : isLocal(canonical);
      if (own.some((listener) => listener.port === port && reaches(listener.host))) return 'own-address';
      return options.allowPrivateNetworks || isPublic(address) ? 'allowed' : 'private-network';
    },
  };
}

/** Whether a listener is bound to one address; a wildcard or a name may mean any address of this machine. */
function isSpecific(host: string): boolean {
  return isIP(host) !== 0 && host !== '0.0.0.0' && host !== '::';
}

/** Whether the address is one of this machine; a connection to an unspecified address also reaches it. */
function isLocal(canonical: string): boolean {
  if (['loopback', 'unspecified'].includes(ipaddr.parse(canonical).range())) return true;
  return Object.values(networkInterfaces()).some((list) =>
    list?.some((entry) => canonicalAddress(entry.address) === canonical),
  );
}

/** The canonical form of an address, of an IPv4-mapped one that of the IPv4 address. */
function canonicalAddress(address: string): string {
  return ipaddr.process(address.split('%', 1)[0] ?? '').toString();
}
