import { isIP } from 'node:net';
import type { Config } from '../config/schema.ts';
import { readCertificatesFile } from '../core/tls-pair.ts';
import { DnsError } from '../dns/dns-error.ts';
import { lookupsOf, type Resolver, type TlsaRecord } from '../dns/resolver.ts';
import type { Context } from '../store/context.ts';
import {
  isInPolicy,
  NO_POLICY,
  policyLines,
  type StsLookup,
  type StsPolicies,
  type StsPolicy,
} from './mta-sts.ts';
import type { DanePolicy, HostPolicy, PolicyFault, TlsaAssociation } from './worker/protocol.ts';

/** What is published for a destination, for the reports to it (RFC 8460). */
export interface DestinationTls {
  /** The policy as in a report; null: the domain has none. */
  sts: { lines: string[]; mx: string[] } | null;
  /** Why the announced policy is not known. */
  fault: PolicyFault | null;
}

export type TlsPolicies = ReturnType<typeof createTlsPolicies>;

/**
 * The TLS policies of a destination and its hosts. A host with TLSA records is verified by them; MTA-STS applies to the
 * others (RFC 8461 §2). Caches nothing: TLSA records are queried for each host, policies of MTA-STS are those of `sts`.
 * While `delivery.tls.mtaSts` or `dane` is false, nothing is queried for it and no policy of that kind applies.
 */
export function createTlsPolicies(
  { config: { delivery } }: Pick<Context, 'config'>,
  { resolver, sts: policies }: { resolver: Resolver; sts: Pick<StsPolicies, 'of'> },
) {
  /** The MTA-STS policy of a destination, for mail of the account. Never rejects. */
  async function ofDestination(domain: string, accountId: string): Promise<StsLookup> {
    return delivery.tls.mtaSts ? policies.of(domain, accountId) : NO_POLICY;
  }

  /** The policy of one host of the destination, and for how many seconds it is valid. */
  async function ofHost(
    domain: string,
    sts: StsPolicy | null,
    host: DaneHost,
    nextHop: DaneNextHop & { accountId: string },
  ): Promise<{ policy: HostPolicy | null; ttl: number }> {
    const lookups = lookupsOf(resolver, nextHop.accountId);
    const dane = delivery.tls.dane ? await lookUpDane(lookups, host, delivery.port, nextHop) : NO_DANE;
    return { policy: dane.policy ?? stsPolicyOf(domain, sts, host.name), ttl: dane.ttl };
  }

  return { ofDestination, ofHost };
}

/** For a report. */
export function publishedTls({ policy, fault }: StsLookup): DestinationTls {
  const isActive = policy !== null && policy.mode !== 'none';
  return { sts: isActive ? { lines: policyLines(policy), mx: policy.mx } : null, fault };
}

function stsPolicyOf(domain: string, policy: StsPolicy | null, host: string): HostPolicy | null {
  if (policy === null || policy.mode === 'none') return null;
  const { mode } = policy;
  if (isInPolicy(policy, host)) return { kind: 'mta-sts', domain, mode };
  const text = `${host} is not a mail host in the MTA-STS policy of ${domain}, which permits ${policy.mx.slice(0, 5).join(', ')}`;
  return { kind: 'mta-sts', domain, mode, fault: { type: 'validation-failure', text } };
}

/** The hosts that the policy permits; all of them if it permits none, so that each shows the reason. */
export function permittedHosts(names: readonly string[], policy: StsPolicy | null): readonly string[] {
  if (policy?.mode !== 'enforce') return names;
  const permitted = names.filter((name) => isInPolicy(policy, name));
  return permitted.length > 0 ? permitted : names;
}

/** An MX host with the state of its addresses in DNS. */
export interface DaneHost {
  name: string;
  /** The name at the end of the CNAMEs of the host; the host's own name without any. */
  canonical: string;
  /** Whether DNSSEC secures its addresses, CNAMEs included. */
  secure: boolean;
}

/** How the host was found. */
interface DaneNextHop {
  /** The recipients' domain, and the name at the end of its CNAMEs if it has any. */
  names: string[];
  /** Whether DNSSEC secures the MX records; also true if the domain has none and is the host itself. */
  secure: boolean;
}

interface DaneLookup {
  policy: DanePolicy | null;
  /** Seconds for which the answer is valid. */
  ttl: number;
}

/** DANE does not apply; its TTL does not limit that of the route. */
const NO_DANE: DaneLookup = { policy: null, ttl: 3600 };
const FAILURE_TTL_SECONDS = 60;

/**
 * The TLSA records of a host at a port (RFC 7672 §2.2). Null: DANE does not apply to it. Lookups are made only below names
 * that are secure, because name servers of other zones may not answer them (§2.2.2). A lookup that fails excludes the
 * host: an attacker might suppress the answer (§2.1.2).
 */
async function lookUpDane(
  resolver: Resolver,
  host: DaneHost,
  port: number,
  nextHop: DaneNextHop,
): Promise<DaneLookup> {
  if (!nextHop.secure || isIP(host.name) !== 0) return NO_DANE;
  try {
    for (const base of await baseDomains(resolver, host)) {
      const tlsaName = `_${port}._tcp.${base}`;
      const found = await secureTlsa(resolver, tlsaName);
      if (found === null) continue;
      const ttl = Math.min(NO_DANE.ttl, found.ttl);
      const names = [...new Set([base, ...nextHop.names, host.name])];
      const records = found.records.flatMap((record) => associationOf(record) ?? []);
      return { policy: { kind: 'dane', base, tlsaName, names, records }, ttl };
    }
    return NO_DANE;
  } catch (error) {
    if (!(error instanceof DnsError)) throw error;
    const tlsaName = `_${port}._tcp.${host.name}`;
    const text = `${host.name}: the TLSA records of ${tlsaName} could not be looked up (${error.code}); mail is sent only if DNSSEC proves that there are none`;
    const fault = { type: 'dnssec-invalid', text } as const;
    return {
      policy: { kind: 'dane', base: host.name, tlsaName, names: [], records: [], fault },
      ttl: FAILURE_TTL_SECONDS,
    };
  }
}

/** The candidates for the TLSA base domain in their order (RFC 7672 §2.2.2): the end of the CNAMEs, then the host's name. */
async function baseDomains(resolver: Resolver, { name, canonical, secure }: DaneHost): Promise<string[]> {
  if (canonical === name) return secure ? [name] : [];
  if (secure) return [canonical, name];
  // Only the end of the chain is insecure if the first CNAME is secure.
  const { authenticated } = await resolver.cname(name);
  return authenticated ? [name] : [];
}

/** Null: there are none, or DNSSEC does not secure them. */
async function secureTlsa(
  resolver: Resolver,
  name: string,
): Promise<{ records: TlsaRecord[]; ttl: number } | null> {
  try {
    const answer = await resolver.tlsa(name);
    return answer.authenticated ? answer : null;
  } catch (error) {
    if (error instanceof DnsError && error.absent) return null;
    throw error;
  }
}

/** Bytes of SHA-256 and SHA-512. */
const HASH_LENGTHS = { 1: 32, 2: 64 } as const;

/** Null: unusable for SMTP (RFC 7672 §3.1.3: usages 0 and 1) or unknown. */
export function associationOf({
  usage,
  selector,
  matchingType,
  certificate,
}: TlsaRecord): TlsaAssociation | null {
  if (usage !== 2 && usage !== 3) return null;
  if (selector !== 0 && selector !== 1) return null;
  if (matchingType !== 0 && matchingType !== 1 && matchingType !== 2) return null;
  const { length } = certificate;
  const isComplete = matchingType === 0 ? length > 0 : length === HASH_LENGTHS[matchingType];
  return isComplete ? { usage, selector, matchingType, data: certificate.toString('hex') } : null;
}

/** The certificates in `delivery.tls.caFile`, PEM. Throws an `OperatorFault` when it cannot be used. */
export function configuredAuthorities({ delivery: { tls } }: Pick<Config, 'delivery'>): string[] {
  return tls.caFile === undefined ? [] : [readCertificatesFile('delivery.tls.caFile', tls.caFile)];
}
