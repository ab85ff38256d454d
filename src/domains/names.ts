import { getPublicSuffix, parse } from 'tldts';
import { invalid, type Refusal } from '../core/refusal.ts';
import { normalizeDomain } from '../mail/address.ts';

/**
 * Which names may be registered as sending domains, and what the names below one are called. Knows no DNS: a
 * name that nobody has registered anywhere is accepted here and simply never verifies.
 */

/** Longest name put in front of a domain for one of its records: `<selector>._domainkey.`. */
const LONGEST_PREFIX = 'pr00000000._domainkey.'.length;
const MAX_NAME = 253;

const EXAMPLE = 'such as "example.com"';

/**
 * The domain as the house keeps it: A-labels, lower case, no trailing dot. Refused is whatever cannot be
 * somebody's domain: also a public suffix, of the ICANN part of the list (`co.uk`) as of its private part
 * (`github.io`), because strangers share the names below it. A top-level domain that the list does not know
 * is taken.
 */
export function registrableDomain(text: string): string | Refusal {
  const given = text.trim();
  const name = normalizeDomain(given);
  if (name === null) return invalid('domain', faultOf(given));
  if (isPublicSuffix(name)) {
    return invalid('domain', `"${name}" is a public suffix, under which others register their own domains`);
  }
  if (name.length + LONGEST_PREFIX > MAX_NAME) {
    return invalid(
      'domain',
      `is too long: its own records need ${LONGEST_PREFIX} characters more, and a name has at most ${MAX_NAME}`,
    );
  }
  return name;
}

/** A host for tracked links: below `domain`, and none of the names that carry its other records. */
export function trackingDomainUnder(domain: string, text: string): string | Refusal {
  const name = normalizeDomain(text.trim());
  if (name === null) return invalid('trackingDomain', `must be a host name such as "links.${domain}"`);
  if (!name.endsWith(`.${domain}`)) return invalid('trackingDomain', `must be a subdomain of ${domain}`);
  if (name === returnPathHost(domain)) {
    return invalid('trackingDomain', `${name} takes the bounces: a CNAME cannot stand beside its MX record`);
  }
  return name;
}

/** Where bounces and complaints go. */
export function returnPathHost(domain: string): string {
  return `return-a.${domain}`;
}

/** The default link host of a domain. */
export function linkHost(domain: string): string {
  return `link.${domain}`;
}

function isPublicSuffix(name: string): boolean {
  const { isIcann, isPrivate } = parse(name, { allowPrivateDomains: true });
  // For a name under a top-level domain that the list does not know, tldts guesses: neither flag is set.
  return (
    (isIcann === true || isPrivate === true) && getPublicSuffix(name, { allowPrivateDomains: true }) === name
  );
}

/** In words, the likeliest thing wrong with what is no domain name. */
function faultOf(text: string): string {
  const bare = text.endsWith('.') ? text.slice(0, -1) : text;
  if (bare === '') return `must be a domain name ${EXAMPLE}`;
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(bare)) return `must be the name alone ${EXAMPLE}, without the protocol`;
  if (bare.includes('@')) return `must be the part after the "@" ${EXAMPLE}`;
  if (/[/?#]/.test(bare)) return `must be the name alone ${EXAMPLE}, without a path`;
  if (/^\[|^[\da-f]*:[\da-f:]*:|^[\d.]+$|^0x/i.test(bare))
    return `must be a domain name ${EXAMPLE}, not an IP address`;
  if (/:\d*$/.test(bare)) return `must be the name alone ${EXAMPLE}, without a port`;
  if (/\s/.test(bare)) return 'must not hold blanks';
  if (!/[.。．｡]/.test(bare)) return `must have at least two labels ${EXAMPLE}`;
  if (bare.length > MAX_NAME) return `must have at most ${MAX_NAME} characters`;
  if (bare.split('.').some((label) => label.length > 63)) return 'no label may be longer than 63 characters';
  return `must be a domain name ${EXAMPLE}: letters, digits and "-" in labels that neither begin nor end with "-"`;
}
