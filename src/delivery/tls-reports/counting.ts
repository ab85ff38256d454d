import { type Clock, DAY, HOUR, MINUTE } from '../../core/clock.ts';
import type { Log } from '../../core/log.ts';
import { createLru } from '../../core/lru.ts';
import { DnsError } from '../../dns/dns-error.ts';
import type { Resolver } from '../../dns/resolver.ts';
import type { Tables } from '../../store/tables.ts';
import type { TlsSessionKey } from '../../store/tls/tls-sessions.ts';
import type { DestinationTls } from '../tls/host-policies.ts';
import type { DanePolicy, SessionRecord, TargetHost, TlsFailureType } from '../worker/protocol.ts';
import { parseReportRecord, type ReportTarget } from './report-record.ts';

/**
 * Counts TLS sessions for the domains that want reports (RFC 8460). A domain of which that is not known yet counts: its
 * record is looked up meanwhile, and again before a report is sent.
 */
export interface TlsCounting {
  /** Counts the sessions of an attempt that began with TLS or needed it. Call inside the unit of work of its result. */
  count(tables: Tables, attempt: CountedAttempt): void;
  /** Where the domain wants reports now; empty: nowhere. Null: its record cannot be looked up. */
  targets(domain: string): Promise<ReportTarget[] | null>;
}

export interface CountedAttempt {
  /** The recipients' domain. */
  destination: string;
  hosts: readonly TargetHost[];
  tls: DestinationTls;
  sessions: readonly SessionRecord[];
}

export interface TlsCountingDeps {
  clock: Clock;
  /** For durations: setting the system clock does not change it. */
  monotonic: Clock;
  log: Log;
  resolver: Pick<Resolver, 'txt'>;
  /** Read at each use: a reload changes it. */
  readonly isOn: boolean;
}

const MAX_KNOWN = 50_000;
const KNOWN_MS = HOUR;
const UNKNOWN_MS = 5 * MINUTE;
const MAX_REASON_LENGTH = 200;

/**
 * Caches for 50,000 domains whether they want reports: for an hour, after a failed lookup for 5 minutes. A lookup that
 * `count` begins is not awaited. `count` has no effect while `isOn` is false.
 */
export function createTlsCounting(deps: TlsCountingDeps): TlsCounting {
  const { clock, monotonic, log, resolver } = deps;
  const known = createLru<{ wants: boolean; until: number }>(MAX_KNOWN);

  async function targets(domain: string): Promise<ReportTarget[] | null> {
    let found: ReportTarget[] | null;
    try {
      const { records } = await resolver.txt(`_smtp._tls.${domain}`, { owner: 'TLS reports' });
      found = parseReportRecord(records.map((strings) => strings.join('')));
    } catch (error) {
      if (!(error instanceof DnsError)) throw error;
      found = error.absent || error.code === 'EBADNAME' ? [] : null;
    }
    const until = monotonic.now() + (found === null ? UNKNOWN_MS : KNOWN_MS);
    known.set(domain, { wants: found === null || found.length > 0, until });
    return found;
  }

  function wantsReports(domain: string): boolean {
    const found = known.get(domain);
    if (found !== undefined && found.until > monotonic.now()) return found.wants;
    // Until the answer arrives, and so that only one lookup is made.
    known.set(domain, { wants: true, until: monotonic.now() + UNKNOWN_MS });
    targets(domain).catch((error: unknown) =>
      log.error({ err: error, domain }, 'TLSRPT record could not be looked up'),
    );
    return true;
  }

  return {
    targets,
    count: (tables, attempt) => {
      const { destination, sessions } = attempt;
      if (!deps.isOn || sessions.every(({ tlsResult }) => tlsResult === undefined)) return;
      if (!wantsReports(destination)) return;
      const day = dayNumberOf(clock.now());
      for (const session of sessions) {
        if (session.tlsResult === undefined) continue;
        const { key, failure } = reported(attempt, session);
        const details = {
          source_ip: session.localAddress ?? '',
          receiving_host: session.host,
          receiving_ip: session.address,
          reason: session.tlsResult.reason.slice(0, MAX_REASON_LENGTH),
        };
        tables.tlsSessions.count(
          { day, domain: destination, ...key },
          failure === null ? null : { type: failure, ...details },
        );
      }
    },
  };
}

/** Days since 1970-01-01, UTC. */
export function dayNumberOf(epochMs: number): number {
  return Math.floor(epochMs / DAY);
}

type PolicyKey = Pick<TlsSessionKey, 'policy_type' | 'policy_domain' | 'policy'>;

/** The policy under which a session is reported (RFC 8460 §4.4), and its failure. */
function reported(
  { destination, hosts, tls }: CountedAttempt,
  { host, tlsResult }: SessionRecord,
): { key: PolicyKey; failure: TlsFailureType | null } {
  const failure = tlsResult?.failure ?? null;
  const policy = hosts.find(({ name }) => name === host)?.policy;
  if (policy?.kind === 'dane') return { key: daneKey(policy), failure };
  const published = { policy_domain: destination, policy: JSON.stringify(tls.sts ?? NOTHING_PUBLISHED) };
  if (tls.sts !== null) return { key: { ...published, policy_type: 'sts' }, failure };
  // §4.3.2.2: the domain announces a policy that cannot be obtained.
  if (tls.fault !== null) return { key: { ...published, policy_type: 'sts' }, failure: tls.fault.type };
  return { key: { ...published, policy_type: 'no-policy-found' }, failure };
}

/** What was published, as stored. */
export interface PublishedPolicy {
  lines: string[];
  mx: string[];
}

const NOTHING_PUBLISHED: PublishedPolicy = { lines: [], mx: [] };

function daneKey({ base, records }: DanePolicy): PolicyKey {
  const lines = records.map(({ usage, selector, matchingType, data }) =>
    [usage, selector, matchingType, data].join(' '),
  );
  const published: PublishedPolicy = { lines: lines.sort(), mx: [] };
  return { policy_type: 'tlsa', policy_domain: base, policy: JSON.stringify(published) };
}
