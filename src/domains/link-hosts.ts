import { normaliseDomain } from '../mail/address.ts';
import type { Tables } from '../store/tables.ts';
import { addressesOf, type DnsView } from './dns-view.ts';
import { linkHost } from './names.ts';
import { type Platform, trackHost } from './platform.ts';

/**
 * Which host names may lead recipients to the public pages: the platform's own, and for each registered domain
 * its usual and its custom link host. Whether DNS leads them here already is not asked: a proxy needs the
 * certificate first, and the verification looks for it.
 */
export function isLinkHost(
  tables: Tables,
  platform: Pick<Platform, 'hostname' | 'publicUrl'>,
  text: string,
): boolean {
  const host = normaliseDomain(text);
  if (host === null) return false;
  if (host === trackHost(platform) || host === new URL(platform.publicUrl).hostname) return true;
  const usualPrefix = linkHost('');
  return (
    tables.domains.isTrackingDomain(host) ||
    (host.startsWith(usualPrefix) && tables.domains.isRegistered(host.slice(usualPrefix.length)))
  );
}

/** The host of `public.url`; null when it is no name that a certificate can be for. */
export function publicHost({ publicUrl }: Pick<Platform, 'publicUrl'>): string | null {
  return normaliseDomain(new URL(publicUrl).hostname);
}

/**
 * Whether a host leads where the platform's own link host does, by its addresses; false as well when that is not
 * known at present.
 */
export async function leadsHere(
  view: DnsView,
  platform: Pick<Platform, 'hostname'>,
  host: string,
): Promise<boolean> {
  const [theirs, ours] = await Promise.all([addressesOf(view, host), addressesOf(view, trackHost(platform))]);
  return (
    theirs.kind === 'records' &&
    ours.kind === 'records' &&
    theirs.records.some((address) => ours.records.includes(address))
  );
}
