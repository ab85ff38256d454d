import {
  addressOf,
  type BodyOf,
  type DataOf,
  type Method,
  type ParametersOf,
  type PathOf,
} from './operations.ts';
import { pageToken } from './page-token.ts';
import { saveFile } from './parts/save-file.ts';

/* Requests to the console's own listener. Responses have the envelope of the API. */

/** What a request needs in addition to its path. */
export interface RequestOptions {
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  body?: unknown;
  /** The account that the request is about. */
  account?: string | undefined;
  /** The request with this key is processed once, however often it is sent. */
  idempotencyKey?: string;
  signal?: AbortSignal;
  /** Whether the request continues when the page is closed; its body is limited to 64 KiB. */
  keepalive?: boolean;
}

/** A response that is not a success. */
export class ApiError extends Error {
  readonly status: number;
  /** `error.code` of the response, 'NETWORK' if there was none. */
  readonly code: string;
  /** `reason` of the first detail, such as 'REAUTHENTICATION'; '' if there is none. */
  readonly reason: string;
  /** The permission that the role lacks; '' if that is not the reason. */
  readonly permission: string;
  /** The details, in words of the server. */
  readonly details: readonly { field: string; message: string }[];
  /** What the details say. */
  readonly names: readonly string[];
  readonly requestId: string;

  constructor(status: number, envelope: Partial<FailureEnvelope>) {
    super(envelope.error?.message ?? '');
    this.status = status;
    this.code = envelope.error?.code ?? 'NETWORK';
    const detail = envelope.error?.details?.[0];
    this.reason = typeof detail?.reason === 'string' ? detail.reason : '';
    this.permission = this.reason === 'PERMISSION' && typeof detail?.name === 'string' ? detail.name : '';
    this.details = (envelope.error?.details ?? []).map(({ field, message }) => ({
      field: typeof field === 'string' ? field : '',
      message: typeof message === 'string' ? message : '',
    }));
    this.names = this.details.map(({ message }) => message);
    this.requestId = envelope.requestId ?? '';
  }
}

interface FailureEnvelope {
  success: false;
  error: {
    code: string;
    message: string;
    details?: { reason?: unknown; name?: unknown; field?: unknown; message?: unknown }[];
  };
  requestId: string;
}

type Envelope<T> = { success: true; data: T } | FailureEnvelope;

/** Called when the session has ended. */
let onSignedOut = (): void => {};

/** `callback`: called when a response reports that the session has ended. */
export function whenSignedOut(callback: () => void): void {
  onSignedOut = callback;
}

/** Lets the person prove who they are; true: a refused request can be repeated. */
let onUnconfirmed = (): Promise<boolean> => Promise.resolve(false);

/** `callback`: called when a request requires a session that was confirmed recently. */
export function whenUnconfirmed(callback: () => Promise<boolean>): void {
  onUnconfirmed = callback;
}

/**
 * Sends a request to the console; returns `data` of its response, throws an ApiError otherwise. It is repeated after the
 * person has confirmed the session, if it requires that.
 */
export async function request<T>(path: string, options: RequestOptions = {}): Promise<T> {
  try {
    return await send<T>(path, options);
  } catch (error) {
    const isUnconfirmed = error instanceof ApiError && error.reason === 'REAUTHENTICATION';
    if (!isUnconfirmed || !(await onUnconfirmed())) throw error;
    return send<T>(path, options);
  }
}

async function send<T>(path: string, options: RequestOptions): Promise<T> {
  const { method = 'GET', body, account, idempotencyKey, signal, keepalive = false } = options;
  const headers = new Headers(headersFor(account));
  if (body !== undefined) headers.set('Content-Type', 'application/json');
  if (idempotencyKey !== undefined) headers.set('Idempotency-Key', idempotencyKey);
  const response = await fetch(path, {
    method,
    headers,
    keepalive,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(signal === undefined ? {} : { signal }),
  }).catch((error: unknown) => {
    if (signal?.aborted) throw error;
    throw new ApiError(0, {});
  });
  const envelope = (await response.json().catch(() => null)) as Envelope<T> | null;
  if (envelope?.success === true) return envelope.data;
  if (response.status === 401 && !path.startsWith('/console/session')) onSignedOut();
  throw new ApiError(response.status, envelope ?? {});
}

/** A file that is sent as the body of a request. */
export interface FileUpload<P extends PathOf<'post'>> {
  parameters: ParametersOf<P, 'post'>;
  type: string;
  file: Blob;
  account: string;
  signal: AbortSignal;
  /** Called with the share of the file that was sent, 0 to 1. */
  onProgress: (share: number) => void;
}

/** Sends a file to an operation of the public API; `fetch` does not report the progress of a request. */
export function uploadFile<P extends PathOf<'post'>>(
  path: P,
  { parameters, type, file, account, signal, onProgress }: FileUpload<P>,
): Promise<DataOf<P, 'post'>> {
  return new Promise((resolve, reject) => {
    const upload = new XMLHttpRequest();
    upload.open('POST', `/console/api${addressOf(path, parameters)}`);
    upload.responseType = 'json';
    for (const [name, value] of Object.entries({ ...headersFor(account), 'Content-Type': type }))
      upload.setRequestHeader(name, value);
    upload.upload.addEventListener('progress', ({ loaded }) => onProgress(loaded / Math.max(file.size, 1)));
    upload.addEventListener('error', () => reject(new ApiError(0, {})));
    upload.addEventListener('abort', () => reject(new ApiError(0, {})));
    upload.addEventListener('load', () => {
      const envelope = upload.response as Envelope<DataOf<P, 'post'>> | null;
      if (envelope?.success === true) return resolve(envelope.data);
      if (upload.status === 401) onSignedOut();
      return reject(new ApiError(upload.status, envelope ?? {}));
    });
    signal.addEventListener('abort', () => upload.abort());
    upload.send(file);
  });
}

/** A page that was not used for this long reads its data without extending the session. */
const UNATTENDED_MS = 15 * 60 * 1000;
/** When the page was last used: loaded, clicked, scrolled, or typed into. */
let usedAt = Date.now();
for (const name of ['pointerdown', 'wheel', 'keydown'])
  addEventListener(name, () => (usedAt = Date.now()), { capture: true, passive: true });

/** The header fields of every request; the first one shows that no form of another site sent it. */
function headersFor(account: string | undefined): Record<string, string> {
  const token = pageToken();
  return {
    'X-Postrider-Console': '1',
    ...(token === null ? {} : { 'X-Postrider-Page-Token': token }),
    Accept: 'application/json',
    ...(account === undefined ? {} : { 'X-Id': account }),
    ...(Date.now() - usedAt < UNATTENDED_MS ? {} : { 'X-Unattended': '1' }),
  };
}

type OperationOptions<P extends PathOf<M>, M extends Method> = Pick<
  RequestOptions,
  'idempotencyKey' | 'signal' | 'keepalive'
> & {
  /** Null: an operation about the installation, which belongs to no account. */
  account: string | null;
} & (object extends ParametersOf<P, M>
    ? { parameters?: ParametersOf<P, M> }
    : { parameters: ParametersOf<P, M> }) &
  ([BodyOf<P, M>] extends [never] ? object : { body: BodyOf<P, M> });

/** Sends a request to an operation of the public API, as the session's person; its types are those of the OpenAPI document. */
export function operate<M extends Method, P extends PathOf<M>>(
  method: M,
  path: P,
  options: OperationOptions<P, M>,
): Promise<DataOf<P, M>> {
  // What they have depends on the operation, which only callers know.
  const { account, parameters, ...sent } = options as Omit<RequestOptions, 'account'> & {
    account: string | null;
    parameters?: object;
  };
  return request(`/console/api${addressOf(path, parameters)}`, {
    ...sent,
    account: account ?? undefined,
    method: UPPER[method],
  });
}

const UPPER = { get: 'GET', post: 'POST', put: 'PUT', patch: 'PATCH', delete: 'DELETE' } as const;

/** The response to a request, as it arrived. */
export interface RawResponse {
  status: number;
  requestId: string;
  text: string;
  /** Whether the response is longer than the text. */
  isCut: boolean;
  /** Time from the request to the end of the text, milliseconds. */
  ms: number;
}

/** Longer responses are cut, in characters: the browser shows them as one text. */
const MAX_SHOWN = 512 * 1024;

/** Sends a request to an operation of the public API and returns the response, whatever its status. */
export async function exchange(
  path: string,
  request: {
    method: string;
    headers: Readonly<Record<string, string>>;
    body: { type: string; text: string } | null;
    account: string;
  },
): Promise<RawResponse> {
  const { method, headers, body, account } = request;
  const send = async (): Promise<RawResponse> => {
    const start = performance.now();
    const response = await fetch(`/console/api${path}`, {
      method,
      headers: {
        ...headers,
        ...headersFor(account),
        ...(body === null ? {} : { 'Content-Type': body.type }),
      },
      ...(body === null ? {} : { body: body.text }),
    }).catch(() => {
      throw new ApiError(0, {});
    });
    const { text, isCut } = await textOf(response);
    const requestId = response.headers.get('X-Request-Id') ?? '';
    return { status: response.status, requestId, text, isCut, ms: performance.now() - start };
  };
  const first = await send();
  if (first.status === 401) onSignedOut();
  return first.status === 403 && isUnconfirmed(first.text) && (await onUnconfirmed()) ? send() : first;
}

function isUnconfirmed(text: string): boolean {
  return text.includes('"REAUTHENTICATION"');
}

async function textOf({ body }: Response): Promise<{ text: string; isCut: boolean }> {
  let text = '';
  if (body === null) return { text, isCut: false };
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return { text, isCut: false };
    text += value;
    if (text.length > MAX_SHOWN) {
      await reader.cancel();
      return { text: text.slice(0, MAX_SHOWN), isCut: true };
    }
  }
}

/** Reads a document without the envelope of responses, such as the description of the API. */
export async function readDocument<T>(path: string, signal: AbortSignal): Promise<T> {
  const response = await fetch(path, { headers: headersFor(undefined), signal }).catch((error: unknown) => {
    if (signal.aborted) throw error;
    throw new ApiError(0, {});
  });
  const value = (await response.json().catch(() => ({}))) as T & Partial<FailureEnvelope>;
  if (response.status === 401) onSignedOut();
  if (!response.ok) throw new ApiError(response.status, value);
  return value;
}

/** Saves the response of an export as a file; an incomplete response throws. `account`: of an operation of the public API. */
export async function saveExport(path: string, fileName: string, account?: string): Promise<void> {
  const failed = (): never => {
    throw new ApiError(0, {});
  };
  const response = await fetch(path, { headers: { ...headersFor(account), Accept: '*/*' } }).catch(failed);
  if (!response.ok) {
    if (response.status === 401) onSignedOut();
    throw new ApiError(
      response.status,
      (await response.json().catch(() => ({}))) as Partial<FailureEnvelope>,
    );
  }
  saveFile(fileName, await response.blob().catch(failed));
}

/** Opens a stream of events of the server; throws when it is not accepted. */
export async function openEvents(path: string, signal: AbortSignal): Promise<ReadableStream<string>> {
  const response = await fetch(path, {
    headers: { ...headersFor(undefined), Accept: 'text/event-stream' },
    signal,
  });
  if (!response.ok || response.body === null) throw new ApiError(response.status, {});
  return response.body.pipeThrough(new TextDecoderStream());
}

/** A new value for `idempotencyKey`. `randomUUID` exists only with HTTPS or on loopback. */
export function newIdempotencyKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, '0'))
    .join('');
}
