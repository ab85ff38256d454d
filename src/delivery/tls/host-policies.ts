import { lookupsOf, type Resolver } from '../../dns/resolver.ts';
import type { HostPolicy, PolicyFault } from '../worker/protocol.ts';
import { type DaneHost, type DaneNextHop, lookUpDane, NO_DANE } from './dane.ts';
import type { StsLookup, StsPolicies } from './sts-policies.ts';
import { isInPolicy, policyLines, type StsPolicy } from './sts-policy.ts';

/**
 * The TLS policies of a destination and its hosts. A host with TLSA records is verified by them; MTA-STS applies to the
 * others (RFC 8461 §2).
 */
export interface TlsPolicies {
  /** The MTA-STS policy of a destination, for mail of the account. Never rejects. */
  ofDestination(domain: string, accountId: string): Promise<StsLookup>;
  /** The policy of one host of the destination, and for how many seconds it is valid. */
  ofHost(
    domain: string,
    sts: StsPolicy | null,
    host: DaneHost,
    nextHop: DaneNextHop & { accountId: string },
  ): Promise<{ policy: HostPolicy | null; ttl: number }>;
}

/** What is published for a destination, for the reports to it (RFC 8460). */
export interface DestinationTls {
  /** The policy as in a report; null: the domain has none. */
  sts: { lines: string[]; mx: string[] } | null;
  /** Why the announced policy is not known. */
  fault: PolicyFault | null;
}

export interface TlsPoliciesDeps {
  resolver: Resolver;
  sts: Pick<StsPolicies, 'of'>;
  /** These are read at each use: a reload changes them. */
  readonly mtaSts: boolean;
  readonly dane: boolean;
  readonly port: number;
}

const NO_STS: StsLookup = { policy: null, fault: null };

/**
 * Caches nothing: TLSA records are queried for each host, policies of MTA-STS are those of `sts`. While `mtaSts` or
 * `dane` is false, nothing is queried for it and no policy of that kind applies.
 */
export function createTlsPolicies(deps: TlsPoliciesDeps): TlsPolicies {
  const { resolver, sts: policies } = deps;
  return {
    ofDestination: async (domain, accountId) => (deps.mtaSts ? policies.of(domain, accountId) : NO_STS),
    ofHost: async (domain, sts, host, nextHop) => {
      const lookups = lookupsOf(resolver, nextHop.accountId);
      const dane = deps.dane ? await lookUpDane(lookups, host, deps.port, nextHop) : NO_DANE;
      return { policy: dane.policy ?? stsPolicyOf(domain, sts, host.name), ttl: dane.ttl };
    },
  };
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
