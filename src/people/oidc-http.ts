import { Agent } from 'undici';
import { SECOND } from '../core/clock.ts';
import { isForbidden, isLoopback, literalAddress } from '../dns/address-kinds.ts';
import { createConnector } from '../dns/connector.ts';
import type { Resolver } from '../dns/resolver.ts';
import type { CustomFetch } from './oidc-library.ts';

/** Requests to the OpenID Connect provider: follows no redirect. */
export interface ProviderHttp {
  /** Replaces `fetch` in the library. Rejects when the response is late or too large. */
  fetch: CustomFetch;
  /** Ends the requests in progress, which reject. */
  close(): Promise<void>;
}

/** For a whole request. */
export const PROVIDER_TIMEOUT_MS = 10 * SECOND;
/** Bytes of a response. Tokens with many groups have some ten KiB. */
const MAX_RESPONSE_BYTES = 1024 * 1024;
const MAX_HEADER_BYTES = 32 * 1024;
/** Statuses of responses without a body, for which `Response` accepts none. */
const WITHOUT_BODY: ReadonlySet<number> = new Set([204, 205, 304]);

/**
 * Opens no connection until `fetch`, and keeps none open. The endpoints are those of the provider's metadata: link-local
 * addresses are never called, and `http` only on this machine, because the requests contain the client secret.
 */
export function createProviderHttp(resolver: Resolver): ProviderHttp {
  const agent = new Agent({
    connect: createConnector({
      resolver,
      timeoutMs: PROVIDER_TIMEOUT_MS,
      maxResponseBytes: 2 * MAX_RESPONSE_BYTES,
      mayConnect: (address) => !isForbidden(address),
    }),
    maxHeaderSize: MAX_HEADER_BYTES,
    maxResponseSize: MAX_RESPONSE_BYTES,
    pipelining: 0,
    keepAliveTimeout: 1,
    // One deadline for the whole request, below.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  return {
    fetch: async (address, { method, headers, body, signal }) => {
      const url = new URL(address);
      if (url.protocol === 'http:' && !isOnThisMachine(url.hostname))
        throw new Error(`the provider's endpoint ${url.origin} must have https`);
      const late = AbortSignal.timeout(PROVIDER_TIMEOUT_MS);
      const response = await agent.request({
        origin: url.origin,
        path: url.pathname + url.search,
        method: method === 'POST' ? 'POST' : 'GET',
        headers,
        body: body instanceof URLSearchParams || typeof body === 'string' ? String(body) : null,
        signal: signal === undefined ? late : AbortSignal.any([late, signal]),
      });
      const content = await response.body.arrayBuffer();
      return new Response(WITHOUT_BODY.has(response.statusCode) ? null : content, {
        status: response.statusCode,
        headers: Object.entries(response.headers).flatMap(([name, values = []]) =>
          [values].flat().map((value): [string, string] => [name, value]),
        ),
      });
    },
    close: () => agent.destroy(),
  };
}

function isOnThisMachine(hostname: string): boolean {
  const address = literalAddress(hostname);
  return hostname === 'localhost' || (address !== null && isLoopback(address));
}
