import { isIP } from 'node:net';
import { COMMON_HEADERS, type PublicResponse } from './response.ts';

/*
 * The pages with a form are shown under the platform's own host and the link hosts of the account only: under the name of
 * another account they would be a page of that account about mail of others.
 */

export interface PageHosts {
  /** `public.url`. */
  publicUrl(): string;
  /** `hostname`. */
  hostname: string;
  /** The account whose domain has this link host; null: none. */
  ownerOfHost(host: string): string | null;
}

/**
 * Whether pages of the account are shown under a host. An address or a name without a dot is nobody's: a proxy that does not
 * pass on the name of the request uses one.
 */
export function isOwnHost(hosts: PageHosts, host: string, accountId: string): boolean {
  if (isIP(host.replace(/^\[|\]$/g, '')) !== 0 || !host.includes('.')) return true;
  const platform = [new URL(hosts.publicUrl()).hostname, hosts.hostname];
  return platform.includes(host) || hosts.ownerOfHost(host) === accountId;
}

/** The same page under the platform's own host: links under a host that has lost its owner still work. */
export function redirectToPlatform({ publicUrl }: PageHosts, path: string): PublicResponse {
  return { status: 302, headers: { ...COMMON_HEADERS, Location: `${publicUrl()}${path}` }, body: '' };
}
