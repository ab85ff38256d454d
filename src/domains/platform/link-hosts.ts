import type { Resolver } from '../../dns/resolver.ts';
import { normalizeDomain } from '../../mail/address.ts';
import type { Context } from '../../store/context.ts';
import type { Tables } from '../../store/tables.ts';
import { linkHostDomain, stsPolicyDomain } from '../names.ts';
import { createHostLocator } from './host-locator.ts';
import { type Platform, type PlatformOptions, platformOf, publicHost, trackHost } from './platform.ts';

/**
 * own: a host of the platform itself. proven: a link host of a domain whose DKIM key was found in DNS, so its owner
 * registered it here. registered: a link host of a domain that anyone may have registered.
 */
export type LinkHostStatus = 'own' | 'proven' | 'registered';

/**
 * The standing of a host name that may lead to the public pages: the platform's own hosts, and of each registered domain
 * the default and the custom link host and the host of its MTA-STS policy. Null for any other name. Does not use DNS.
 */
export function linkHostStatus(
  tables: Tables,
  platform: Pick<Platform, 'hostname' | 'publicUrl'>,
  text: string,
): LinkHostStatus | null {
  const host = normalizeDomain(text);
  if (host === null) return null;
  if (host === trackHost(platform) || host === new URL(platform.publicUrl).hostname) return 'own';
  return tables.domains.linkHostStatus(host, domainOfHost(host));
}

/** The domain that has this default link host or host of an MTA-STS policy; '': none. */
function domainOfHost(host: string): string {
  return linkHostDomain(host) ?? stsPolicyDomain(host) ?? '';
}

export type LinkHosts = ReturnType<typeof createLinkHosts>;

/**
 * Looks nothing up until `leadsHere`, which uses DNS through a locator with caches and limits (`createHostLocator`).
 * `statusOf` and `ownerOf` read the database at each call.
 */
export function createLinkHosts(
  { config, tables, monotonic }: Pick<Context, 'tables' | 'monotonic'> & { config: PlatformOptions },
  resolver: Resolver,
) {
  const platform = platformOf(config);
  const locator = createHostLocator(monotonic, resolver, platform);
  const statusOf = (host: string) => linkHostStatus(tables, platform, host);
  return {
    /** The host of `public.url`; null when it is not a name that can have a certificate. */
    publicHost: publicHost(platform),
    statusOf,
    /** The account whose domain has this link host; null: none. */
    ownerOf: (text: string): string | null => {
      const host = normalizeDomain(text);
      return host === null ? null : tables.domains.linkHostOwner(host, domainOfHost(host));
    },
    /** Whether a link host leads here. `isRenewal`: the host has a certificate. Limits its lookups; never rejects. */
    leadsHere: async (host: string, isRenewal: boolean): Promise<boolean> => {
      const lookup = statusOf(host) === 'registered' ? 'registered' : 'proven';
      return (await locator.locate(host, isRenewal ? 'renewal' : lookup)) === 'here';
    },
    /** Cancels lookups in progress and waiting ones. */
    close: locator.close,
  };
}
