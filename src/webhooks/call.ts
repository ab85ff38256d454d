import { LRUCache } from 'lru-cache';
import { errors } from 'undici';
import { SECOND } from '../core/clock.ts';
import { errorCode, errorText } from '../core/errors.ts';
import {
  type ConnectorOptions,
  createConnector,
  ForbiddenAddress,
  ResponseTooLarge,
} from '../dns/connector.ts';
import { DnsError } from '../dns/dns-error.ts';
import { createHttpClient, type HttpClient, isTimeout } from '../dns/http-client.ts';
import { lookupsOf } from '../dns/resolver.ts';
import { isCallable } from './input.ts';
import { isOwnAddress } from './private-networks.ts';

/** One POST to an endpoint of an account. */
export interface WebhookCall {
  accountId: string;
  url: string;
  headers: Record<string, string>;
  body: string;
}

export type CallResult =
  /** `body`: the first KiB as text. */
  | { kind: 'response'; status: number; body: string; retryAfter: string | undefined }
  /** `reason`: for the account. `detail`: for the operator's log only. */
  | { kind: 'no-response'; reason: string; detail?: string; timedOut?: boolean };

export interface WebhookCallerOptions extends Omit<ConnectorOptions, 'timeoutMs' | 'mayConnect'> {
  /** Called for each connection: a reload changes it. */
  allowPrivateNetworks(): boolean;
  /** Ports of the daemon itself at addresses of this machine. Default: none. */
  ownPorts?(): ReadonlySet<number>;
  userAgent: string;
  /** For a whole call. Default: 15 s. */
  timeoutMs?: number;
}

const CALL_TIMEOUT_MS = 15 * SECOND;

/** Bytes of a response body that are stored. */
const MAX_STORED_BYTES = 1024;
/** Bytes that are read so that the connection can be used again; beyond them it is closed. */
const MAX_READ_BYTES = 64 * 1024;
/** Accounts whose connections stay open between calls. */
const MAX_CLIENTS = 100;

/**
 * Opens no connection until `call`; connections are used again while the endpoint keeps them open, for calls of the same
 * account. The accounts share the concurrent queries of the resolver. `close` ends the calls in progress, which resolve as
 * `no-response`.
 */
export function createWebhookCaller(options: WebhookCallerOptions) {
  const { timeoutMs = CALL_TIMEOUT_MS, userAgent } = options;
  // One connection for each call; the sender limits the calls of each webhook.
  const createClient = (accountId: string) => {
    const connector = (mayConnect: (address: string) => boolean) =>
      createConnector({
        ...options,
        resolver: lookupsOf(options.resolver, `webhooks ${accountId}`),
        timeoutMs,
        mayConnect: (address) => isCallable(address, options.allowPrivateNetworks()) && mayConnect(address),
      });
    const connect = connector(() => true);
    const connectElsewhere = connector((address) => !isOwnAddress(address));
    return createHttpClient({
      connect: (target, callback) => {
        const port = Number(target.port) || (target.protocol === 'https:' ? 443 : 80);
        (options.ownPorts?.().has(port) ? connectElsewhere : connect)(target, callback);
      },
      timeoutMs,
      userAgent,
      keepsConnections: true,
    });
  };

  /** Clients that are not used again and end with their calls. */
  const ending = new Set<HttpClient>();
  const clients = new LRUCache<string, HttpClient>({
    max: MAX_CLIENTS,
    dispose: (client) => {
      ending.add(client);
      const forget = () => ending.delete(client);
      // Rejected when the caller has closed it.
      client.end().then(forget, forget);
    },
  });

  function clientOf(accountId: string): HttpClient {
    const known = clients.get(accountId);
    if (known !== undefined) return known;
    const client = createClient(accountId);
    clients.set(accountId, client);
    return client;
  }

  return {
    /** Never rejects; follows no redirect. Null: `signal` was aborted before a response arrived. */
    call: async (
      { accountId, url, headers, body }: WebhookCall,
      signal: AbortSignal,
    ): Promise<CallResult | null> => {
      const all = { 'content-type': 'application/json', ...headers };
      const request = { method: 'POST' as const, headers: all, body, signal };
      try {
        return await clientOf(accountId).request(url, request, async (reply) => ({
          kind: 'response',
          status: reply.statusCode,
          body: await readBeginning(reply.body),
          retryAfter: [reply.headers['retry-after']].flat()[0],
        }));
      } catch (error) {
        if (signal.aborted) return null;
        if (isTimeout(error))
          return {
            kind: 'no-response',
            reason: `no response within ${timeoutMs / SECOND} s`,
            timedOut: true,
          };
        return {
          kind: 'no-response',
          ...callFailure(error, new URL(url).hostname, options.allowPrivateNetworks()),
        };
      }
    },
    close: async (): Promise<void> => {
      await Promise.all([...clients.values(), ...ending].map((client) => client.close()));
    },
  };
}

export type WebhookCaller = ReturnType<typeof createWebhookCaller>;

/** Returns the first KiB of a body as text, or less if the body is incomplete. */
async function readBeginning(body: AsyncIterable<Buffer>): Promise<string> {
  const stored: Buffer[] = [];
  let read = 0;
  try {
    for await (const chunk of body) {
      if (read < MAX_STORED_BYTES) stored.push(chunk.subarray(0, MAX_STORED_BYTES - read));
      read += chunk.length;
      if (read > MAX_READ_BYTES) break;
    }
  } catch {
    // The status alone decides; an incomplete body does not change the result.
  }
  // `stream` omits a character that is cut at the end.
  return new TextDecoder().decode(Buffer.concat(stored), { stream: true });
}

/** Why a call got no response. */
interface CallFailure {
  /** For the account: without addresses except that of its URL, without resolvers and contents of certificates. */
  reason: string;
  /** For the operator's log: the message of the error. */
  detail: string;
  timedOut: boolean;
}

const MAX_DETAIL_LENGTH = 300;
const TIMEOUT = /^(ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT)$/;

/**
 * Describes a failed call. An account must not learn from it what names resolve to in the operator's network: where
 * private networks may not be called, a private address, no address and an unknown name have the same reason.
 */
function callFailure(error: unknown, hostname: string, allowPrivateNetworks: boolean): CallFailure {
  // Several addresses were tried and each failed: the first error represents all.
  const cause: unknown = error instanceof AggregateError ? (error.errors[0] ?? error) : error;
  const detail = errorText(cause);
  return {
    reason: reasonOf(cause, hostname, allowPrivateNetworks),
    detail: detail.slice(0, MAX_DETAIL_LENGTH),
    timedOut: TIMEOUT.test(errorCode(cause)),
  };
}

function reasonOf(error: unknown, hostname: string, allowPrivateNetworks: boolean): string {
  if (error instanceof DnsError && !error.absent && error.code !== 'EBADNAME')
    return `${hostname} could not be looked up in DNS`;
  if (error instanceof DnsError || error instanceof ForbiddenAddress) {
    if (!allowPrivateNetworks) return `${hostname} has no public address that webhooks may call`;
    if (error instanceof ForbiddenAddress) return `${hostname} has no address that webhooks may call`;
    return error.code === 'ENOTFOUND'
      ? `${hostname} does not exist in DNS`
      : `${hostname} has no address in DNS`;
  }
  if (error instanceof ResponseTooLarge) return 'the response is too large';
  if (error instanceof errors.HTTPParserError) return 'the response is not valid HTTP';
  const code = errorCode(error);
  return REASONS.find(([codes]) => codes.test(code))?.[1] ?? 'the call failed';
}

/** Reasons by error code of Node, OpenSSL or undici; the first match applies. */
const REASONS: readonly [codes: RegExp, reason: string][] = [
  [/^ECONNREFUSED$/, 'the connection was refused'],
  [TIMEOUT, 'the connection timed out'],
  [/^E(HOST|NET)(UNREACH|DOWN)$/, 'the host cannot be reached'],
  [/^(ECONNRESET|EPIPE|UND_ERR_SOCKET)$/, 'the connection was closed before a response arrived'],
  [/^ERR_TLS_CERT_ALTNAME_INVALID$/, 'the certificate is not valid for the host name'],
  [/^CERT_HAS_EXPIRED$/, 'the certificate has expired'],
  [/CERT|SIGNATURE/, 'the certificate is not trusted'],
  [/^(EPROTO$|ERR_SSL_|ERR_TLS_)/, 'the TLS handshake failed'],
  [/HEADER(S)?_OVERFLOW$/, 'the header of the response is too large'],
];
