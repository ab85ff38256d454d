import { Agent } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import type * as AcmeClient from 'acme-client';
import { SECOND } from '../core/clock.ts';
import type { Resolver } from '../dns/resolver.ts';

/**
 * The conversation with a certificate authority (ACME, RFC 8555): one order for one name, proved over HTTP
 * (HTTP-01, RFC 8555 §8.3). It remembers nothing, decides nothing, and never tries again by itself: whoever asks
 * knows when it may be asked.
 */
export interface Authority {
  /** A new key and the certificate for it. Rejects with the authority's words, or HeldOff. */
  obtain(host: string): Promise<Issued>;
  /** Breaks off what is under way. */
  close(): void;
}

export interface Issued {
  /** PEM. */
  key: string;
  /** PEM, the host's own certificate first. */
  chain: string;
}

/** The authority has enough of us for now, whatever the name. */
export class HeldOff extends Error {
  override readonly name = 'HeldOff';
  /** Null: it did not say for how long. */
  readonly waitMs: number | null;

  constructor(waitMs: number | null) {
    super('the certificate authority asks for a pause (rate limit)');
    this.waitMs = waitMs;
  }
}

export interface AuthoritySettings {
  /** URL of its directory. */
  directory: string;
  /** Where it may write to. */
  email: string | null;
  /** Authorities in PEM that vouch for the directory itself, in place of the usual ones. */
  trusted: string | null;
  userAgent: string;
  resolver: Resolver;
  /** The account's key in PEM: the account is whoever has it. */
  accountKey(): Promise<string>;
  /** Puts up, and takes down, what the authority comes to look for. */
  offer(token: string, answer: string): void;
  withdraw(token: string): void;
}

const REQUEST_MS = 30 * SECOND;
const LARGEST_ANSWER = 1024 * 1024;
/** While the authority looks: first and longest pause between two questions, and how many. */
const POLL = { backoffMin: SECOND, backoffMax: 5 * SECOND, backoffAttempts: 20 };

export function createAuthority(settings: AuthoritySettings): Authority {
  const { directory, email, trusted, userAgent, resolver, offer, withdraw } = settings;
  const closing = new AbortController();
  let registered: Promise<Registered> | null = null;

  /** Loaded when it is needed: most houses never do. */
  async function register(): Promise<Registered> {
    const acme = await import('acme-client');
    setUp(acme.axios);
    const client = new acme.Client({
      directoryUrl: directory,
      accountKey: await settings.accountKey(),
      ...POLL,
    });
    // With a key that it knows, the authority answers with the account there is (RFC 8555 §7.3.1).
    const contact = email === null ? [] : [`mailto:${email}`];
    await client.createAccount({ termsOfServiceAgreed: true, contact });
    return { acme, client };
  }

  /** The library has one HTTP client for all: ours is the only use of it in this process. */
  function setUp({ defaults, interceptors }: Acme['axios']): void {
    // Its own would wait and repeat inside, for hours if told so, and hide why a connection failed.
    interceptors.request.clear();
    interceptors.response.clear();
    interceptors.response.use((response) => {
      const { status, headers } = response;
      if (status === 429 || status === 503) throw new HeldOff(retryAfterMs(headers['retry-after']));
      return response;
    });
    defaults.headers.common['User-Agent'] = userAgent;
    defaults.timeout = REQUEST_MS;
    defaults.maxContentLength = LARGEST_ANSWER;
    defaults.proxy = false;
    defaults.signal = closing.signal;
    defaults.httpsAgent = new Agent({
      lookup: lookupBy(resolver),
      ...(trusted === null ? {} : { ca: trusted }),
    });
  }

  async function prove(client: Client, authorization: Authorization): Promise<void> {
    // Proved not long ago, and still good.
    if (authorization.status === 'valid') return;
    const challenge = authorization.challenges.find(({ type }) => type === 'http-01');
    if (challenge === undefined) throw new Error('the authority offers no HTTP-01 challenge');
    offer(challenge.token, await client.getChallengeKeyAuthorization(challenge));
    try {
      await client.completeChallenge(challenge);
      await client.waitForValidStatus(challenge);
    } finally {
      withdraw(challenge.token);
    }
  }

  return {
    obtain: async (host) => {
      registered ??= register();
      try {
        const { acme, client } = await registered;
        const order = await client.createOrder({ identifiers: [{ type: 'dns', value: host }] });
        for (const authorization of await client.getAuthorizations(order)) await prove(client, authorization);
        const [key, request] = await acme.crypto.createCsr(
          { altNames: [host] },
          await acme.crypto.createPrivateEcdsaKey('P-256'),
        );
        const chain = await client.getCertificate(await client.finalizeOrder(order, request));
        return { key: key.toString(), chain };
      } catch (error) {
        // The account may be what is wrong: the next order asks for it anew.
        registered = null;
        throw error;
      }
    },
    close: () => closing.abort(),
  };
}

type Acme = typeof AcmeClient;
type Client = AcmeClient.Client;
type Authorization = Awaited<ReturnType<Client['getAuthorizations']>>[number];
interface Registered {
  acme: Acme;
  client: Client;
}

/** Seconds or a date (RFC 9110 §10.2.3); null when it says neither. */
function retryAfterMs(value: unknown): number | null {
  if (typeof value !== 'string') return null;
  if (/^\d+$/.test(value)) return Number(value) * SECOND;
  const date = Date.parse(value);
  return Number.isNaN(date) ? null : Math.max(0, date - Date.now());
}

function lookupBy(resolver: Resolver): LookupFunction {
  return (host, options, answer) => {
    const ask = async () => {
      const asked = await Promise.allSettled([resolver.a(host), resolver.aaaa(host)]);
      const found = asked.flatMap((each) => (each.status === 'fulfilled' ? each.value.records : []));
      if (found.length > 0) return found.map((address) => ({ address, family: isIP(address) }));
      throw asked[0].status === 'rejected' ? asked[0].reason : new Error(`${host} has no address`);
    };
    ask().then(
      (found) => {
        const [first] = found;
        if (options.all === true || first === undefined) answer(null, found);
        else answer(null, first.address, first.family);
      },
      (error: NodeJS.ErrnoException) => answer(error, ''),
    );
  };
}
