import { createHash } from 'node:crypto';
import { setImmediate as nextIteration } from 'node:timers/promises';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import PQueue from 'p-queue';
import type { Config } from '../config/schema.ts';
import { DAY, HOUR, iso, MINUTE, SECOND } from '../core/clock.ts';
import { createLoop } from '../core/concurrency/loop.ts';
import { errorText } from '../core/errors.ts';
import { createExpiringCache } from '../core/lru.ts';
import { type ConnectorOptions, createConnector } from '../dns/connector.ts';
import { DnsError } from '../dns/dns-error.ts';
import { createHttpClient } from '../dns/http-client.ts';
import type { Resolver } from '../dns/resolver.ts';
import type { GenerateKey } from '../domains/key-queue.ts';
import { keyRecordName } from '../domains/keys.ts';
import { reportSigner } from '../domains/platform/report-key.ts';
import { domainOf, parseMailbox } from '../mail/address.ts';
import { headerBytes, platformMailHeader } from '../mail/compose.ts';
import { type DkimSigner, type SignableMessage, signDkim } from '../mail/dkim.ts';
import { wrapBase64 } from '../mail/encode.ts';
import type { Context } from '../store/context.ts';
import type { Tables } from '../store/tables.ts';
import type { TlsSessionKey, TlsSessionRow, UnreportedDay } from '../store/tls/tls-sessions.ts';
import type { DirectMail } from './direct-mail.ts';
import type { DestinationTls } from './tls-policies.ts';
import type { DanePolicy, SessionRecord, TargetHost, TlsFailureType } from './worker/protocol.ts';
import type { OutgoingMessage } from './worker/transaction.ts';

/*
 * TLS reports (RFC 8460): the sessions of each day are counted for the domains that want reports, and reported on the next
 * day by HTTPS or mail.
 */

const MAX_KNOWN = 50_000;
const KNOWN_MS = HOUR;
const UNKNOWN_MS = 5 * MINUTE;
const MAX_REASON_LENGTH = 200;
const SPREAD_MS = 4 * HOUR;
const FIRST_RETRY_MS = 30 * MINUTE;
/** §4.1: delivery is tried for up to a day. */
const GIVE_UP_MS = DAY;
const INTERVAL_MS = MINUTE;
const PARALLEL = 8;
/** Reports of one run, and days of domains that it examines, a few between pauses for other work. */
const MAX_PER_RUN = 200;
const MAX_EXAMINED = 5000;
const PORTION = 100;
const MAX_RETRIES = 10_000;
const REMOVAL_BATCH_SIZE = 500;
const POST_TIMEOUT_MS = 30 * SECOND;

export interface CountedAttempt {
  /** The recipients' domain. */
  destination: string;
  hosts: readonly TargetHost[];
  tls: DestinationTls;
  sessions: readonly SessionRecord[];
}

interface Retry {
  at: number;
  waitMs: number;
  /** Targets that have accepted the report. */
  reached: Set<string>;
}

const START: UnreportedDay = { day: 0, domain: '' };

interface ReportOptions extends Omit<ConnectorOptions, 'timeoutMs'> {
  mail: DirectMail;
  /** For the key that signs reports. */
  generateKey: GenerateKey;
  userAgent: string;
  /** Called with the result for each target, for metrics. */
  observe: (result: 'sent' | 'failed') => void;
  /** How often due reports are searched. Default: one minute. */
  intervalMs?: number | undefined;
}

/**
 * Each report is sent at its own time in the first four hours after midnight UTC, so that receivers are not asked by
 * everyone together; a run sends at most 200, 8 at a time. What was counted is removed when the report has reached all of
 * its targets, or after a day of attempts; counts older than two days also while `tlsReports.send` is false. A restart
 * forgets which targets were reached: these get the report again, with the same id.
 *
 * Caches for 50,000 domains whether they want reports: for an hour, after a failed lookup for 5 minutes.
 */
export function createTlsReports(
  context: Pick<Context, 'config' | 'clock' | 'monotonic' | 'log' | 'tables' | 'writer' | 'seal'>,
  { mail, generateKey, userAgent, observe, intervalMs = INTERVAL_MS, ...https }: ReportOptions,
) {
  const { config, clock, monotonic, log, tables, writer } = context;
  const { resolver } = https;
  /** Whether domains want reports. */
  const known = createExpiringCache<boolean>(monotonic, MAX_KNOWN);
  const retries = new Map<string, Retry>();
  const queue = new PQueue({ concurrency: PARALLEL });
  const closing = new AbortController();
  const connect = createConnector({ ...https, timeoutMs: POST_TIMEOUT_MS });
  const client = createHttpClient({ connect, timeoutMs: POST_TIMEOUT_MS, userAgent });
  const loop = createLoop({ name: 'tls-reports', run, intervalMs, firstMs: intervalMs, log });
  let signer: Promise<DkimSigner> | null = null;
  /** Where the next run continues. */
  let cursor = START;

  /** Where the domain wants reports now; empty: nowhere. Null: its record cannot be looked up. */
  async function targetsOf(domain: string): Promise<ReportTarget[] | null> {
    let found: ReportTarget[] | null;
    try {
      const { records } = await resolver.txt(`_smtp._tls.${domain}`, { owner: 'TLS reports' });
      found = parseReportRecord(records.map((strings) => strings.join('')));
    } catch (error) {
      if (!(error instanceof DnsError)) throw error;
      found = error.absent || error.code === 'EBADNAME' ? [] : null;
    }
    known.set(domain, found === null || found.length > 0, found === null ? UNKNOWN_MS : KNOWN_MS);
    return found;
  }

  function wantsReports(domain: string): boolean {
    const wants = known.get(domain);
    if (wants !== undefined) return wants;
    // Until the answer arrives, and so that only one lookup is made.
    known.set(domain, true, UNKNOWN_MS);
    targetsOf(domain).catch((error: unknown) =>
      log.error({ err: error, domain }, 'TLSRPT record could not be looked up'),
    );
    return true;
  }

  /**
   * Counts the sessions of an attempt that began with TLS or needed it, while `tlsReports.send` is true. Call inside the
   * unit of work of its result. A domain of which it is not known yet whether it wants reports counts: its record is looked
   * up meanwhile, and again before a report is sent.
   */
  function count({ tlsSessions }: Pick<Tables, 'tlsSessions'>, attempt: CountedAttempt): void {
    const { destination, sessions } = attempt;
    if (!config.tlsReports.send || sessions.every(({ tlsResult }) => tlsResult === undefined)) return;
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
      const failed = failure === null ? null : { type: failure, ...details };
      tlsSessions.count({ day, domain: destination, ...key }, failed);
    }
  }

  async function run(): Promise<number | undefined> {
    const today = dayNumberOf(clock.now());
    const removed = await writer.run((tx) => tx.tlsSessions.removeBefore(today - 2, REMOVAL_BATCH_SIZE));
    if (!config.tlsReports.send) return undefined;
    const due: UnreportedDay[] = [];
    for (let examined = 0; examined < MAX_EXAMINED && due.length < MAX_PER_RUN; examined++) {
      const next = tables.tlsSessions.nextUnreported(cursor, today);
      cursor = next ?? START;
      if (next === null || closing.signal.aborted) break;
      if (dueAt(next) <= clock.now()) due.push(next);
      if (examined % PORTION === PORTION - 1) await nextIteration();
    }
    await queue.addAll(due.map((each) => () => report(each)));
    return removed === REMOVAL_BATCH_SIZE || cursor !== START ? SECOND : undefined;
  }

  function dueAt(unreported: UnreportedDay): number {
    const { day, domain } = unreported;
    const retry = retries.get(keyOf(unreported));
    if (retry !== undefined) return retry.at;
    // Differs between domains, days and senders, and is the same after a restart.
    const hash = createHash('sha256').update(`${config.hostname} ${domain} ${day}`).digest();
    return (day + 1) * DAY + (hash.readUInt32BE(0) % SPREAD_MS);
  }

  async function report(unreported: UnreportedDay): Promise<void> {
    if (closing.signal.aborted) return;
    const reached = retries.get(keyOf(unreported))?.reached ?? new Set<string>();
    const targets = await targetsOf(unreported.domain);
    if (targets === null) return retryLater(unreported, reached, 'the TLSRPT record cannot be looked up');
    const composed =
      targets.length === 0 ? null : await composeReport(tables, unreported, submitterOf(config));
    if (composed === null) return remove(unreported);
    const missing = targets.filter((target) => !reached.has(nameOf(target)));
    const results = await Promise.all(missing.map((target) => send(target, composed)));
    for (const [index, target] of missing.entries()) if (results[index] === null) reached.add(nameOf(target));
    const reason = results.find((result) => result !== null) ?? null;
    return reason === null ? remove(unreported) : retryLater(unreported, reached, reason);
  }

  /** Sends a report to one target; null: it was accepted, else why not. Never rejects. */
  async function send(target: ReportTarget, composed: OutgoingTlsReport): Promise<string | null> {
    const sent = target.kind === 'https' ? post(target.url, composed) : sendMail(target.address, composed);
    const reason = await sent.catch(errorText);
    observe(reason === null ? 'sent' : 'failed');
    const fields = { domain: composed.domain, reportId: composed.id, target: nameOf(target) };
    if (reason === null) log.info(fields, 'TLS report sent');
    else log.warn({ ...fields, reason }, 'TLS report could not be sent');
    return reason;
  }

  /** RFC 8460 §5.4. */
  function post(url: string, { gzipped }: OutgoingTlsReport): Promise<string | null> {
    const headers = { 'content-type': 'application/tlsrpt+gzip' };
    return client.request(url, { method: 'POST', headers, body: gzipped }, ({ statusCode }) =>
      statusCode >= 200 && statusCode < 300 ? null : `status ${statusCode}`,
    );
  }

  /**
   * RFC 8460 §5.3: directly to the hosts of the address, whatever is wrong with TLS there, because that is what is reported.
   * Only while DNS has the record of the signing key.
   */
  async function sendMail(to: string, composed: OutgoingTlsReport): Promise<string | null> {
    const key = await openSigner();
    const problem = await keyProblem(resolver, key);
    if (problem !== null) return problem;
    const message = composeReportMail(composed, submitterOf(config), to, key, clock.now());
    const result = await mail.deliver(message);
    if (result.kind === 'accepted') return null;
    return result.kind === 'aborted' ? 'the daemon stops' : result.reason;
  }

  function openSigner(): Promise<DkimSigner> {
    signer ??= reportSigner(context, {
      hostname: config.hostname,
      generateKey,
      signal: closing.signal,
    }).catch((error: unknown) => {
      signer = null;
      throw error;
    });
    return signer;
  }

  async function retryLater(unreported: UnreportedDay, reached: Set<string>, reason: string): Promise<void> {
    const waitMs = (retries.get(keyOf(unreported))?.waitMs ?? FIRST_RETRY_MS / 2) * 2;
    const at = clock.now() + waitMs;
    const isOver = at > (unreported.day + 1) * DAY + SPREAD_MS + GIVE_UP_MS;
    if (!isOver && (retries.size < MAX_RETRIES || retries.has(keyOf(unreported)))) {
      retries.set(keyOf(unreported), { at, waitMs, reached });
      return;
    }
    log.warn({ domain: unreported.domain, reason }, 'TLS report dropped');
    await remove(unreported);
  }

  async function remove(unreported: UnreportedDay): Promise<void> {
    await writer.run((tx) => tx.tlsSessions.remove(unreported));
    retries.delete(keyOf(unreported));
  }

  return {
    count,
    start: (): void => {
      loop.start();
      if (!config.tlsReports.send) return;
      // The operator publishes the record of the key before the first report.
      openSigner().catch((error: unknown) => {
        if (error !== closing.signal.reason)
          log.error({ err: error }, 'key of TLS reports could not be created');
      });
    },
    /** Ends the requests in progress, and waits for the reports in progress. */
    stop: async (): Promise<void> => {
      closing.abort();
      await client.close();
      await loop.stop();
    },
  };
}

function keyOf({ day, domain }: UnreportedDay): string {
  return `${day} ${domain}`;
}

function nameOf(target: ReportTarget): string {
  return target.kind === 'https' ? target.url : target.address;
}

/** Days since 1970-01-01, UTC. */
function dayNumberOf(epochMs: number): number {
  return Math.floor(epochMs / DAY);
}

/** Receivers ignore reports without a valid signature (RFC 8460 §3). */
async function keyProblem(resolver: Pick<Resolver, 'txt'>, signer: DkimSigner): Promise<string | null> {
  const name = keyRecordName(signer);
  try {
    await resolver.txt(name);
    return null;
  } catch (error) {
    if (!(error instanceof DnsError)) throw error;
    return error.absent
      ? `publish the TXT record ${name}, which "postrider zone" prints: reports must be signed`
      : `the record ${name} cannot be looked up`;
  }
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
interface PublishedPolicy {
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

/** Where a domain wants its reports (RFC 8460 §3). */
type ReportTarget = { kind: 'mailto'; address: string; domain: string } | { kind: 'https'; url: string };

/** A domain that names more gets its reports at the first ones. */
const MAX_TARGETS = 4;
const MAX_URL_LENGTH = 2048;
const PREFIX = /^v=TLSRPTv1[ \t]*;/;
const RUA = /^rua[ \t]*=[ \t]*(.+)$/s;

/**
 * Parses the TXT records at `_smtp._tls.<domain>`. Empty: the domain wants no reports, because it has no record of this
 * version, several, or none with a usable address.
 */
export function parseReportRecord(records: readonly string[]): ReportTarget[] {
  const [record, ...others] = records.filter((text) => PREFIX.test(text));
  if (record === undefined || others.length > 0) return [];
  const [, uris = ''] =
    record
      .split(';')
      .map((field) => RUA.exec(field.trim()))
      .find((found) => found !== null) ?? [];
  return uris
    .split(',')
    .flatMap((uri) => targetOf(uri.trim()) ?? [])
    .slice(0, MAX_TARGETS);
}

function targetOf(uri: string): ReportTarget | null {
  if (uri.length > MAX_URL_LENGTH || !URL.canParse(uri)) return null;
  const { protocol, username, pathname } = new URL(uri);
  if (protocol === 'https:' && username === '') return { kind: 'https', url: uri };
  if (protocol !== 'mailto:') return null;
  const address = decoded(pathname);
  // Reports go over SMTP without SMTPUTF8.
  if (address === null || !/^[\x21-\x7e]+$/.test(address)) return null;
  if (typeof parseMailbox(address) === 'string') return null;
  return { kind: 'mailto', address, domain: domainOf(address) };
}

function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null; // a malformed percent sequence
  }
}

/** One TLS report: the sessions of one day with the hosts of one domain (RFC 8460 §4). */
interface OutgoingTlsReport {
  id: string;
  domain: string;
  /** Name without folder: `submitter!domain!begin!end!id.json.gz` (§5.1). */
  fileName: string;
  /** The JSON document, gzipped (§5.2). */
  gzipped: Buffer;
}

interface Submitter {
  /** The host name of this server. */
  domain: string;
  organization: string;
  contact: string;
}

const compress = promisify(gzip);

function submitterOf({ hostname, tlsReports }: Config): Submitter {
  const { organization = hostname, contact = `postmaster@${hostname}` } = tlsReports;
  return { domain: hostname, organization, contact };
}

/** Reads and composes the report; null: there is nothing to report. */
async function composeReport(
  tables: Pick<Tables, 'tlsSessions'>,
  { day, domain }: UnreportedDay,
  submitter: Submitter,
): Promise<OutgoingTlsReport | null> {
  const rows = tables.tlsSessions.ofDay({ day, domain });
  if (rows.length === 0) return null;
  const begin = day * DAY;
  const end = begin + DAY - SECOND;
  // Equal for each delivery of the same report, so that receivers recognize a repeated one.
  const id = `${iso(begin).slice(0, 10)}.${domain}@${submitter.domain}`;
  const report = {
    'organization-name': submitter.organization,
    'date-range': { 'start-datetime': seconds(begin), 'end-datetime': seconds(end) },
    'contact-info': submitter.contact,
    'report-id': id,
    policies: rows.map((row) => policyOf(tables, row)),
  };
  const name = [submitter.domain, domain, begin / SECOND, end / SECOND, day].join('!');
  return {
    id,
    domain,
    fileName: `${name}.json.gz`,
    gzipped: await compress(Buffer.from(JSON.stringify(report))),
  };
}

/** RFC 3339 without fractions of a second. */
function seconds(epochMs: number): string {
  return iso(epochMs).replace('.000Z', 'Z');
}

function policyOf({ tlsSessions }: Pick<Tables, 'tlsSessions'>, row: TlsSessionRow) {
  const { lines, mx }: PublishedPolicy = JSON.parse(row.policy);
  const failures = tlsSessions.failures(row.seq).map((failure) =>
    withoutBlanks({
      'result-type': failure.type,
      'sending-mta-ip': failure.source_ip,
      'receiving-mx-hostname': failure.receiving_host,
      'receiving-ip': failure.receiving_ip,
      'failed-session-count': failure.sessions,
      'failure-reason-code': failure.reason,
    }),
  );
  return {
    policy: {
      'policy-type': row.policy_type,
      ...(lines.length > 0 ? { 'policy-string': lines } : {}),
      'policy-domain': row.policy_domain,
      ...(mx.length > 0 ? { 'mx-host': mx } : {}),
    },
    summary: {
      'total-successful-session-count': row.successful,
      'total-failure-session-count': row.failed,
    },
    ...(failures.length > 0 ? { 'failure-details': failures } : {}),
  };
}

function withoutBlanks(fields: Record<string, string | number>): Record<string, string | number> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== ''));
}

/**
 * The report as mail (RFC 8460 §5.3): `multipart/report` with a text and the gzipped document, DKIM-signed with a key of
 * the submitter's domain. The boundary and the Message-ID derive from the id of the report and `to`, so a mail that is
 * sent again has the same ones.
 */
function composeReportMail(
  report: OutgoingTlsReport,
  submitter: Submitter,
  to: string,
  signer: DkimSigner,
  now: number,
): OutgoingMessage {
  const from = `postmaster@${submitter.domain}`;
  const hash = createHash('sha256').update(`${report.id} ${to}`).digest('hex').slice(0, 32);
  const boundary = `=_tlsrpt_${hash}`;
  const header = [
    ...platformMailHeader({
      from: { name: '', address: from },
      to,
      subject: `Report Domain: ${report.domain} Submitter: ${submitter.domain} Report-ID: <${report.id}>`,
      messageId: `<tlsrpt.${hash}@${submitter.domain}>`,
      at: now,
    }),
    `TLS-Report-Domain: ${report.domain}`,
    `TLS-Report-Submitter: ${submitter.domain}`,
    `Content-Type: multipart/report; report-type="tlsrpt";\r\n boundary="${boundary}"`,
  ];
  const text = [
    `This is an aggregate TLS report (RFC 8460) of ${submitter.domain} about`,
    `${report.domain}. The report is attached.`,
    `Contact: ${submitter.contact}`,
  ];
  const body = Buffer.concat([
    lines(
      `--${boundary}`,
      'Content-Type: text/plain; charset=us-ascii',
      'Content-Transfer-Encoding: 7bit',
      '',
      ...text,
      '',
      `--${boundary}`,
      'Content-Type: application/tlsrpt+gzip',
      'Content-Transfer-Encoding: base64',
      `Content-Disposition: attachment;\r\n filename="${report.fileName}"`,
      '',
    ),
    wrapBase64(report.gzipped.toString('base64')),
    lines('', `--${boundary}--`),
  ]);
  const message: SignableMessage = { header, body };
  const signatures = signDkim(message, [signer], now);
  return { from, to, header: headerBytes(message, signatures), body, utf8: false };
}

function lines(...texts: string[]): Buffer {
  return Buffer.from(texts.map((text) => `${text}\r\n`).join(''));
}
