import { type Clock, HOUR, MINUTE, SECOND } from '../../core/clock.ts';
import { abortAfter } from '../../core/concurrency/abort.ts';
import { createFairLimit, createGate } from '../../core/concurrency/gate.ts';
import { inSlices } from '../../core/concurrency/slices.ts';
import { errorCode } from '../../core/errors.ts';
import { createExpiringCache } from '../../core/lru.ts';
import { createTokenBuckets } from '../../core/token-bucket.ts';
import { isPublic } from '../../dns/address-kinds.ts';
import { type ConnectorOptions, createConnector, ForbiddenAddress } from '../../dns/connector.ts';
import { DnsError } from '../../dns/dns-error.ts';
import { createHttpClient, fieldOf, type HttpReply, isTimeout } from '../../dns/http-client.ts';
import { lookupsOf } from '../../dns/resolver.ts';
import {
  addressesInSteps,
  type Check,
  type ContentAddresses,
  type ContentCheckId,
  contentCheck,
} from '../../mail/content-checks.ts';

/*
 * Opens the links of content, and asks for its images, when a person requests it: accounts choose the addresses, so that
 * only public ones are connected to, also behind redirects. An address is asked with HEAD, else with GET, of whose response
 * only the header is read.
 *
 * Opened is only what stands in the source of the content as it is sent. An address with a value of a recipient, or of
 * the footer, could confirm, cancel or unsubscribe. Neither are pages of this server opened.
 */

const MAX_LINKS = 30;
const MAX_IMAGES = 30;
/** For a whole check, and for one request. */
const CHECK_TIMEOUT_MS = 20 * SECOND;
const REQUEST_TIMEOUT_MS = 5 * SECOND;
const MAX_REDIRECTS = 5;
/** Checks at the same time, and requests of all of them. */
const CHECKS = { concurrency: 16, perKey: 1, maxWaiting: 16, maxWaitingPerKey: 2 };
const REQUESTS = { concurrency: 24, perKey: 4 };
/** Addresses that an account opens. */
const RATE = { burst: 600, perSecond: 600 / (HOUR / SECOND) };
const MAX_ACCOUNTS = 10_000;
/** What was found is asked for again after; a fault may be corrected soon. */
const CACHED_MS = { found: 5 * MINUTE, fault: 30 * SECOND };
const MAX_CACHED = 5000;
/** Those of web sites: a check must not examine the ports of others. */
const PORTS = new Set(['', '80', '443', '8080', '8443']);
/** Larger images load slowly on phones. */
const LARGE_IMAGE_BYTES = 1024 * 1024;
const MAX_TEXT = 200;

type Kind = 'link' | 'image';

/** What an address responds. */
type Probe =
  | { kind: 'response'; status: number; mediaType: string; bytes: number }
  /** `reason`: a short word, without addresses. `isGone`: a later attempt would fail, too. */
  | { kind: 'none'; reason: string; isGone: boolean };

export interface LinkCheckOptions extends Pick<ConnectorOptions, 'resolver' | 'trusted'> {
  /** Monotonic. */
  monotonic: Clock;
  userAgent: string;
  /** Whether a host leads to this server, whose pages are not opened. */
  isOwnHost(host: string): boolean;
  /** Default: public addresses alone. */
  mayConnect?: (address: string) => boolean;
  /** Default: those of web sites. */
  ports?: ReadonlySet<string>;
}

/** Content whose links are checked. */
export interface LinkedContent {
  /** As a recipient would see it. */
  html: string;
  /** As it was written, with variables. */
  source: string;
}

/** What a check opens, and what it does not. */
interface Selection {
  links: URL[];
  images: URL[];
  /** Addresses that are not opened because of what they are. */
  skipped: number;
  /** Those above the limits. */
  excess: number;
}

/** `close` ends the checks in progress. */
export function createLinkChecks(options: LinkCheckOptions) {
  const { monotonic, userAgent, isOwnHost, ports = PORTS } = options;
  const connect = createConnector({
    ...options,
    resolver: lookupsOf(options.resolver, 'link checks'),
    mayConnect: options.mayConnect ?? isPublic,
    timeoutMs: REQUEST_TIMEOUT_MS,
  });
  const client = createHttpClient({ connect, timeoutMs: REQUEST_TIMEOUT_MS, userAgent });
  const closing = new AbortController();
  const gate = createGate(CHECKS);
  const requests = createFairLimit(REQUESTS);
  const buckets = createTokenBuckets(monotonic, RATE, MAX_ACCOUNTS);
  const cache = createExpiringCache<Probe>(monotonic, MAX_CACHED);

  const isOpened = (url: URL) =>
    ports.has(url.port) && url.username === '' && url.password === '' && !isOwnHost(url.hostname);

  function select(shown: ContentAddresses, written: ContentAddresses): Selection {
    const choose = (kind: 'links' | 'images', max: number) => {
      const literal = new Set(written[kind].filter((address) => !/\{[{%]/.test(address)));
      const urls = new Map<string, URL>();
      const skipped = new Set<string>();
      for (const address of shown[kind]) {
        if (!/^https?:/i.test(address) && !address.includes('{{')) continue;
        const url = literal.has(address) ? URL.parse(address) : null;
        if (url === null || !isOpened(url)) skipped.add(address);
        else urls.set(urlWithoutFragment(url), url);
      }
      const all = [...urls.values()];
      return { urls: all.slice(0, max), skipped: skipped.size, excess: Math.max(0, all.length - max) };
    };
    const links = choose('links', MAX_LINKS);
    const images = choose('images', MAX_IMAGES);
    return {
      links: links.urls,
      images: images.urls,
      skipped: links.skipped + images.skipped,
      excess: links.excess + images.excess,
    };
  }

  function ask(method: 'HEAD' | 'GET', url: URL, signal: AbortSignal) {
    return client.request(url, { method, signal, headers: { accept: '*/*' } }, (reply) => ({
      status: reply.statusCode,
      location: fieldOf(reply, 'location'),
      mediaType: mediaTypeOf(reply),
      bytes: Number(fieldOf(reply, 'content-length')) || 0,
    }));
  }

  /** Many servers answer HEAD with an error, or close the connection. */
  async function askTwice(kind: Kind, url: URL, signal: AbortSignal) {
    const head = await ask('HEAD', url, signal).catch((error: unknown) => {
      if (isTimeout(error) || !CLOSED.test(errorCode(error))) throw error;
      return null;
    });
    if (head === null) return ask('GET', url, signal);
    const isRedirect = head.status >= 300 && head.status < 400 && head.location !== '';
    const isEnough = head.status < 400 && (kind === 'link' || head.mediaType !== '');
    return isRedirect || isEnough ? head : ask('GET', url, signal);
  }

  async function follow(kind: Kind, first: URL, signal: AbortSignal): Promise<Probe> {
    let url = first;
    for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
      const { status, location, mediaType, bytes } = await askTwice(kind, url, signal);
      if (status < 300 || status >= 400 || location === '')
        return { kind: 'response', status, mediaType, bytes };
      const next = URL.parse(location, url.href);
      if (next === null || !/^https?:$/.test(next.protocol) || !ports.has(next.port))
        return { kind: 'none', reason: 'redirect', isGone: true };
      // A page of this server could change something, but exists.
      if (isOwnHost(next.hostname)) return { kind: 'response', status: 200, mediaType: 'image/*', bytes: 0 };
      url = next;
    }
    return { kind: 'none', reason: 'redirect', isGone: true };
  }

  /** Null: the time of the check was over. */
  async function probe(accountId: string, kind: Kind, url: URL, signal: AbortSignal): Promise<Probe | null> {
    const key = `${accountId} ${kind} ${urlWithoutFragment(url)}`;
    const known = cache.get(key);
    if (known !== undefined) return known;
    return requests.run(accountId, async () => {
      if (signal.aborted || !buckets.of(accountId).take().allowed) return null;
      const found = await follow(kind, url, signal).catch((error: unknown) =>
        signal.aborted ? null : { kind: 'none' as const, ...failureOf(error) },
      );
      if (found !== null) cache.set(key, found, CACHED_MS[isFound(found) ? 'found' : 'fault']);
      return found;
    });
  }

  return {
    /** Never rejects: what could not be opened, also because too many checks run, is in the result. */
    check: async (accountId: string, { html, source }: LinkedContent): Promise<Check<ContentCheckId>[]> => {
      const shown = await inSlices(addressesInSteps(html), accountId);
      const written = await inSlices(addressesInSteps(source), accountId);
      const { links, images, skipped, excess } = select(shown, written);
      const opened = await gate.run(accountId, async () => {
        const signal = abortAfter(CHECK_TIMEOUT_MS, closing.signal);
        const ofKind = (kind: Kind, urls: readonly URL[]) =>
          Promise.all(
            urls.map(
              async (url): Promise<[URL, Probe | null]> => [url, await probe(accountId, kind, url, signal)],
            ),
          );
        return Promise.all([ofKind('link', links), ofKind('image', images)]);
      });
      const [ofLinks, ofImages] = opened ?? [[], []];
      const answered = [...ofLinks, ...ofImages].filter(([, found]) => found !== null).length;
      const unopened = links.length + images.length + excess - answered;
      return [
        ...checksOfLinks(ofLinks),
        ...checksOfImages(ofImages),
        ...(skipped === 0 ? [] : [contentCheck('linksSkipped', [], skipped)]),
        contentCheck('linksUnopened', [], 0, unopened),
      ].filter((each) => each !== null);
    },
    close: async (): Promise<void> => {
      gate.close();
      closing.abort();
      await client.close();
    },
  };
}

export type LinkChecks = ReturnType<typeof createLinkChecks>;

function checksOfLinks(opened: readonly [URL, Probe | null][]) {
  const isGone = (found: Probe) => (found.kind === 'none' ? found.isGone : GONE.has(found.status));
  // Sites answer programs with 401, 403, 429 and numbers of their own where people see a page.
  const isFaulty = (found: Probe) => found.kind === 'none' || (found.status >= 500 && found.status < 600);
  return checksOf(opened, ['linksGone', isGone], ['linksUnreachable', isFaulty]);
}

function checksOfImages(opened: readonly [URL, Probe | null][]) {
  const isGone = (found: Probe) =>
    found.kind === 'none'
      ? found.isGone
      : GONE.has(found.status) || (found.status < 300 && !found.mediaType.startsWith('image/'));
  const isFaulty = (found: Probe) => found.kind === 'none' || found.status >= 300;
  const isLarge = (found: Probe) => found.kind === 'response' && found.bytes > LARGE_IMAGE_BYTES;
  return checksOf(opened, ['imagesGone', isGone], ['imagesUnreachable', isFaulty], ['imagesLarge', isLarge]);
}

/** Each address belongs to the first check that it fails. */
function checksOf(
  opened: readonly [URL, Probe | null][],
  ...rules: [ContentCheckId, (found: Probe) => boolean][]
): (Check<ContentCheckId> | null)[] {
  const left = new Map(opened.flatMap(([url, found]) => (found === null ? [] : [[url, found] as const])));
  const count = left.size;
  return rules.map(([id, isFault]) => {
    const faults = [...left].filter(([, found]) => isFault(found));
    for (const [url] of faults) left.delete(url);
    if (faults.length === 0 && count === 0) return null;
    return contentCheck(
      id,
      faults.map(([url, found]) => `${url.href.slice(0, MAX_TEXT)} (${detailOf(id, found)})`),
      count,
    );
  });
}

function detailOf(id: ContentCheckId, found: Probe): string {
  if (found.kind === 'none') return found.reason;
  if (id === 'imagesLarge') return `${(found.bytes / 1024 / 1024).toFixed(1)} MB`;
  return found.status < 300 ? found.mediaType || '?' : String(found.status);
}

function isFound(found: Probe): boolean {
  return found.kind === 'response' && found.status < 400;
}

const GONE = new Set([404, 410]);
const CLOSED = /^(ECONNRESET|EPIPE|UND_ERR_SOCKET|HPE_)/;

/** A private address and a name that does not exist have the same reason: an account must not learn which one it is. */
function failureOf(error: unknown): { reason: string; isGone: boolean } {
  const cause: unknown = error instanceof AggregateError ? (error.errors[0] ?? error) : error;
  if (cause instanceof ForbiddenAddress) return { reason: 'DNS', isGone: true };
  if (cause instanceof DnsError) return { reason: 'DNS', isGone: cause.absent || cause.code === 'EBADNAME' };
  if (isTimeout(cause) || /TIMEOUT|TIMEDOUT/.test(errorCode(cause)))
    return { reason: 'timeout', isGone: false };
  if (/CERT|SIGNATURE|^EPROTO$|^ERR_SSL_|^ERR_TLS_/.test(errorCode(cause)))
    return { reason: 'TLS', isGone: false };
  return { reason: 'connection', isGone: false };
}

/** In lower case, without parameters; '' for none, or one that is invalid. */
function mediaTypeOf(reply: HttpReply): string {
  return (
    /^[a-z0-9.+-]{1,40}\/[a-z0-9.+*-]{1,60}/.exec(fieldOf(reply, 'content-type').toLowerCase())?.[0] ?? ''
  );
}

function urlWithoutFragment({ href, hash }: URL): string {
  return hash === '' ? href : href.slice(0, href.length - hash.length);
}
