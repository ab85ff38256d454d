import type { DeliveryRoute } from '../../config/setting-types.ts';
import { type Random, shuffled } from '../../core/random.ts';
import { DnsError } from '../../dns/dns-error.ts';
import type { Resolver } from '../../dns/resolver.ts';
import type { LocalFailure } from '../../mail/classify/classify.ts';

export const FAILURE_TTL_SECONDS = 60;

export interface Exchanger {
  name: string;
  preference: number;
}

export type MailExchangers =
  | {
      kind: 'exchangers';
      exchangers: Exchanger[];
      ttl: number;
      implicit: boolean;
      /** Whether DNSSEC secures the MX records, or there are none. */
      secure: boolean;
      /** The destination, or the name at the end of its CNAMEs. */
      name: string;
    }
  | RouteFailure;

/** A destination has no route, or none is known now. */
export interface RouteFailure {
  kind: 'failure';
  failure: LocalFailure;
  /** The next hop that cannot be used; null: the MX hosts of the destination. */
  route: DeliveryRoute | null;
  /** Seconds. */
  ttl: number;
}

/** MX hosts by preference, equal ones shuffled; the domain itself if there is no MX record (RFC 5321 §5.1). */
export async function mailExchangers(
  resolver: Resolver,
  destination: string,
  random: Random,
): Promise<MailExchangers> {
  try {
    const { records, ttl, authenticated: secure, name } = await resolver.mx(destination);
    // RFC 7505: a single MX record whose name is the root.
    if (records.every(({ exchange }) => exchange === '')) return failure('null-mx', ttl);
    const exchangers = shuffled(random, records)
      .filter(({ exchange }) => exchange !== '')
      .map(({ exchange, preference }) => ({ name: exchange, preference }))
      .sort((a, b) => a.preference - b.preference);
    return { kind: 'exchangers', exchangers, ttl, implicit: false, secure, name };
  } catch (error) {
    if (!(error instanceof DnsError)) throw error;
    if (error.code === 'ENOTFOUND' || error.code === 'EBADNAME')
      return failure('no-such-domain', FAILURE_TTL_SECONDS);
    if (!error.absent) return failure('dns-trouble', FAILURE_TTL_SECONDS);
    return {
      kind: 'exchangers',
      exchangers: [{ name: destination, preference: 0 }],
      ttl: FAILURE_TTL_SECONDS,
      implicit: true,
      // In a signed zone only a secure answer denies a record, and its addresses must be secure, too.
      secure: true,
      name: destination,
    };
  }
}

/** Removes this server and the hosts that are not preferred to it, which would return the mail (RFC 5321 §5.1). */
export function withoutSelf(exchangers: readonly Exchanger[], isSelf: (name: string) => boolean): string[] {
  const limit = Math.min(
    ...exchangers.filter(({ name }) => isSelf(name)).map(({ preference }) => preference),
  );
  return exchangers.filter(({ preference }) => preference < limit).map(({ name }) => name);
}

/** Like `withoutSelf`, but finds this server by its addresses: an MX record may name it by another name. */
export function preferredToSelf<Host extends { name: string }>(
  resolved: readonly Host[],
  exchangers: readonly Exchanger[],
  isSelf: (host: Host) => boolean,
): Host[] {
  const selves = new Set(resolved.filter(isSelf).map(({ name }) => name));
  if (selves.size === 0) return [...resolved];
  const preferred = withoutSelf(exchangers, (name) => selves.has(name));
  return resolved.filter(({ name }) => preferred.includes(name));
}

/**
 * `ttl`: seconds for which the failure is cached. `route`: the next hop that cannot be used; null: the hosts of the
 * destination.
 */
export function failure(name: LocalFailure, ttl: number, route: DeliveryRoute | null = null): RouteFailure {
  return { kind: 'failure', failure: name, route, ttl };
}
