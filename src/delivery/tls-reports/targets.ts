import { Agent } from 'undici';
import { type Clock, SECOND } from '../../core/clock.ts';
import { abortAfter } from '../../core/concurrency/abort.ts';
import { errorText } from '../../core/errors.ts';
import { type ConnectorOptions, createConnector } from '../../dns/connector.ts';
import { DnsError } from '../../dns/dns-error.ts';
import type { Resolver } from '../../dns/resolver.ts';
import { keyRecordName } from '../../domains/keys.ts';
import type { DkimSigner } from '../../mail/dkim.ts';
import type { DirectMail } from '../direct-mail.ts';
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
  resolver: Resolver;
  mail: DirectMail;
  /** Read at each use. */
  readonly submitter: Submitter;
  signer(): Promise<DkimSigner>;
  userAgent: string;
}

const POST_TIMEOUT_MS = 30 * SECOND;
/** `close` ends the requests in progress. Mail is sent only while DNS has the record of the signing key. */
export function createReportTargets(deps: ReportTargetsDeps): ReportTargets {
  const { clock, resolver, userAgent } = deps;
  const closing = new AbortController();
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
    const { submitter } = deps;
    const message = composeReportMail({ report, submitter, to: target.address, signer, now: clock.now() });
    const result = await deps.mail.deliver({ ...message, utf8: false });
    if (result.kind === 'accepted') return null;
    return result.kind === 'aborted' ? 'the daemon stops' : result.reason;
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
      await agent.destroy();
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
