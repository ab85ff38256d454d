import { Agent } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type * as AcmeClient from 'acme-client';
import { SECOND } from '../core/clock.ts';
import type { Resolver } from '../dns/resolver.ts';
import type * as AcmeModule from './acme.ts';

/**
 * A client of a certificate authority (ACME, RFC 8555): one order for one name, validated over HTTP (HTTP-01, RFC 8555
 * §8.3). It has no state and does not retry; the caller limits the orders.
 */
export interface CertificateAuthority {
  /** Orders a certificate for a new key. Rejects with the authority's error, or with RateLimitedError. */
  obtain(host: string): Promise<IssuedCertificate>;
  /** Abandons the orders in progress: they reject immediately. */
  close(): void;
}

export interface IssuedCertificate {
  /** PEM. */
  key: string;
  /** PEM, the host's certificate first. */
  chain: string;
}

/** The authority accepts no requests for any name at present. */
export class RateLimitedError extends Error {
  override readonly name = 'RateLimitedError';
  /** Time until requests are accepted again; null: the authority stated none. */
  readonly waitMs: number | null;
  /** name: the limit concerns the name of the order only. all: it concerns our account, our address, or the authority's load. */
  readonly scope: 'name' | 'all';

  constructor(waitMs: number | null, scope: 'name' | 'all') {
    super(`rate limit of the certificate authority reached${scope === 'name' ? ' for the name' : ''}`);
    this.waitMs = waitMs;
    this.scope = scope;
  }
}

export interface CertificateAuthorityDeps {
  /** URL of the directory. */
  directory: string;
  /** Contact address of the account. */
  email: string | null;
  /** PEM of the authorities trusted for the directory itself, in place of the default ones. */
  trusted: string | null;
  userAgent: string;
  resolver: Resolver;
  /** The account's key in PEM. */
  accountKey(): Promise<string>;
  /** Publishes and withdraws the key authorization that the authority requests. */
  publish(token: string, keyAuthorization: string): void;
  withdraw(token: string): void;
}

const REQUEST_TIMEOUT_MS = 30 * SECOND;
const MAX_RESPONSE_BYTES = 1024 * 1024;
/** While the authority processes an order: first and longest pause between two status requests, and their number. */
const FIRST_POLL_MS = SECOND;
const MAX_POLL_MS = 5 * SECOND;
const MAX_POLLS = 20;

/**
 * Loads the ACME library and registers the account (RFC 8555 §7.3) with the first order, and again after one that
 * failed. Configures the library's only HTTP client, so that a process has one authority. After `close` every order
 * rejects.
 */
export function createCertificateAuthority(deps: CertificateAuthorityDeps): CertificateAuthority {
  const { directory, email, trusted, userAgent, resolver, publish, withdraw } = deps;
  const closing = new AbortController();
  let registered: Promise<Registered> | null = null;

  /** Loads the library, which most installations never need, and registers the account. */
  async function register(): Promise<Registered> {
    const { acme } = await import('./acme.ts');
    configureHttp(acme.axios);
    const client = new acme.Client({
      directoryUrl: directory,
      accountKey: await deps.accountKey(),
    });
    // For a known key the authority returns the existing account (RFC 8555 §7.3.1).
    const contact = email === null ? [] : [`mailto:${email}`];
    await client.createAccount({ termsOfServiceAgreed: true, contact });
    return { acme, client };
  }

  /** The library has one global HTTP client; nothing else in this process uses it. */
  function configureHttp({ defaults, interceptors }: Acme['axios']): void {
    // Its own interceptors retry, for hours if the server requests it, and conceal why a connection failed.
    interceptors.request.clear();
    interceptors.response.clear();
    interceptors.response.use((response) => {
      const { status, headers, data } = response;
      if (status === 429 || status === 503)
        throw new RateLimitedError(retryAfterMs(headers['retry-after']), limitScope(status, data));
      return response;
    });
    defaults.headers.common['User-Agent'] = userAgent;
    defaults.timeout = REQUEST_TIMEOUT_MS;
    defaults.maxContentLength = MAX_RESPONSE_BYTES;
    defaults.proxy = false;
    defaults.signal = closing.signal;
    defaults.httpsAgent = new Agent({
      lookup: lookupBy(resolver),
      ...(trusted === null ? {} : { ca: trusted }),
    });
  }

  async function validate(client: Client, order: Order, authorization: Authorization): Promise<void> {
    // Validated recently.
    if (authorization.status === 'valid') return;
    const challenge = authorization.challenges.find(({ type }) => type === 'http-01');
    if (challenge === undefined) throw new Error('the authority offers no HTTP-01 challenge');
    publish(challenge.token, await client.getChallengeKeyAuthorization(challenge));
    try {
      await client.completeChallenge(challenge);
      await completed(async () => {
        const current = await client.getAuthorizations(order);
        return current.find(({ url }) => url === authorization.url) ?? authorization;
      });
    } finally {
      withdraw(challenge.token);
    }
  }

  /**
   * Requests the state of an authorization or an order until it is valid. Rejects with the authority's error when it has
   * failed, and immediately after `close`: the polling of the library cannot be interrupted.
   */
  async function completed<Item extends Order | Authorization>(request: () => Promise<Item>): Promise<Item> {
    for (let polls = 1, waitMs = FIRST_POLL_MS; ; polls++, waitMs = Math.min(waitMs * 2, MAX_POLL_MS)) {
      try {
        const item = await request();
        if (item.status === 'valid') return item;
        if (!UNFINISHED.has(item.status)) throw new OrderFailed(problemOf(item));
        if (polls === MAX_POLLS) throw new Error('the authority did not complete the order in time');
      } catch (error) {
        // The next request may succeed.
        if (error instanceof OrderFailed || closing.signal.aborted || polls === MAX_POLLS) throw error;
      }
      await sleep(waitMs, undefined, { signal: closing.signal });
    }
  }

  return {
    obtain: async (host) => {
      registered ??= register();
      try {
        const { acme, client } = await registered;
        const order = await client.createOrder({ identifiers: [{ type: 'dns', value: host }] });
        for (const authorization of await client.getAuthorizations(order))
          await validate(client, order, authorization);
        const [key, request] = await acme.crypto.createCsr(
          { altNames: [host] },
          await acme.crypto.createPrivateEcdsaKey('P-256'),
        );
        const finalized = await client.finalizeOrder(order, request);
        const issued = await completed(async () =>
          finalized.status === 'valid' ? finalized : client.getOrder(finalized),
        );
        return { key: key.toString(), chain: await client.getCertificate(issued) };
      } catch (error) {
        // The account may be invalid: the next order requests it again.
        registered = null;
        throw error;
      }
    },
    close: () => closing.abort(),
  };
}

type Acme = (typeof AcmeModule)['acme'];
type Client = AcmeClient.Client;
type Authorization = AcmeClient.Authorization;
type Order = AcmeClient.Order;
interface Registered {
  acme: Acme;
  client: Client;
}

/** States of orders and authorizations that are not final (RFC 8555 §7.1.6). */
const UNFINISHED: ReadonlySet<string> = new Set(['pending', 'ready', 'processing']);

/** The authority has refused the order. */
class OrderFailed extends Error {}

/** The detail of the authority's problem document (RFC 8555 §6.7), else the state. */
function problemOf(item: Order | Authorization): string {
  const errors = 'challenges' in item ? item.challenges.map(({ error }) => error) : [item.error];
  const [problem] = errors.filter((error) => error !== undefined);
  const detail = problem !== undefined && 'detail' in problem ? problem.detail : null;
  return typeof detail === 'string' ? detail.replaceAll('\n', '') : `the authority states "${item.status}"`;
}

/** Seconds or a date (RFC 9110 §10.2.3); null when the value is neither. */
/** Words of a problem document (RFC 8555 §6.7) about a limit of the account or the address. */
const LIMIT_OF_ALL = /\b(?:account|ip address|ip range|new orders|registrations|requests)\b/i;

/**
 * Whose limit a response states. The authorities limit certificates of a name, too, also those that others order: the
 * owner of one name must not stop the orders of all others.
 */
function limitScope(status: number, data: unknown): 'name' | 'all' {
  const detail = typeof data === 'object' && data !== null && 'detail' in data ? String(data.detail) : '';
  return status === 503 || LIMIT_OF_ALL.test(detail) ? 'all' : 'name';
}

function retryAfterMs(value: unknown): number | null {
  if (typeof value !== 'string') return null;
  if (/^\d+$/.test(value)) return Number(value) * SECOND;
  const date = Date.parse(value);
  return Number.isNaN(date) ? null : Math.max(0, date - Date.now());
}

function lookupBy(resolver: Resolver): LookupFunction {
  return (host, options, answer) => {
    const lookup = async () => {
      const results = await Promise.allSettled([resolver.a(host), resolver.aaaa(host)]);
      const found = results.flatMap((each) => (each.status === 'fulfilled' ? each.value.records : []));
      if (found.length > 0) return found.map((address) => ({ address, family: isIP(address) }));
      throw results[0].status === 'rejected' ? results[0].reason : new Error(`${host} has no address`);
    };
    lookup().then(
      (found) => {
        const [first] = found;
        if (options.all === true || first === undefined) answer(null, found);
        else answer(null, first.address, first.family);
      },
      (error: NodeJS.ErrnoException) => answer(error, ''),
    );
  };
}
