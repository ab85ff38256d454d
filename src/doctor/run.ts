import { setMaxListeners } from 'node:events';
import PQueue from 'p-queue';
import { adviceFor } from '../config/installations.ts';
import { SECOND } from '../core/clock.ts';
import { abortAfter, unlessAborted } from '../core/concurrency/abort.ts';
import { normalizeAddress } from '../dns/address-kinds.ts';
import { DnsError } from '../dns/dns-error.ts';
import { addressesOf, createDnsView } from '../dns/dns-view.ts';
import { mapLookups, type Resolver } from '../dns/resolver.ts';
import { createFileFetcher } from '../domains/platform/brand-files.ts';
import { sourceAddresses } from '../domains/platform/egress-addresses.ts';
import { createHttpsProbe } from '../domains/platform/https-probe.ts';
import { platformOf } from '../domains/platform/platform.ts';
import { runChecks as checkDomain } from '../domains/verification/checks.ts';
import { NO_ACCOUNT } from '../store/readers/reads.ts';
import type { Check, DoctorContext, DoctorOptions, DoctorParts, ExaminedDomain } from './context.ts';
import { AS_DAEMON, type Finding, type Result, unknown } from './finding.ts';
import { doctorState } from './state.ts';

/** Checks that run at the same time. */
const CONCURRENCY = 8;
const CHECK_TIMEOUT_MS = 20 * SECOND;

export interface Progress {
  done: number;
  total: number;
  /** Title of the check that has just ended. */
  title: string;
}

/**
 * Runs the checks and returns their findings in the order of the table. Each check has a time limit; the exception or
 * timeout of one becomes an `unknown` finding and does not affect the others. Rejects only when `signal` is aborted.
 */
export async function runChecks(
  checks: readonly Check[],
  deps: DoctorParts,
  options: DoctorOptions,
  { signal, onProgress }: { signal: AbortSignal; onProgress?: (progress: Progress) => void },
): Promise<Finding[]> {
  setMaxListeners(0, signal);
  const { context, close } = createContext(deps, options, signal);
  const queue = new PQueue({ concurrency: CONCURRENCY });
  let done = 0;
  try {
    const findings = await Promise.all(
      checks.map((check) =>
        queue.add(async () => {
          const found = await findingsOf(check, context, signal);
          onProgress?.({ done: ++done, total: checks.length, title: check.title });
          return found;
        }),
      ),
    );
    signal.throwIfAborted();
    return findings.flat();
  } finally {
    close();
  }
}

async function findingsOf(check: Check, shared: DoctorContext, signal: AbortSignal): Promise<Finding[]> {
  if (signal.aborted) return [];
  const timeoutMs = check.timeoutMs ?? CHECK_TIMEOUT_MS;
  // Ends with the check, so that neither its timer nor its listener on `signal` remains.
  const ended = new AbortController();
  signal.addEventListener('abort', () => ended.abort(signal.reason), { once: true, signal: ended.signal });
  const limit = abortAfter(timeoutMs, ended.signal);
  // Every connection in progress adds a listener: that is not a leak.
  setMaxListeners(0, limit);
  const withId = (result: Result): Finding => {
    const fix = result.fix === undefined ? {} : { fix: adviceFor(result.fix, shared.config.file) };
    return printable({ check: check.id, ...result, ...fix });
  };
  try {
    const missing = await missingPart(check, shared);
    if (missing !== null) return [withId(unknown(check.title, missing))];
    const results = await unlessAborted(check.run({ ...shared, signal: limit }), limit);
    return [results].flat().map(withId);
  } catch (error) {
    if (isDenied(error)) return [withId(unknown(check.title, `Not permitted: ${error.message}.`, AS_DAEMON))];
    const reason = limit.aborted
      ? `The check did not end within ${timeoutMs / SECOND} s.`
      : `The check itself failed: ${error instanceof Error ? error.message : String(error)}`;
    return [withId(unknown(check.title, reason))];
  } finally {
    ended.abort();
  }
}

function isDenied(error: unknown): error is Error {
  return error instanceof Error && 'code' in error && (error.code === 'EACCES' || error.code === 'EPERM');
}

const MAX_TEXT = 2000;

/** Removes control characters, which a terminal would interpret: findings quote DNS records and replies of other servers. */
function printable(finding: Finding): Finding {
  const clean = (text: string) =>
    text
      .replaceAll(/(?!\n)\p{Cc}/gu, ' ')
      .slice(0, MAX_TEXT)
      .toWellFormed();
  const { subject, reason, fix } = finding;
  const texts = {
    subject: clean(subject).replaceAll('\n', ' '),
    reason: clean(reason).replaceAll('\n', ' '),
  };
  return { ...finding, ...texts, ...(fix === undefined ? {} : { fix: clean(fix) }) };
}

/** Why the check cannot run; null: it can. */
async function missingPart({ needs }: Check, context: DoctorContext): Promise<string | null> {
  if (needs === 'database' && context.database.kind === 'closed')
    return 'Not checked: the database is not open.';
  if (needs === 'daemon' && (await context.daemon()).kind !== 'running')
    return 'Not checked: the daemon is not running or does not respond.';
  return null;
}

/** DNS lookups of one run. */
const MAX_LOOKUPS = 5000;
/** Source addresses that are examined. */
const MAX_SOURCES = 16;
/** Domains whose records are looked up at the same time. */
const DOMAIN_BATCH = 4;

/** The context of one run. `close` ends what is still in progress. */
function createContext(
  deps: DoctorParts,
  options: DoctorOptions,
  signal: AbortSignal,
): { context: DoctorContext; close(): void } {
  const ended = new AbortController();
  // Every lookup in progress adds a listener: that is not a leak.
  setMaxListeners(0, ended.signal);
  signal.addEventListener('abort', () => ended.abort(signal.reason), { once: true, signal: ended.signal });
  const resolver = limitLookups(deps.resolver, MAX_LOOKUPS, ended.signal);
  const view = createDnsView(resolver, { fresh: true });
  const platform = platformOf(deps.config);

  const state = once(async () => {
    if (deps.database.kind === 'closed') throw new Error('the database is not open');
    const { reader } = deps.database;
    return reader.query(NO_ACCOUNT, doctorState, options.domain, options.maxDomains);
  });
  const sources = once(async () => {
    const host = await addressesOf(view, platform.hostname);
    const known = sourceAddresses(platform, host.kind === 'records' ? host.records : []);
    return known
      .slice(0, MAX_SOURCES)
      .map(({ address, name }) => ({ address: normalizeAddress(address), name }));
  });
  const domains = once(async (): Promise<ExaminedDomain[]> => {
    if (deps.database.kind === 'closed') throw new Error('the database is not open');
    const { tables } = deps.database;
    const answersHttps = createHttpsProbe(platform.publicUrl, deps.machine.authorities);
    const fetchFile = createFileFetcher({ resolver, trusted: deps.machine.authorities });
    const files = { fetch: (url: URL) => fetchFile(url, ended.signal), now: deps.clock.now() };
    const rows = (await state()).domains;
    const examined: ExaminedDomain[] = [];
    for (let at = 0; at < rows.length && !ended.signal.aborted; at += DOMAIN_BATCH) {
      const batch = rows.slice(at, at + DOMAIN_BATCH).map(async (row) => {
        const keys = tables.dkimKeys.of(row.domain_id);
        const results = await checkDomain({ view, platform, domain: row, keys, answersHttps, files });
        return { row, keys, results };
      });
      examined.push(...(await Promise.all(batch)));
    }
    return examined;
  });
  return {
    context: {
      ...deps,
      ...options,
      resolver,
      signal,
      view,
      platform,
      state,
      sources,
      domains,
      daemon: once(() => deps.daemon(ended.signal)),
    },
    close: () => ended.abort(new DOMException('the run has ended', 'AbortError')),
  };
}

function once<T>(work: () => Promise<T>): () => Promise<T> {
  let result: Promise<T> | null = null;
  return () => (result ??= work());
}

/** A resolver that answers at most `max` lookups, and none after `signal` is aborted. */
export function limitLookups(resolver: Resolver, max: number, signal: AbortSignal): Resolver {
  let left = max;
  return mapLookups(resolver, (lookup) => async (name, options) => {
    if (signal.aborted || left === 0)
      throw new DnsError('ECANCELLED', name, `the limit of ${max} lookups is reached`);
    left--;
    return lookup(name, { signal, ...options });
  });
}
