import { getPublicSuffix, parse } from 'tldts';
import { invalid, type Refusal } from '../core/refusal.ts';
import { normalizeDomain } from '../mail/address.ts';

/*
 * The names that may be registered as sending domains, and the names of their records. DNS is not queried: a name that is
 * not delegated can be registered, but never verified.
 */

/** Length of the longest prefix of a domain in the name of one of its records: `<selector>._domainkey.`. */
const LONGEST_PREFIX = 'pr00000000._domainkey.'.length;
const MAX_NAME = 253;

const EXAMPLE = 'such as "example.com"';

/**
 * The domain in its canonical form: A-labels, lower case, no trailing dot. Refuses invalid names, and public suffixes of
 * the ICANN part of the Public Suffix List (`co.uk`) and of its private part (`github.io`). Accepts names under top-level
 * domains that are not on the list.
 */
export function registrableDomain(text: string): string | Refusal {
  const input = text.trim();
  const name = normalizeDomain(input);
  if (name === null) return invalid('domain', faultOf(input));
  if (isPublicSuffix(name)) {
    return invalid('domain', `"${name}" is a public suffix, under which others register their own domains`);
  }
  if (name.length + LONGEST_PREFIX > MAX_NAME) {
    return invalid(
      'domain',
      `is too long: its records need ${LONGEST_PREFIX} characters more, and a name has at most ${MAX_NAME}`,
    );
  }
  return name;
}

/** A host for tracked links: below `domain`, and not the return path. */
export function trackingDomainUnder(domain: string, text: string): string | Refusal {
  const name = normalizeDomain(text.trim());
  if (name === null) return invalid('trackingDomain', `must be a host name such as "links.${domain}"`);
  if (!name.endsWith(`.${domain}`)) return invalid('trackingDomain', `must be a subdomain of ${domain}`);
  if (name === returnPathHost(domain)) {
    return invalid(
      'trackingDomain',
      `${name} receives the bounces: a name with an MX record cannot have a CNAME`,
    );
  }
  return name;
}

const RETURN_PATH_PREFIX = 'return-a.';

/** The host of a domain's return path: bounces, complaints and reports are sent to it. */
export function returnPathHost(domain: string): string {
  return `${RETURN_PATH_PREFIX}${domain}`;
}

/** The domain whose return path is `host`; null when the name is not that of a return path. */
export function returnPathDomain(host: string): string | null {
  return host.startsWith(RETURN_PATH_PREFIX) ? host.slice(RETURN_PATH_PREFIX.length) : null;
}

/** The address for DMARC aggregate reports on a domain. */
export function reportAddress(domain: string): string {
  return `dmarc@${returnPathHost(domain)}`;
}

const STS_PREFIX = 'mta-sts.';

/** The host of the MTA-STS policy of a domain's return path (RFC 8461 §3.3). */
export function stsPolicyHost(domain: string): string {
  return `${STS_PREFIX}${returnPathHost(domain)}`;
}

/** The domain of a policy host; null when the name is not that of one. */
export function stsPolicyDomain(host: string): string | null {
  return host.startsWith(STS_PREFIX) ? returnPathDomain(host.slice(STS_PREFIX.length)) : null;
}

const LINK_PREFIX = 'link.';

/** The default link host of a domain. */
export function linkHost(domain: string): string {
  return `${LINK_PREFIX}${domain}`;
}

/** The domain whose default link host is `host`; null when the name is not that of a link host. */
export function linkHostDomain(host: string): string | null {
  return host.startsWith(LINK_PREFIX) ? host.slice(LINK_PREFIX.length) : null;
}

function isPublicSuffix(name: string): boolean {
  const { isIcann, isPrivate } = parse(name, { allowPrivateDomains: true });
  // For a top-level domain that the list does not have, tldts guesses: neither flag is set.
  return (
    (isIcann === true || isPrivate === true) && getPublicSuffix(name, { allowPrivateDomains: true }) === name
  );
}

/** A phrase on the most likely fault of an invalid domain name. */
function faultOf(text: string): string {
  const bare = text.endsWith('.') ? text.slice(0, -1) : text;
  if (bare === '') return `must be a domain name ${EXAMPLE}`;
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(bare)) return `must be the name alone ${EXAMPLE}, without the protocol`;
  if (bare.includes('@')) return `must be the part after the "@" ${EXAMPLE}`;
  if (/[/?#]/.test(bare)) return `must be the name alone ${EXAMPLE}, without a path`;
  if (/^\[|^[\da-f]*:[\da-f:]*:|^[\d.]+$|^0x/i.test(bare))
    return `must be a domain name ${EXAMPLE}, not an IP address`;
  if (/:\d*$/.test(bare)) return `must be the name alone ${EXAMPLE}, without a port`;
  if (/\s/.test(bare)) return 'must not contain spaces';
  if (!/[.。．｡]/.test(bare)) return `must have at least two labels ${EXAMPLE}`;
  if (bare.length > MAX_NAME) return `must have at most ${MAX_NAME} characters`;
  if (bare.split('.').some((label) => label.length > 63))
    return 'must not have a label longer than 63 characters';
  return `must be a domain name ${EXAMPLE}: letters, digits and "-" in labels that neither begin nor end with "-"`;
}
