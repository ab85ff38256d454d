import { normalizeDomain } from '../../mail/address.ts';
import type { Tables } from '../../store/tables.ts';
import { linkHost } from '../names.ts';
import { type Platform, trackHost } from './platform.ts';

/**
 * own: a host of the platform itself. proven: the link host of a domain whose DKIM key was found in DNS, so that
 * whoever registered it here controls it. registered: of a domain that anybody may have registered.
 */
export type LinkHostStanding = 'own' | 'proven' | 'registered';

/**
 * The standing of a host name that may lead recipients to the public pages: the platform's own, and for each
 * registered domain its usual and its custom link host. Null for any other name. Asks no DNS.
 */
export function linkHostStanding(
  tables: Tables,
  platform: Pick<Platform, 'hostname' | 'publicUrl'>,
  text: string,
): LinkHostStanding | null {
  const host = normalizeDomain(text);
  if (host === null) return null;
  if (host === trackHost(platform) || host === new URL(platform.publicUrl).hostname) return 'own';
  const usualPrefix = linkHost('');
  const domain = host.startsWith(usualPrefix) ? host.slice(usualPrefix.length) : '';
  return tables.domains.linkHostStanding(host, domain);
}

/** The host of `public.url`; null when it is no name that a certificate can be for. */
export function publicHost({ publicUrl }: Pick<Platform, 'publicUrl'>): string | null {
  return normalizeDomain(new URL(publicUrl).hostname);
}
