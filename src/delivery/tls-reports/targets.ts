import { Agent } from 'undici';
import { type Clock, MINUTE, SECOND } from '../../core/clock.ts';
import { abortAfter } from '../../core/concurrency/abort.ts';
import { errorText } from '../../core/errors.ts';
import { type ConnectorOptions, createConnector } from '../../dns/connector.ts';
import { DnsError } from '../../dns/dns-error.ts';
import type { Resolver } from '../../dns/resolver.ts';
import { keyRecordName } from '../../domains/keys.ts';
import type { DkimSigner } from '../../mail/dkim.ts';
import type { EgressPools } from '../routing/egress.ts';
import type { RouteFinder } from '../routing/routes.ts';
import { attempt } from '../worker/attempt.ts';
import { createSmtpClient } from '../worker/client.ts';
import { SMTP_TIMEOUTS, type SmtpTimeouts } from '../worker/timeouts.ts';
import { dialTcp } from '../worker/wire.ts';
import type { OutgoingTlsReport, Submitter } from './report.ts';
import { composeReportMail } from './report-mail.ts';
import type { ReportTarget } from './report-record.ts';

/**
 * Delivers TLS reports: by HTTPS POST (RFC 8460 §5.4), or by mail directly to the hosts of the address (§5.3). Reports are
 * sent whatever is wrong with TLS there, because that is what they report.
 */
export interface ReportTargets {
  /** Null: the target has accepted the report, else why not. Never rejects. */
  deliver(target: ReportTarget, report: OutgoingTlsReport): Promise<string | null>;
  close(): Promise<void>;
}

export interface ReportTargetsDeps extends Omit<ConnectorOptions, 'timeoutMs'> {
  clock: Clock;
  monotonic: Clock;
  resolver: Resolver;
  finder: RouteFinder;
  egress: EgressPools;
  /** Read at each use. */
  readonly submitter: Submitter;
  readonly port: number;
  signer(): Promise<DkimSigner>;
  userAgent: string;
}

const POST_TIMEOUT_MS = 30 * SECOND;
const POOL = 'default';
/** A report is small, and is tried again. */
const TIMEOUTS: SmtpTimeouts = { ...SMTP_TIMEOUTS, command: MINUTE, dot: 2 * MINUTE, message: 4 * MINUTE };

/**
 * Has an SMTP client with a timer until `close`, which also ends the deliveries in progress. Mail is sent from the pool
 * `default`, never through a proxy, and only while DNS has the record of the signing key.
 */
export function createReportTargets(deps: ReportTargetsDeps): ReportTargets {
  const { clock, resolver, finder, egress, userAgent } = deps;
  const closing = new AbortController();
  const client = createSmtpClient({ clock, monotonic: deps.monotonic, dial: dialTcp, timeouts: TIMEOUTS });
  const agent = new Agent({
    connect: createConnector({ ...deps, timeoutMs: POST_TIMEOUT_MS }),
    pipelining: 0,
    headersTimeout: 0,
    bodyTimeout: 0,
  });

  async function post(url: string, { gzipped }: OutgoingTlsReport): Promise<string | null> {
    const { origin, pathname, search } = new URL(url);
    const { statusCode, body } = await agent.request({
      origin,
      path: pathname + search,
      method: 'POST',
      headers: { 'content-type': 'application/tlsrpt+gzip', 'user-agent': userAgent },
      body: gzipped,
      signal: abortAfter(POST_TIMEOUT_MS, closing.signal),
    });
    body.on('error', () => {
      // The rest of the response is not read.
    });
    body.destroy();
    return statusCode >= 200 && statusCode < 300 ? null : `status ${statusCode}`;
  }

  async function mail(
    target: Extract<ReportTarget, { kind: 'mailto' }>,
    report: OutgoingTlsReport,
  ): Promise<string | null> {
    const signer = await deps.signer();
    const problem = await keyProblem(resolver, signer);
    if (problem !== null) return problem;
    const found = await finder.find(target.domain, egress.ipv6Of(POOL));
    if (found.kind === 'failure') return `no route: ${found.failure}`;
    const { route } = found;
    if (route?.user !== undefined) return 'its route needs a login, which reports do not have';
    const entry = egress.entries(POOL).find(({ proxy }) => proxy === undefined);
    if (entry === undefined)
      return 'reports are sent from an address of this machine, and all addresses are behind proxies';
    const { hostname, address, address6 } = entry;
    const { submitter } = deps;
    const message = composeReportMail({
      report,
      submitter,
      to: target.address,
      signer,
      now: clock.now(),
    });
    const job = {
      id: 0,
      slot: `report ${target.address}`,
      hosts: found.hosts,
      port: route?.port ?? deps.port,
      tls: route?.tls ?? 'opportunistic',
      tlsSource: route === null ? 'default' : 'route',
      chunking: false,
      egress: {
        hostname,
        ...(address === undefined ? {} : { address }),
        ...(address6 === undefined ? {} : { address6 }),
      },
      messagesPerConnection: 1,
      idleMs: 0,
    } as const;
    const result = await attempt(job, () => Promise.resolve({ ...message, utf8: false }), client);
    if (result === null) return 'the daemon stops';
    const { conclusion, reply, sessions } = result;
    if (conclusion === 'replied' && reply !== null && reply.code < 300) return null;
    return reply === null ? (sessions.at(-1)?.error ?? conclusion) : `${reply.code} ${reply.text}`;
  }

  return {
    deliver: async (target, report) => {
      try {
        return target.kind === 'https' ? await post(target.url, report) : await mail(target, report);
      } catch (error) {
        return errorText(error);
      }
    },
    close: async () => {
      closing.abort();
      client.abort();
      await Promise.all([client.close(), agent.destroy()]);
    },
  };
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
