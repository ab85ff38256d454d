import { Agent } from 'undici';
import { SECOND } from '../../core/clock.ts';
import { errorText } from '../../core/errors.ts';
import { type ConnectorOptions, createConnector, ForbiddenAddress } from '../../dns/connector.ts';
import { failureTypeOf } from '../worker/requirement.ts';
import { parseStsPolicy, type StsPolicy } from './sts-policy.ts';

export type StsFetchResult =
  | { kind: 'policy'; policy: StsPolicy }
  | { kind: 'failed'; type: StsFetchFailure; reason: string };

export type StsFetchFailure = 'sts-policy-fetch-error' | 'sts-policy-invalid' | 'sts-webpki-invalid';

/** Fetches the policies of domains over HTTPS (RFC 8461 §3.3). */
export interface StsFetcher {
  /** Never rejects. */
  fetch(domain: string): Promise<StsFetchResult>;
  close(): Promise<void>;
}

export interface StsFetcherOptions extends Omit<ConnectorOptions, 'timeoutMs'> {
  userAgent: string;
  /** For a whole fetch. Default: 20 s. */
  timeoutMs?: number;
  /** Default: 443. */
  port?: number;
}

const FETCH_TIMEOUT_MS = 20 * SECOND;
/** §3.3 suggests this limit. */
const MAX_POLICY_BYTES = 64 * 1024;
const MAX_HEADER_BYTES = 16 * 1024;
const PLAIN_TEXT = /^text\/plain\s*(;|$)/i;

/**
 * A fetch is one GET of at most 64 KiB that ends within `timeoutMs`; the certificate must be valid for
 * `mta-sts.<domain>`. After `close` every fetch, also one in progress, resolves as failed.
 */
export function createStsFetcher(options: StsFetcherOptions): StsFetcher {
  const { timeoutMs = FETCH_TIMEOUT_MS, port = 443, userAgent } = options;
  const closing = new AbortController();
  const agent = new Agent({
    // The certificate must be valid for the host.
    connect: createConnector({ ...options, timeoutMs }),
    maxHeaderSize: MAX_HEADER_BYTES,
    maxResponseSize: MAX_POLICY_BYTES,
    pipelining: 0,
    keepAliveTimeout: 1,
    // One deadline for the whole fetch, below.
    headersTimeout: 0,
    bodyTimeout: 0,
  });

  async function fetch(domain: string): Promise<StsFetchResult> {
    const host = `mta-sts.${domain}`;
    const late = AbortSignal.timeout(timeoutMs);
    try {
      // undici follows no redirect (§3.3 forbids it).
      const { statusCode, headers, body } = await agent.request({
        origin: `https://${host}${port === 443 ? '' : `:${port}`}`,
        path: '/.well-known/mta-sts.txt',
        method: 'GET',
        headers: { accept: 'text/plain', 'user-agent': userAgent },
        signal: AbortSignal.any([late, closing.signal]),
      });
      const type = [headers['content-type']].flat()[0] ?? '';
      if (statusCode !== 200 || !PLAIN_TEXT.test(type)) {
        body.on('error', () => {
          // The rest of the response is not read.
        });
        body.destroy();
        return statusCode === 200
          ? failed(
              'sts-policy-invalid',
              `${host} sends the media type ${type.slice(0, 80) || 'none'} instead of text/plain`,
            )
          : failed('sts-policy-fetch-error', `${host} responds with status ${statusCode}`);
      }
      const policy = parseStsPolicy(await body.text());
      if (typeof policy === 'string')
        return failed('sts-policy-invalid', `the policy at ${host} is not valid: ${policy}`);
      return { kind: 'policy', policy };
    } catch (error) {
      if (late.aborted)
        return failed(
          'sts-policy-fetch-error',
          `${host} did not send a policy within ${timeoutMs / SECOND} s`,
        );
      return failureOf(host, error);
    }
  }

  return {
    fetch,
    close: async () => {
      closing.abort();
      await agent.destroy();
    },
  };
}

function failureOf(host: string, error: unknown): StsFetchResult {
  if (error instanceof ForbiddenAddress)
    return failed('sts-policy-fetch-error', `${host} has no address that may be called`);
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const isCertificate = failureTypeOf(code) !== 'validation-failure';
  return isCertificate
    ? failed('sts-webpki-invalid', `the certificate of ${host} is not valid: ${code}`)
    : failed('sts-policy-fetch-error', `no policy from ${host}: ${errorText(error).slice(0, 200)}`);
}

function failed(type: StsFetchFailure, reason: string): StsFetchResult {
  return { kind: 'failed', type, reason };
}
