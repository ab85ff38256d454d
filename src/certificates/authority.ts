import { createHash, createPrivateKey, createPublicKey, type KeyObject, sign } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import * as z from 'zod';
import { SECOND } from '../core/clock.ts';
import { generateCertificateRequest } from '../core/x509.ts';
import { createConnector } from '../dns/connector.ts';
import { createHttpClient, type HttpClient } from '../dns/http-client.ts';
import type { Resolver } from '../dns/resolver.ts';

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

const directorySchema = z.object({ newNonce: z.url(), newAccount: z.url(), newOrder: z.url() });
type Directory = z.output<typeof directorySchema>;

/** RFC 8555 §6.7, as far as it is used. Other values of the fields are ignored. */
const problemSchema = z.object({
  type: z.string().optional().catch(undefined),
  /** On one line. */
  detail: z
    .string()
    .transform((text) => text.replaceAll('\n', ''))
    .optional()
    .catch(undefined),
});
type Problem = z.output<typeof problemSchema>;

/** States of an order or an authorization (RFC 8555 §7.1.6). */
const status = z.enum([
  'pending',
  'ready',
  'processing',
  'valid',
  'invalid',
  'deactivated',
  'expired',
  'revoked',
]);
type Status = z.output<typeof status>;

const orderSchema = z.object({
  status,
  authorizations: z.array(z.url()),
  finalize: z.url(),
  /** Once it is valid. */
  certificate: z.url().optional(),
  error: problemSchema.optional(),
});

const authorizationSchema = z.object({
  status,
  challenges: z.array(
    z.object({
      type: z.string(),
      url: z.url(),
      // base64url (RFC 8555 §8.3): it becomes a part of a path.
      token: z
        .string()
        .regex(/^[\w-]+$/)
        .optional(),
      error: problemSchema.optional(),
    }),
  ),
});

interface Reply<Body> {
  status: number;
  headers: IncomingHttpHeaders;
  body: Body;
}

const REQUEST_TIMEOUT_MS = 30 * SECOND;
const MAX_RESPONSE_BYTES = 1024 * 1024;
/** The server may refuse a nonce that is too old (RFC 8555 §6.5). */
const MAX_NONCES = 5;
/** While the authority processes an order: first and longest pause between two status requests, and their number. */
const FIRST_POLL_MS = SECOND;
const MAX_POLL_MS = 5 * SECOND;
const MAX_POLLS = 20;
const UNFINISHED: ReadonlySet<Status> = new Set(['pending', 'ready', 'processing']);

export type CertificateAuthority = ReturnType<typeof createCertificateAuthority>;

/**
 * A client of a certificate authority (ACME, RFC 8555): one order for one name, validated over HTTP (HTTP-01, RFC 8555
 * §8.3). It does not retry; the caller limits the orders. Registers the account (RFC 8555 §7.3) with the first order, and
 * again after one that failed. After `close` every order rejects. Connections are open during an order only.
 */
export function createCertificateAuthority({
  directory,
  email,
  trusted,
  userAgent,
  resolver,
  accountKey,
  publish,
  withdraw,
}: {
  /** URL of the directory. */
  directory: string;
  /** Contact address of the account. */
  email: string | null;
  /** PEM of the authorities trusted for the directory itself, in place of the default ones. */
  trusted: string | null;
  userAgent: string;
  resolver: Resolver;
  /** The account's key on P-256 in PEM. */
  accountKey(): Promise<string>;
  /** Publishes and withdraws the key authorization that the authority requests. */
  publish(token: string, keyAuthorization: string): void;
  withdraw(token: string): void;
}) {
  const closing = new AbortController();
  const connect = createConnector({
    resolver,
    // The operator has chosen the directory.
    mayConnect: () => true,
    timeoutMs: REQUEST_TIMEOUT_MS,
    maxResponseBytes: MAX_RESPONSE_BYTES,
    ...(trusted === null ? {} : { trusted }),
  });
  let account: Promise<Account> | null = null;

  /** `parse` reads the body of a response that is no error. */
  async function request<Body>(
    url: string,
    client: HttpClient,
    { method, body }: { method: 'GET' | 'HEAD' | 'POST'; body?: string },
    parse: (text: string) => Body,
  ): Promise<Reply<Body>> {
    const content = body === undefined ? {} : { body, headers: { 'content-type': 'application/jose+json' } };
    const outgoing = { method, ...content, signal: closing.signal };
    const { statusCode, headers, text } = await client.request(url, outgoing, async (reply) => ({
      ...reply,
      text: await reply.body.text(),
    }));
    if (statusCode < 300) return { status: statusCode, headers, body: parse(text) };
    const problem = problemIn(text);
    if (statusCode === 429 || statusCode === 503)
      throw new RateLimitedError(
        retryAfterMs(headers['retry-after']),
        statusCode === 503 || LIMIT_OF_ALL.test(problem.detail ?? '') ? 'all' : 'name',
      );
    throw new Refused(statusCode, problem, headers);
  }

  /**
   * Returns the function that sends requests signed with the account's key (RFC 8555 §6.2), which `kid` names once it is
   * registered. A `payload` of null is a POST-as-GET (§6.3).
   */
  function createPost(
    client: HttpClient,
    { directory: { newNonce }, key, kid }: Omit<Account, 'kid'> & { kid: string | null },
  ) {
    const signer = kid === null ? { jwk: publicKeyOf(key) } : { kid };
    let nonce: string | undefined;

    return async <Body>(
      url: string,
      payload: object | null,
      parse: (text: string) => Body,
    ): Promise<Reply<Body>> => {
      for (let nonces = 1; ; nonces++) {
        nonce ??= nonceOf((await request(newNonce, client, { method: 'HEAD' }, () => null)).headers);
        const head = base64url(JSON.stringify({ alg: 'ES256', nonce, url, ...signer }));
        const content = payload === null ? '' : base64url(JSON.stringify(payload));
        const signature = sign('sha256', Buffer.from(`${head}.${content}`), {
          key,
          dsaEncoding: 'ieee-p1363',
        });
        const body = JSON.stringify({ protected: head, payload: content, signature: base64url(signature) });
        nonce = undefined;
        try {
          const reply = await request(url, client, { method: 'POST', body }, parse);
          nonce = nonceOf(reply.headers);
          return reply;
        } catch (error) {
          if (!(error instanceof Refused)) throw error;
          nonce = nonceOf(error.headers);
          if (error.problem.type !== BAD_NONCE || nonces === MAX_NONCES) throw error;
        }
      }
    };
  }

  /** For a known key the authority returns the existing account (RFC 8555 §7.3.1). */
  async function register(client: HttpClient): Promise<Account> {
    const { body: found } = await request(directory, client, { method: 'GET' }, parseDirectory);
    const key = createPrivateKey(await accountKey());
    const contact = email === null ? [] : [`mailto:${email}`];
    const post = createPost(client, { directory: found, key, kid: null });
    const terms = { termsOfServiceAgreed: true, ...(email === null ? {} : { contact }) };
    const created = await post(found.newAccount, terms, () => null);
    const registered = { directory: found, key, kid: locationOf(created.headers) };
    // An existing account keeps the contact that it has, unless it is updated (RFC 8555 §7.3.2).
    if (created.status === 200) await createPost(client, registered)(registered.kid, { contact }, () => null);
    return registered;
  }

  /** Requests the state until it is valid. Rejects with the authority's error when it has failed, or after `close`. */
  async function completed<Item extends { status: Status }>(
    get: () => Promise<Item>,
    errorsOf: (item: Item) => (Problem | undefined)[],
  ): Promise<Item> {
    for (let polls = 1, waitMs = FIRST_POLL_MS; ; polls++, waitMs = Math.min(waitMs * 2, MAX_POLL_MS)) {
      const item = await get().catch((error: unknown) => {
        // The next request may succeed.
        if (closing.signal.aborted || polls === MAX_POLLS) throw error;
        return null;
      });
      if (item?.status === 'valid') return item;
      if (item !== null && !UNFINISHED.has(item.status)) {
        const problem = errorsOf(item).find((each) => each !== undefined);
        throw new Error(problem?.detail ?? `the authority states "${item.status}"`);
      }
      if (polls === MAX_POLLS) throw new Error('the authority did not complete the order in time');
      await sleep(waitMs, undefined, { signal: closing.signal });
    }
  }

  async function order(host: string, client: HttpClient): Promise<IssuedCertificate> {
    account ??= register(client);
    const { directory: found, key } = await account;
    const post = createPost(client, await account);
    const get = async <Body>(url: string, schema: z.ZodType<Body>) =>
      (await post(url, null, readerOf(schema))).body;

    const identifiers = [{ type: 'dns', value: host }];
    const placed = await post(found.newOrder, { identifiers }, readerOf(orderSchema));
    const url = locationOf(placed.headers);
    for (const authorization of placed.body.authorizations) {
      const { status, challenges } = await get(authorization, authorizationSchema);
      // Validated recently.
      if (status === 'valid') continue;
      const challenge = challenges.find(({ type }) => type === 'http-01');
      if (challenge?.token === undefined) throw new Error('the authority offers no HTTP-01 challenge');
      const { token } = challenge;
      // RFC 8555 §8.1.
      publish(token, `${token}.${thumbprint(key)}`);
      try {
        await post(challenge.url, {}, () => null);
        await completed(
          () => get(authorization, authorizationSchema),
          (item) => item.challenges.map(({ error }) => error),
        );
      } finally {
        withdraw(token);
      }
    }
    const generated = generateCertificateRequest(host);
    await post(placed.body.finalize, { csr: base64url(generated.request) }, () => null);
    const { certificate } = await completed(
      () => get(url, orderSchema),
      ({ error }) => [error],
    );
    if (certificate === undefined) throw new Error('the authority names no certificate of the order');
    const chain = await post(certificate, null, (text) => text);
    return { key: generated.key, chain: chain.body };
  }

  return {
    /** Orders a certificate for a new key. Rejects with the authority's error, or with RateLimitedError. */
    obtain: async (host: string): Promise<IssuedCertificate> => {
      const client = createHttpClient({
        connect,
        timeoutMs: REQUEST_TIMEOUT_MS,
        userAgent,
        keepsConnections: true,
      });
      try {
        return await order(host, client);
      } catch (error) {
        // The account may be invalid: the next order requests it again.
        account = null;
        throw error;
      } finally {
        await client.close();
      }
    },
    /** Abandons the orders in progress: they reject immediately. */
    close: (): void => closing.abort(new Error('the order was canceled')),
  };
}

interface Account {
  directory: Directory;
  key: KeyObject;
  /** The account's URL. */
  kid: string;
}

const BAD_NONCE = 'urn:ietf:params:acme:error:badNonce';

/** The authority has refused a request. */
class Refused extends Error {
  readonly problem: Problem;
  readonly headers: IncomingHttpHeaders;

  constructor(status: number, problem: Problem, headers: IncomingHttpHeaders) {
    const { location } = headers;
    const target = status < 400 && typeof location === 'string' ? ` and names ${location}` : '';
    super(problem.detail ?? `the authority replied ${status}${target}`);
    this.problem = problem;
    this.headers = headers;
  }
}

function parseDirectory(text: string): Directory {
  try {
    return directorySchema.parse(JSON.parse(text));
  } catch (error) {
    throw new Error('the URL of the directory does not lead to a directory of an ACME server', {
      cause: error,
    });
  }
}

/** Reads a body; what is not as the RFC requires is an error that names it. */
function readerOf<Body>(schema: z.ZodType<Body>): (text: string) => Body {
  return (text) => {
    const { success, data, error } = schema.safeParse(JSON.parse(text));
    if (!success) throw new Error(`the reply of the authority is not valid: ${z.prettifyError(error)}`);
    return data;
  };
}

/** The problem in the body of an error; empty if it has none. */
function problemIn(text: string): Problem {
  try {
    return problemSchema.parse(JSON.parse(text));
  } catch {
    return {};
  }
}

function nonceOf(headers: IncomingHttpHeaders): string | undefined {
  const nonce = headers['replay-nonce'];
  return typeof nonce === 'string' ? nonce : undefined;
}

function locationOf(headers: IncomingHttpHeaders): string {
  const { location } = headers;
  if (typeof location !== 'string') throw new Error('the reply of the authority has no Location field');
  return location;
}

function base64url(content: string | Buffer): string {
  return Buffer.from(content).toString('base64url');
}

/** The members that the thumbprint needs, in their order (RFC 7638 §3.2). */
function publicKeyOf(key: KeyObject) {
  const { crv, kty, x, y } = createPublicKey(key).export({ format: 'jwk' });
  return { crv, kty, x, y };
}

function thumbprint(key: KeyObject): string {
  return createHash('sha256')
    .update(JSON.stringify(publicKeyOf(key)))
    .digest('base64url');
}

/**
 * Words of a problem document (RFC 8555 §6.7) about a limit of the account or the address. Other limits concern a name, also
 * its certificates that others ordered: the owner of one name must not stop the orders of all others.
 */
const LIMIT_OF_ALL = /\b(?:account|ip address|ip range|new orders|registrations|requests)\b/i;

/** Seconds or a date (RFC 9110 §10.2.3); null when the value is neither. */
function retryAfterMs(value: unknown): number | null {
  if (typeof value !== 'string') return null;
  if (/^\d+$/.test(value)) return Number(value) * SECOND;
  const date = Date.parse(value);
  return Number.isNaN(date) ? null : Math.max(0, date - Date.now());
}
