import { SECOND } from '../../core/clock.ts';
import { isPublic } from '../../dns/address-kinds.ts';
import {
  type ConnectorOptions,
  createConnector,
  ForbiddenAddress,
  ResponseTooLarge,
} from '../../dns/connector.ts';
import { createHttpClient, fieldOf, isTimeout } from '../../dns/http-client.ts';

/* The logo and the certificate that the BIMI record of a domain names: its owner chooses the addresses. */

/** `reason`: a clause for the owner of the domain, without addresses of hosts. */
export type FetchedFile =
  | { kind: 'file'; bytes: Buffer; mediaType: string }
  | { kind: 'failed'; reason: string };

/** Fetches an https URL once, without redirects. Never rejects. */
export type FetchFile = (url: URL, signal: AbortSignal) => Promise<FetchedFile>;

export interface FileFetcherOptions extends Pick<ConnectorOptions, 'resolver' | 'trusted'> {
  /** Default: public addresses alone. */
  mayConnect?: (address: string) => boolean;
}

/** For a whole fetch. */
const FETCH_TIMEOUT_MS = 5 * SECOND;
const MAX_FILE_BYTES = 1024 * 1024;
/** Of everything that is no content. */
const MAX_OTHER_BYTES = 32 * 1024;

/** A fetch is one GET of at most 1 MiB that ends within 5 s; the certificate must be valid for the host. */
export function createFileFetcher(options: FileFetcherOptions): FetchFile {
  const { mayConnect = isPublic } = options;
  const connect = createConnector({
    ...options,
    mayConnect,
    timeoutMs: FETCH_TIMEOUT_MS,
    maxResponseBytes: MAX_FILE_BYTES + MAX_OTHER_BYTES,
  });
  const client = createHttpClient({ connect, timeoutMs: FETCH_TIMEOUT_MS, maxBodyBytes: MAX_FILE_BYTES });
  return async (url, signal) => {
    try {
      return await client.request(url, { signal }, async (reply) => {
        if (reply.statusCode !== 200)
          return failed(`${url.hostname} responds with status ${reply.statusCode} instead of 200`);
        const bytes = Buffer.from(await reply.body.arrayBuffer());
        return { kind: 'file', bytes, mediaType: fieldOf(reply, 'content-type') };
      });
    } catch (error) {
      return failed(
        isTimeout(error) || signal.aborted
          ? `${url.hostname} did not send it within ${FETCH_TIMEOUT_MS / SECOND} s`
          : reasonOf(error, url.hostname),
      );
    }
  };
}

function failed(reason: string): FetchedFile {
  return { kind: 'failed', reason };
}

function reasonOf(error: unknown, host: string): string {
  if (error instanceof ForbiddenAddress) return `${host} has no public address`;
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (error instanceof ResponseTooLarge || code === 'UND_ERR_RES_EXCEEDED_MAX_SIZE')
    return `it is larger than ${MAX_FILE_BYTES / 1024} KiB`;
  return `there is no HTTPS connection to ${host} with a valid certificate${code === '' ? '' : ` (${code})`}`;
}
