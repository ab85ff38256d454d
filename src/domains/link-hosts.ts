import { normaliseDomain } from '../mail/address.ts';
import type { Tables } from '../store/tables.ts';
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
