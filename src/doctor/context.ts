import type { DnsView } from '../dns/dns-view.ts';
import type { Resolver } from '../dns/resolver.ts';
import type { SourceAddress } from '../domains/platform/egress-addresses.ts';
import type { Platform } from '../domains/platform/platform.ts';
import type { CheckResults } from '../domains/verification/checks.ts';
import type { Context } from '../store/context.ts';
import type { DkimKeyRow, DomainRow } from '../store/domains/domains.ts';
import type { Reader } from '../store/readers/reads.ts';
import type { Tables } from '../store/tables.ts';
import type { Result } from './finding.ts';
import type { DoctorState } from './state.ts';

/** One check: an entry of the table in checks.ts. */
export interface Check {
  /** Stable: `reverse-dns`. */
  id: string;
  /** For people: `Reverse DNS`. */
  title: string;
  group: CheckGroup;
  /** Without this the check does not run, and its finding is unknown. */
  needs?: 'database' | 'daemon';
  /** Ms; default: CHECK_TIMEOUT_MS in run.ts. */
  timeoutMs?: number;
  run(context: DoctorContext): Promise<Result | Result[]>;
}

/** In the order of the report. */
export const CHECK_GROUPS = ['Machine', 'Network', 'Platform DNS', 'Domains', 'Database', 'Work'] as const;
export type CheckGroup = (typeof CHECK_GROUPS)[number];

/** What the daemon reports about itself. */
export interface DaemonReport {
  /** The checks of `/readyz`. */
  checks: readonly {
    check: string;
    ok: boolean;
    message?: string | undefined;
    details?: Record<string, unknown> | undefined;
  }[];
  /** The first value of each metric. */
  metrics: ReadonlyMap<string, number>;
}

export type DaemonState =
  | { kind: 'running'; pid: number | null; report: DaemonReport }
  /** A daemon has the lock of the data directory, but its API does not answer. */
  | { kind: 'unreachable'; pid: number | null; reason: string }
  | { kind: 'stopped' }
  /** Whether it runs cannot be determined. */
  | { kind: 'unknown'; reason: string };

/** Tables of which a check reads few rows. */
export type DoctorTables = Pick<
  Tables,
  'dkimKeys' | 'egressCounts' | 'egressHealth' | 'egressWarmup' | 'settings'
>;

export type DatabaseState =
  | { kind: 'open'; tables: DoctorTables; reader: Reader }
  /** `finding`: why it could not be opened. */
  | { kind: 'closed'; finding: Result };

/** The machine as checks see it; tests replace parts of it. */
export interface Machine {
  /** Without "v". */
  nodeVersion: string;
  /** Null: the system has no user ids. */
  uid: number | null;
  /** Addresses of its network interfaces. */
  addresses(): string[];
  /** The port on which other servers deliver mail to `hostname`. */
  mxPort: number;
  /** The port on which name servers of the zone answer. */
  dnsPort: number;
  /** The master key that systemd gives to the service; exists while the service runs with it (systemd.exec(5), LoadCredential). */
  serviceKeyFile: string;
  /** Certificate authorities for the public pages, PEM; undefined: the built-in ones. */
  authorities?: string | undefined;
}

/** What a run receives. */
export interface DoctorParts extends Pick<Context, 'clock' | 'config' | 'monotonic' | 'random'> {
  resolver: Resolver;
  database: DatabaseState;
  daemon(signal: AbortSignal): Promise<DaemonState>;
  machine: Machine;
}

export interface DoctorOptions {
  /** Only this domain; null: those with the most severe problems. */
  domain: string | null;
  /** Maximum number of domains that are examined. */
  maxDomains: number;
  /** Time limit of the integrity check. */
  integrityMs: number;
}

/** Shared by the checks of one run; each part is determined once. */
export interface DoctorContext extends Omit<DoctorParts, 'daemon'>, DoctorOptions {
  /** Of the check: aborts at its time limit. */
  signal: AbortSignal;
  view: DnsView;
  platform: Platform;
  /** Rejects when the database is closed; checks that call it need it. */
  state(): Promise<DoctorState>;
  daemon(): Promise<DaemonState>;
  /** Source addresses of mail, at most MAX_SOURCES; empty: none is known. */
  sources(): Promise<SourceAddress[]>;
  /** The domains with the results of their DNS checks. */
  domains(): Promise<ExaminedDomain[]>;
}

export interface ExaminedDomain {
  row: DomainRow;
  keys: readonly DkimKeyRow[];
  results: CheckResults;
}
