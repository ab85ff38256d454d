import { DAY, HOUR, MINUTE, SECOND } from '../core/clock.ts';
import { createGate } from '../core/concurrency/gate.ts';
import { createLoop } from '../core/concurrency/loop.ts';
import { withTimeout } from '../core/concurrency/with-timeout.ts';
import { errorText } from '../core/errors.ts';
import { createExpiringCache } from '../core/lru.ts';
import { type ConnectorOptions, createConnector, ForbiddenAddress } from '../dns/connector.ts';
import { DnsError } from '../dns/dns-error.ts';
import { createHttpClient, fieldOf, isTimeout } from '../dns/http-client.ts';
import { canonicalName, fromWire } from '../dns/names.ts';
import type { Context } from '../store/context.ts';
import type { StsPolicyRow } from '../store/tls/sts-policies.ts';
import type { PolicyFault } from './worker/protocol.ts';
import { failureTypeOf } from './worker/tls.ts';

/*
 * MTA-STS (RFC 8461): the policies of recipient domains, how they are fetched, and their texts: the TXT record that announces
 * a policy (§3.1), and the policy (§3.2). Anyone can publish these: what is not valid is no policy. They are parsed in the main
 * thread in linear time: lookbehinds let a pattern search each run of blanks or line ends only once.
 */

export interface StsLookup {
  /** Null: none is known. */
  policy: StsPolicy | null;
  /** The domain announces a policy that could not be obtained. */
  fault: PolicyFault | null;
}

export const NO_POLICY: StsLookup = { policy: null, fault: null };

const MAX_WAIT_MS = 10 * SECOND;
/**
 * Fetches at a time, and those of one account: anyone may announce a policy at a host that never responds, and send mail to
 * it.
 */
const MAX_FETCHES = 100;
const MAX_FETCHES_PER_ACCOUNT = 20;
const MAX_WAITING_FETCHES = 1000;
const MAX_WAITING_FETCHES_PER_ACCOUNT = 100;
/** RFC 8461 §3.3: a failed fetch is not repeated for the same id for some minutes. */
const RETRY_MS = 5 * MINUTE;
const MAX_FAILURES = 10_000;
const REFRESH_INTERVAL_MS = MINUTE;
const REFRESH_BATCH_SIZE = 20;
const EXPIRY_BATCH_SIZE = 200;
const REFRESH_RETRY_MS = HOUR;
/** A policy that was not used for this time expires without a refresh. */
const UNUSED_MS = 30 * DAY;

export type StsPolicies = ReturnType<typeof createStsPolicies>;

/**
 * The MTA-STS policies of recipient domains (RFC 8461 §3.3, §5.1). A policy is stored until it expires. The TXT record is
 * queried each time a route is looked up; if its id has changed, the policy is fetched again. While neither can be
 * obtained, the stored policy applies: an attacker who blocks them gains nothing.
 *
 * At most 100 fetches run and 1000 wait, 20 and 100 of one account. `observe`: called after each fetch, for metrics.
 * `maxWaitMs`: how long a route waits for a fetch. `refreshIntervalMs`: how often policies that are due are refreshed.
 */
export function createStsPolicies(
  {
    clock,
    monotonic,
    log,
    tables,
    writer,
  }: Pick<Context, 'clock' | 'monotonic' | 'log' | 'tables' | 'writer'>,
  {
    observe,
    maxWaitMs = MAX_WAIT_MS,
    refreshIntervalMs = REFRESH_INTERVAL_MS,
    ...https
  }: StsFetcherOptions & {
    observe?: ((result: 'fetched' | StsFetchFailure) => void) | undefined;
    maxWaitMs?: number;
    refreshIntervalMs?: number;
  },
) {
  const { resolver } = https;
  const fetcher = createStsFetcher(https);
  const gate = createGate({
    concurrency: MAX_FETCHES,
    perKey: MAX_FETCHES_PER_ACCOUNT,
    maxWaiting: MAX_WAITING_FETCHES,
    maxWaitingPerKey: MAX_WAITING_FETCHES_PER_ACCOUNT,
  });
  /** By account and domain: an account never waits for the queue of another one. */
  const inProgress = new Map<string, Promise<StsLookup>>();
  /** Failed fetches, by domain and id. */
  const failures = createExpiringCache<PolicyFault>(monotonic, MAX_FAILURES);
  const loop = createLoop({
    name: 'mta-sts-refresh',
    run: refreshSome,
    intervalMs: refreshIntervalMs,
    firstMs: refreshIntervalMs,
    jitter: 0.2,
    log,
  });
  let stopped = false;

  function stored(domain: string): StsPolicyRow | null {
    const row = tables.stsPolicies.get(domain);
    return row !== null && row.expires_at > clock.now() ? row : null;
  }

  /** The announced id; null when there is no announcement, or it cannot be looked up. */
  async function announcedId(domain: string, owner: string): Promise<string | null> {
    try {
      const { records } = await resolver.txt(`_mta-sts.${domain}`, { owner });
      return parseStsRecord(records.map((strings) => strings.join('')));
    } catch (error) {
      if (error instanceof DnsError) return null;
      throw error;
    }
  }

  async function find(domain: string, accountId: string): Promise<StsLookup> {
    const row = stored(domain);
    const known: StsLookup = { policy: row === null ? null : policyOf(row), fault: null };
    if (row !== null) markUsed(row);
    const id = await announcedId(domain, accountId);
    if (id === null || id === row?.policy_id) return known;
    const failure = failures.get(`${domain} ${id}`);
    if (failure !== undefined) return { ...known, fault: failure };
    const fetched =
      (await withTimeout(fetchOnce(domain, id, accountId), maxWaitMs)) ??
      fetchFault(`the policy of ${domain} was not received within ${maxWaitMs / SECOND} s`);
    return fetched.policy === null ? { ...known, fault: fetched.fault } : fetched;
  }

  /** Never rejects. */
  function fetchOnce(domain: string, id: string, accountId: string): Promise<StsLookup> {
    const key = `${accountId} ${domain}`;
    const same = inProgress.get(key);
    if (same !== undefined) return same;
    const fetching = gate
      .run(accountId, () => fetchUnlessStored(domain, id))
      .then((found) => found ?? fetchFault('too many policies are being fetched'))
      .catch((error: unknown) => {
        log.error({ err: error, domain }, 'MTA-STS policy could not be stored');
        return fetchFault('internal error');
      })
      .finally(() => inProgress.delete(key));
    inProgress.set(key, fetching);
    return fetching;
  }

  async function fetchUnlessStored(domain: string, id: string): Promise<StsLookup> {
    const known = stored(domain);
    // While the fetch waited, that of another account may have ended.
    if (known?.policy_id === id && known.fetched_at > clock.now() - RETRY_MS)
      return { policy: policyOf(known), fault: null };
    const { policy, fault } = await fetcher.fetch(domain);
    observe?.(fault === null ? 'fetched' : fault.type);
    if (fault !== null) {
      const { type: result, text: reason } = fault;
      log.warn({ domain, result, reason }, 'MTA-STS policy could not be fetched');
      failures.set(`${domain} ${id}`, fault, RETRY_MS);
      return { policy, fault };
    }
    const row = rowOf(domain, id, policy, clock.now());
    await writer.run((tx) => tx.stsPolicies.put(row));
    log.info({ domain, mode: policy.mode, maxAge: policy.maxAge }, 'MTA-STS policy fetched');
    return { policy, fault: null };
  }

  function markUsed(row: StsPolicyRow): void {
    const now = clock.now();
    if (stopped || !tables.stsPolicies.needsUse(row, now)) return;
    writer
      .run((tx) => tx.stsPolicies.markUsed(row.domain, now))
      .catch((error: unknown) => log.error({ err: error }, 'use of an MTA-STS policy could not be recorded'));
  }

  /** Fetches policies again before they expire, also if their id has not changed (RFC 8461 §10.2). */
  async function refreshSome(): Promise<number | undefined> {
    const now = clock.now();
    const expired = await writer.run((tx) => tx.stsPolicies.expire(now, EXPIRY_BATCH_SIZE));
    const due = tables.stsPolicies.due(now, REFRESH_BATCH_SIZE);
    await Promise.all(due.map(refresh));
    return expired === EXPIRY_BATCH_SIZE || due.length === REFRESH_BATCH_SIZE ? SECOND : undefined;
  }

  async function refresh(row: StsPolicyRow): Promise<void> {
    const { domain, expires_at } = row;
    const now = clock.now();
    if (row.used_at < now - UNUSED_MS) return writer.run((tx) => tx.stsPolicies.postpone(domain, expires_at));
    const id = (await announcedId(domain, '')) ?? row.policy_id;
    const { policy } = await fetchOnce(domain, id, '');
    if (policy === null)
      await writer.run((tx) => tx.stsPolicies.postpone(domain, clock.now() + REFRESH_RETRY_MS));
  }

  /**
   * The policy that applies to a domain now, for mail of the account (default: this daemon). Never rejects; waits for a
   * fetch for at most 10 s.
   */
  async function of(name: string, accountId = ''): Promise<StsLookup> {
    const domain = canonicalName(name);
    if (domain === null) return NO_POLICY;
    try {
      return await find(domain, accountId);
    } catch (error) {
      // A database that cannot be read also stops deliveries, which is reported there.
      log.error({ err: error, domain }, 'MTA-STS policy could not be looked up');
      return fetchFault('the stored MTA-STS policies could not be read');
    }
  }

  return {
    of,
    /** Begins the refresh of due policies, at most 20 in a run; `of` works without it. */
    start: loop.start,
    /** Resolves when no fetch is in progress. */
    stop: async (): Promise<void> => {
      stopped = true;
      // Fetches in progress and waiting ones fail now.
      gate.close();
      await fetcher.close();
      await loop.stop();
      await Promise.all(inProgress.values());
    },
  };
}

function fetchFault(text: string): StsFailure {
  return failed('sts-policy-fetch-error', text);
}

function policyOf({ mode, mx, max_age }: StsPolicyRow): StsPolicy {
  const patterns: string[] = JSON.parse(mx);
  return { mode, mx: patterns, maxAge: max_age };
}

function rowOf(domain: string, id: string, policy: StsPolicy, now: number): StsPolicyRow {
  const ms = policy.maxAge * SECOND;
  return {
    domain,
    policy_id: id,
    mode: policy.mode,
    mx: JSON.stringify(policy.mx),
    max_age: policy.maxAge,
    fetched_at: now,
    expires_at: now + ms,
    refresh_at: now + Math.max(Math.min(DAY, ms / 2), RETRY_MS),
    used_at: now - (now % DAY),
  };
}

interface StsFailure {
  policy: null;
  fault: { type: StsFetchFailure; text: string };
}
type StsFetchResult = StsFailure | { policy: StsPolicy; fault: null };

export type StsFetchFailure = 'sts-policy-fetch-error' | 'sts-policy-invalid' | 'sts-webpki-invalid';

interface StsFetcherOptions extends Omit<ConnectorOptions, 'timeoutMs'> {
  userAgent: string;
  /** For a whole fetch. Default: 20 s. */
  timeoutMs?: number;
  /** Default: 443. */
  port?: number | undefined;
}

const FETCH_TIMEOUT_MS = 20 * SECOND;
/** §3.3 suggests this limit. */
const MAX_POLICY_BYTES = 64 * 1024;
const PLAIN_TEXT = /^text\/plain\s*(;|$)/i;

/**
 * Fetches the policies of domains over HTTPS (RFC 8461 §3.3). A fetch is one GET of at most 64 KiB that ends within
 * `timeoutMs`; the certificate must be valid for `mta-sts.<domain>`. After `close` every fetch, also one in progress,
 * resolves as failed.
 */
function createStsFetcher(options: StsFetcherOptions) {
  const { timeoutMs = FETCH_TIMEOUT_MS, port = 443, userAgent } = options;
  // The certificate must be valid for the host. §3.3 forbids redirects.
  const connect = createConnector({ ...options, timeoutMs });
  const client = createHttpClient({ connect, timeoutMs, maxBodyBytes: MAX_POLICY_BYTES, userAgent });

  /** Never rejects. */
  async function fetch(domain: string): Promise<StsFetchResult> {
    const host = `mta-sts.${domain}`;
    const url = `https://${host}${port === 443 ? '' : `:${port}`}/.well-known/mta-sts.txt`;
    try {
      return await client.request(url, { headers: { accept: 'text/plain' } }, async (reply) => {
        const { statusCode, body } = reply;
        if (statusCode !== 200) return fetchFault(`${host} responds with status ${statusCode}`);
        const type = fieldOf(reply, 'content-type');
        const sent = type.slice(0, 80) || 'none';
        if (!PLAIN_TEXT.test(type))
          return failed('sts-policy-invalid', `${host} sends the media type ${sent} instead of text/plain`);
        const policy = parseStsPolicy(await body.text());
        return typeof policy === 'string'
          ? failed('sts-policy-invalid', `the policy at ${host} is not valid: ${policy}`)
          : { policy, fault: null };
      });
    } catch (error) {
      return isTimeout(error)
        ? fetchFault(`${host} did not send a policy within ${timeoutMs / SECOND} s`)
        : failureOf(host, error);
    }
  }

  return { fetch, close: client.close };
}

function failureOf(host: string, error: unknown): StsFetchResult {
  if (error instanceof ForbiddenAddress) return fetchFault(`${host} has no address that may be called`);
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const isCertificate = failureTypeOf(code) !== 'validation-failure';
  return isCertificate
    ? failed('sts-webpki-invalid', `the certificate of ${host} is not valid: ${code}`)
    : fetchFault(`no policy from ${host}: ${errorText(error).slice(0, 200)}`);
}

function failed(type: StsFetchFailure, text: string): StsFailure {
  return { policy: null, fault: { type, text } };
}

/** A valid policy (RFC 8461 §3.2). */
export interface StsPolicy {
  mode: 'enforce' | 'testing' | 'none';
  /** Patterns of MX hosts, lower case; `*.` stands for one label. Empty only in mode none. */
  mx: string[];
  /** Seconds. */
  maxAge: number;
}

/** A year and a day (§3.2); a larger value counts as this one, because ignoring the policy would protect less. */
const MAX_AGE = 31_557_600;
/** A domain needs a few; the policy is kept for its whole lifetime. */
const MAX_PATTERNS = 64;

const RECORD_PREFIX = /^v=STSv1[ \t]*;/;
const RECORD_FIELD = /^([A-Za-z0-9][\w.-]{0,31})=([\x21-\x3a\x3c\x3e-\x7e]+)$/;
const POLICY_ID = /^[A-Za-z0-9]{1,32}$/;

/**
 * The id in the TXT records at `_mta-sts.<domain>`; null when there is no valid announcement: none or several records of
 * this version, or one that is malformed.
 */
export function parseStsRecord(records: readonly string[]): string | null {
  const [record, ...others] = records.filter((text) => RECORD_PREFIX.test(text));
  if (record === undefined || others.length > 0) return null;
  const fields = record.split(/(?<![ \t])[ \t]*;[ \t]*/);
  if (fields.at(-1) === '') fields.pop();
  let id: string | null = null;
  for (const field of fields) {
    const [, name, value] = RECORD_FIELD.exec(field) ?? [];
    if (name === undefined || value === undefined) return null;
    if (name === 'id') id ??= value;
  }
  return id !== null && POLICY_ID.test(id) ? id : null;
}

const FIELD = /^([A-Za-z0-9][\w.-]{0,31}):(.*)$/;
const DIGITS = /^\d{1,10}$/;
const MODES = ['enforce', 'testing', 'none'] as const;

/** Parses a policy; returns what is wrong with it if it is not valid. */
export function parseStsPolicy(text: string): StsPolicy | string {
  const first = new Map<string, string>();
  const mx = new Set<string>();
  for (const line of text.replace(/(?<![\r\n])[\r\n]+$/, '').split(/\r?\n/)) {
    const [, name, rest = ''] = FIELD.exec(line) ?? [];
    const value = trimBlanks(rest);
    if (name === undefined) return `line ${JSON.stringify(line.slice(0, 80))} is not "name: value"`;
    if (name !== 'mx') {
      // §3.2: of a field that occurs twice the first counts.
      if (!first.has(name)) first.set(name, value);
      continue;
    }
    const pattern = patternOf(value);
    if (pattern === null) return `mx ${JSON.stringify(value.slice(0, 80))} is not a host name or pattern`;
    mx.add(pattern);
    if (mx.size > MAX_PATTERNS) return `it has more than ${MAX_PATTERNS} mx fields`;
  }
  if (first.get('version') !== 'STSv1') return 'its version is not STSv1';
  const mode = MODES.find((each) => each === first.get('mode'));
  if (mode === undefined) return 'its mode is not enforce, testing or none';
  const maxAge = first.get('max_age') ?? '';
  if (!DIGITS.test(maxAge)) return 'its max_age is not a number of seconds';
  if (mx.size === 0 && mode !== 'none') return 'it has no mx field';
  return { mode, mx: [...mx], maxAge: Math.min(Number(maxAge), MAX_AGE) };
}

/** The text without spaces and tabs around it. */
function trimBlanks(text: string): string {
  return text.replace(/^[ \t]+/, '').replace(/(?<![ \t])[ \t]+$/, '');
}

const HOST = /^([a-z0-9]([a-z0-9-]*[a-z0-9])?)(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/;

/** A host name, or one whose leftmost label is `*`; null: neither. */
function patternOf(text: string): string | null {
  const pattern = text.toLowerCase();
  const name = pattern.startsWith('*.') ? pattern.slice(2) : pattern;
  return fromWire(name) === name && HOST.test(name) ? pattern : null;
}

/** Whether an MX host is in the policy (§4.1): `*.` stands for exactly one label. */
export function isInPolicy({ mx }: Pick<StsPolicy, 'mx'>, host: string): boolean {
  const name = host.toLowerCase();
  const dot = name.indexOf('.');
  return mx.includes(name) || (dot > 0 && mx.includes(`*${name.slice(dot)}`));
}

/** The lines of a policy for a report (RFC 8460 §4.4). */
export function policyLines({ mode, mx, maxAge }: StsPolicy): string[] {
  return ['version: STSv1', `mode: ${mode}`, ...mx.map((name) => `mx: ${name}`), `max_age: ${maxAge}`];
}
