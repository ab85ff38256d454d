import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { type ErrorDetail, PostriderError } from './error.ts';
import type { DataOf, InputOf, Method, PagedPath, PathOf, QueryOf, Schemas, SendPath } from './operations.ts';

export interface PostriderOptions {
  /** Base address of the API, such as `https://mail.example.net`. */
  url: string;
  /** A key of the account. Sends need one with the scope of their stream, everything else one with the scope `setup`. */
  key: string;
  /** How often a request is repeated at most. Default: 4. */
  maxRetries?: number;
  /** The pause before the first repetition; each later one is twice as long, and all are shortened at random by up to half. Default: 500. */
  retryDelayMs?: number;
  /** The longest pause. A response with a longer `Retry-After` is an error. Default: 30,000. */
  maxRetryDelayMs?: number;
  /** Of each attempt, with the transfer of the response. Default: 30,000. */
  timeoutMs?: number;
  /** Default: the global `fetch`. */
  fetch?: typeof fetch;
}

export interface CallOptions {
  /** Aborts the request and its repetitions; the promise is rejected with the reason of the signal. */
  signal?: AbortSignal;
}

/** The result of a batch; `results` are in the order of the messages. */
export interface BatchResult<Accepted> {
  message: string;
  accepted: number;
  refused: number;
  results: ({ success: true; data: Accepted } | Schemas['Error'])[];
}

type SendOptions = CallOptions & { idempotencyKey?: string };

/** No input is required by an operation without values in the path and body. */
type Input<M extends Method, P extends PathOf<M>> =
  object extends InputOf<M, P> ? [input?: InputOf<M, P> & CallOptions] : [input: InputOf<M, P> & CallOptions];

/** The rows of all pages of a list. */
type Rows<P extends PagedPath, Name extends string> =
  DataOf<'get', P> extends Record<Name, readonly (infer Row)[]>
    ? AsyncGenerator<Row, void, undefined>
    : never;

/** What an operation can have as its input; which of it depends on the operation, and only callers know it. */
interface AnyInput extends CallOptions {
  path?: Record<string, string | number>;
  query?: Record<string, unknown>;
  body?: unknown;
  contentType?: string;
  idempotencyKey?: string;
}

/** Raw bodies, as `InputOf` has them. */
type FileBody = string | Uint8Array<ArrayBuffer> | Blob;

/** An object, so that the compiler compares it with the operations of the OpenAPI document. */
const SENDS: Record<SendPath, true> = {
  '/transactional/send': true,
  '/transactional/send-batch': true,
  '/transactional/send-raw': true,
  '/transactional/resend': true,
  '/marketing/send': true,
  '/marketing/send-batch': true,
};

/** A client of one account. Requests share the connections of `fetch`; there is nothing to close. */
export class Postrider {
  readonly #base: string;
  readonly #options: Required<Omit<PostriderOptions, 'url'>>;

  /** Throws a TypeError for an address that is not one of HTTP. */
  constructor(options: PostriderOptions) {
    const { protocol, origin, pathname } = new URL(options.url);
    if (protocol !== 'http:' && protocol !== 'https:')
      throw new TypeError(`The URL ${options.url} does not begin with http:// or https://`);
    if (options.key === '') throw new TypeError('The key is empty');
    this.#base = origin + pathname.replace(/\/+$/, '');
    this.#options = {
      key: options.key,
      maxRetries: options.maxRetries ?? 4,
      retryDelayMs: options.retryDelayMs ?? 500,
      maxRetryDelayMs: options.maxRetryDelayMs ?? 30_000,
      timeoutMs: options.timeoutMs ?? 30_000,
      // Called without an object, as the global function requires.
      fetch: options.fetch ?? ((...request) => fetch(...request)),
    };
  }

  /**
   * Sends a request to an operation of the OpenAPI document and returns `data` of the response; text and files are returned
   * as they are. Throws a PostriderError. Repeats a request after 429, and after 503 with `UNAVAILABLE`, which mean that nothing
   * was done; after a network error, a timeout and other 5xx only if it may be repeated: sends, which have a key, and all
   * methods except POST.
   */
  async request<M extends Method, P extends PathOf<M>>(
    method: M,
    path: P,
    ...[input]: Input<M, P>
  ): Promise<DataOf<M, P>> {
    const { signal, ...values } = (input ?? {}) as AnyInput;
    const key = method === 'post' && path in SENDS ? (values.idempotencyKey ?? randomUUID()) : undefined;
    const send = this.#prepare(method, path, values, key);
    for (let retries = 0; ; retries++) {
      const isLast = retries >= this.#options.maxRetries;
      let pause = this.#pauseMs(retries);
      try {
        const data = await send(signal);
        // An earlier attempt is still accepting messages of the batch: its result is that of these messages.
        if (isLast || key === undefined || !hasItemInProgress(data)) return data as DataOf<M, P>;
      } catch (error) {
        signal?.throwIfAborted();
        if (!(error instanceof PostriderError)) throw error;
        const mayRepeat =
          isRefusedForNow(error) || (isFault(error) && (key !== undefined || method !== 'post'));
        if (isLast || !mayRepeat) throw error;
        if (error.retryAfterSeconds !== undefined) pause = error.retryAfterSeconds * 1000;
        if (pause > this.#options.maxRetryDelayMs) throw error;
      }
      await wait(pause, undefined, signal === undefined ? {} : { signal }).catch((error: unknown) => {
        signal?.throwIfAborted();
        throw error;
      });
    }
  }

  /** The pages of a list, each requested when it is needed, beginning after `query.lastKey` if it is given. */
  async *pages<P extends PagedPath>(
    path: P,
    ...[input]: Input<'get', P>
  ): AsyncGenerator<DataOf<'get', P>, void, undefined> {
    const { query, ...values } = (input ?? {}) as AnyInput;
    for (let position: { lastKey?: string } = {}; ; ) {
      const pageInput = { ...values, query: { ...query, ...position } };
      const page = await this.request('get', path, ...([pageInput] as unknown as Input<'get', P>));
      yield page;
      const { nextKey } = page as { nextKey?: string };
      if (nextKey === undefined || nextKey === position.lastKey) return;
      position = { lastKey: nextKey };
    }
  }

  /** Sends a transactional email. It is durably stored when the promise is resolved. */
  send(
    mail: Schemas['TransactionalSendInput'],
    options: SendOptions = {},
  ): Promise<DataOf<'post', '/transactional/send'>> {
    return this.request('post', '/transactional/send', { body: mail, ...options });
  }

  /** Sends up to 500 transactional emails. Each is accepted or refused by itself: see `results`. */
  async sendBatch(
    mails: readonly Schemas['TransactionalSendInput'][],
    options: SendOptions = {},
  ): Promise<BatchResult<Schemas['TransactionalSendResult']>> {
    const body = { messages: [...mails] };
    const result = await this.request('post', '/transactional/send-batch', { body, ...options });
    // Each result is the response of a single send.
    return result as unknown as BatchResult<Schemas['TransactionalSendResult']>;
  }

  /** Sends a marketing email to recipients who have given consent. */
  sendMarketing(
    mail: Schemas['MarketingSendInput'],
    options: SendOptions = {},
  ): Promise<DataOf<'post', '/marketing/send'>> {
    return this.request('post', '/marketing/send', { body: mail, ...options });
  }

  /** Sends up to 500 marketing emails. Each is accepted or refused by itself: see `results`. */
  async sendMarketingBatch(
    mails: readonly Schemas['MarketingSendInput'][],
    options: SendOptions = {},
  ): Promise<BatchResult<Schemas['MarketingSendResult']>> {
    const body = { messages: [...mails] };
    const result = await this.request('post', '/marketing/send-batch', { body, ...options });
    return result as unknown as BatchResult<Schemas['MarketingSendResult']>;
  }

  /** Sends the content of a final message again, as a new message. */
  resend(messageId: string, options: SendOptions = {}): Promise<DataOf<'post', '/transactional/resend'>> {
    return this.request('post', '/transactional/resend', { body: { messageId }, ...options });
  }

  /** A message with its events and delivery attempts. */
  message(id: string, options: CallOptions = {}): Promise<DataOf<'get', '/web-setup/messages/{id}'>> {
    return this.request('get', '/web-setup/messages/{id}', { path: { id }, ...options });
  }

  /** Cancels a message that is queued or scheduled. */
  cancelMessage(
    id: string,
    options: CallOptions = {},
  ): Promise<DataOf<'post', '/web-setup/messages/{id}/cancel'>> {
    return this.request('post', '/web-setup/messages/{id}/cancel', { path: { id }, ...options });
  }

  /** All messages that match, newest first. */
  async *messages(
    query: QueryOf<'get', '/web-setup/messages'> = {},
    options: CallOptions = {},
  ): Rows<'/web-setup/messages', 'messages'> {
    for await (const { messages } of this.pages('/web-setup/messages', { query, ...options }))
      yield* messages;
  }

  /** All events that match, oldest first. To continue later, use `pages` and store `nextKey` of each page. */
  async *events(
    query: QueryOf<'get', '/web-setup/events'> = {},
    options: CallOptions = {},
  ): Rows<'/web-setup/events', 'events'> {
    for await (const { events } of this.pages('/web-setup/events', { query, ...options })) yield* events;
  }

  /** All contacts that match. */
  async *contacts(
    query: QueryOf<'get', '/web-setup/contacts'> = {},
    options: CallOptions = {},
  ): Rows<'/web-setup/contacts', 'contacts'> {
    for await (const { contacts } of this.pages('/web-setup/contacts', { query, ...options }))
      yield* contacts;
  }

  /** All suppressions that match. */
  async *suppressions(
    query: QueryOf<'get', '/web-setup/suppressions'> = {},
    options: CallOptions = {},
  ): Rows<'/web-setup/suppressions', 'suppressions'> {
    const pages = this.pages('/web-setup/suppressions', { query, ...options });
    for await (const { suppressions } of pages) yield* suppressions;
  }

  /** A function that sends the request once. */
  #prepare(method: Method, path: string, input: Omit<AnyInput, 'signal'>, key: string | undefined) {
    const { timeoutMs, fetch } = this.#options;
    const { body, contentType = 'application/json' } = input;
    const address = this.#base + addressOf(path, input.path, input.query);
    const headers: Record<string, string> = {
      Accept: '*/*',
      Authorization: `Bearer ${this.#options.key}`,
      'User-Agent': 'postrider-client',
      ...(body === undefined ? {} : { 'Content-Type': contentType }),
      ...(key === undefined ? {} : { 'Idempotency-Key': key }),
    };
    const payload =
      body === undefined
        ? null
        : contentType === 'application/json'
          ? JSON.stringify(body)
          : (body as FileBody);
    return async (signal: AbortSignal | undefined): Promise<unknown> => {
      const timeout = AbortSignal.timeout(timeoutMs);
      const signals = signal === undefined ? timeout : AbortSignal.any([signal, timeout]);
      try {
        const response = await fetch(address, {
          method: method.toUpperCase(),
          headers,
          body: payload,
          signal: signals,
          // Another host must not get the key.
          redirect: 'manual',
        });
        return await read(response, key);
      } catch (cause) {
        if (cause instanceof PostriderError) throw cause;
        if (timeout.aborted)
          throw new PostriderError(
            { status: 0, code: 'TIMEOUT', message: `No response within ${timeoutMs} ms`, cause },
            key,
          );
        const message = `No response: ${messageOf(cause)}`;
        throw new PostriderError({ status: 0, code: 'NETWORK', message, cause }, key);
      }
    };
  }

  /** Exponential, with jitter, so that clients that failed together do not return together. */
  #pauseMs(retries: number): number {
    const { retryDelayMs, maxRetryDelayMs } = this.#options;
    return Math.min(retryDelayMs * 2 ** retries, maxRetryDelayMs) * (1 - Math.random() / 2);
  }
}

function addressOf(path: string, values: AnyInput['path'] = {}, query: AnyInput['query'] = {}): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = values[name];
    // A path with an empty value or a dot would be that of another operation.
    if (value === undefined || /^\.{0,2}$/.test(String(value)))
      throw new TypeError(`The value of ${name} in ${path} is missing or not valid`);
    return encodeURIComponent(value);
  });
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined) search.set(name, typeof value === 'string' ? value : JSON.stringify(value));
  return search.size === 0 ? filled : `${filled}?${search.toString()}`;
}

/** An error response, as far as it is one of Postrider. */
interface Envelope {
  error?: { code?: PostriderError['code']; message?: string; details?: ErrorDetail[] };
  requestId?: string;
}

/** Returns what `request` returns; throws a PostriderError for everything but a success. */
async function read(response: Response, key: string | undefined): Promise<unknown> {
  const type = response.headers.get('Content-Type') ?? '';
  const isJson = /^application\/(?:[\w.+-]+\+)?json\b/.test(type);
  if (response.ok && !isJson) {
    if (response.status === 204) return undefined;
    return type.startsWith('text/') ? await response.text() : new Uint8Array(await response.arrayBuffer());
  }
  const text = await response.text();
  const { status } = response;
  const retryAfterSeconds = secondsOf(response.headers.get('Retry-After'));
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch (cause) {
    const message = `The response with status ${status} is not one of Postrider: is the URL right?`;
    throw new PostriderError({ status, code: 'INVALID_RESPONSE', message, retryAfterSeconds, cause }, key);
  }
  if (response.ok)
    return typeof body === 'object' && body !== null && 'data' in body && 'success' in body
      ? body.data
      : body;
  const { error, requestId = '' } = (body ?? {}) as Envelope;
  throw new PostriderError(
    {
      status,
      code: error?.code ?? 'INVALID_RESPONSE',
      message: error?.message ?? `The response has the status ${status}`,
      details: error?.details ?? [],
      requestId,
      retryAfterSeconds,
    },
    key,
  );
}

/** Whether the response says that nothing was done and that the same request may succeed later. */
function isRefusedForNow({ status, code }: PostriderError): boolean {
  return status === 429 || code === 'UNAVAILABLE' || code === 'IDEMPOTENCY_IN_PROGRESS';
}

/** Whether it is unknown if the request was processed. */
function isFault({ status, code }: PostriderError): boolean {
  return (status === 0 || status >= 500) && code !== 'QUERY_TOO_BROAD';
}

function hasItemInProgress(data: unknown): boolean {
  const { results } = (data ?? {}) as { results?: unknown };
  return (
    Array.isArray(results) &&
    results.some((result: { reasonCode?: unknown }) => result.reasonCode === 'IDEMPOTENCY_IN_PROGRESS')
  );
}

/** `Retry-After` (RFC 9110, section 10.2.3): seconds, or a date. */
function secondsOf(field: string | null): number | undefined {
  if (field === null) return undefined;
  if (/^\d{1,9}$/.test(field)) return Number(field);
  const date = Date.parse(field);
  return Number.isNaN(date) ? undefined : Math.max(0, (date - Date.now()) / 1000);
}

/** The error of `fetch` says no more than that it failed; its cause has the reason. */
function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  return cause instanceof Error && cause.message !== '' ? cause.message : error.message;
}
