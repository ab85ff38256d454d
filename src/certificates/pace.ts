import { DAY, HOUR, MINUTE } from '../core/clock.ts';
import { organizationalDomain } from '../mail/address.ts';
import type { Tables } from '../store/tables.ts';

/*
 * Limits on orders. Let's Encrypt, the strictest of the common authorities, allows 5 failed validations an hour for a
 * name and 300 orders in three hours: these limits stay far below, whatever fails here.
 */

/** Orders of all names. */
export const MAX_ORDERS_PER_HOUR = 50;
/** The part of MAX_ORDERS_PER_HOUR that is reserved for renewals and for the platform's own name. */
export const RESERVED_ORDERS = 20;
/** New names below one registrable domain, so that the names of one domain do not delay all others. */
export const MAX_NEW_NAMES_PER_HOUR = 5;
/** New names of one account: a third of what all accounts have. */
export const MAX_NEW_NAMES_OF_ACCOUNT = 10;

/** Pause before a name that did not lead here is tried again; nothing was sent to the authority. */
export const POSTPONED_MS = 10 * MINUTE;

const FIRST_RETRY_MS = 10 * MINUTE;
const MAX_RETRY_MS = DAY;
const RENEW_BEFORE_MS = 30 * DAY;

/** Pause of all orders after a rate limit for which the authority stated no time. */
export const RATE_LIMIT_PAUSE_MS = HOUR;
/** The longest window of the common authorities' rate limits; a longer Retry-After is not plausible. */
export const MAX_RATE_LIMIT_PAUSE_MS = 7 * DAY;

/** Ms until a name is tried again after this number of failures: ten minutes, an hour, then doubled up to a day. */
export function retryDelay(failures: number): number {
  return failures <= 1 ? FIRST_RETRY_MS : Math.min(MAX_RETRY_MS, HOUR * 2 ** (failures - 2));
}

/** Epoch ms: 30 days before the expiry; with a lifetime of less than 90 days, after two thirds of it. */
export function renewalTime(validity: { notBefore: number; notAfter: number }): number {
  const lifetime = validity.notAfter - validity.notBefore;
  return validity.notAfter - Math.min(RENEW_BEFORE_MS, lifetime / 3);
}

/** Setting: the end of a pause of all orders, epoch ms. */
export const PAUSED_UNTIL = 'certificates-hold';

/**
 * Why no certificate may be ordered for the host now; null: an order is allowed. `ownerOf`: the account of a host, null for
 * the platform's own.
 */
export function orderBlock(
  { certificates, settings }: Tables,
  host: string,
  { isNew, now, ownerOf }: { isNew: boolean; now: number; ownerOf(host: string): string | null },
): 'not-due' | 'paused' | 'domain-limit' | 'account-limit' | 'hourly-limit' | null {
  if ((certificates.get(host)?.due_at ?? 0) > now) return 'not-due';
  if (Number(settings.get(PAUSED_UNTIL) ?? 0) > now) return 'paused';
  const since = now - HOUR;
  if (isNew && certificates.triedBelow(organizationalDomain(host), since) >= MAX_NEW_NAMES_PER_HOUR)
    return 'domain-limit';
  const owner = isNew ? ownerOf(host) : null;
  const isSameOwner = (other: string) => ownerOf(other) === owner;
  if (
    owner !== null &&
    certificates.hostsTriedSince(since).filter(isSameOwner).length >= MAX_NEW_NAMES_OF_ACCOUNT
  )
    return 'account-limit';
  const limit = isNew ? MAX_ORDERS_PER_HOUR - RESERVED_ORDERS : MAX_ORDERS_PER_HOUR;
  return certificates.triedSince(since) >= limit ? 'hourly-limit' : null;
}
