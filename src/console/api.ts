/** Requests to the console's own listener. Responses have the envelope of the API. */

/** What a request needs in addition to its path. */
export interface RequestOptions {
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  body?: unknown;
  /** The account that the request is about. */
  account?: string | undefined;
  signal?: AbortSignal;
}

/** A response that is not a success. */
export class ApiError extends Error {
  readonly status: number;
  /** `error.code` of the response, 'NETWORK' if there was none. */
  readonly code: string;
  /** `reason` of the first detail, such as 'REAUTHENTICATION'; '' if there is none. */
  readonly reason: string;
  readonly requestId: string;

  constructor(status: number, envelope: Partial<FailureEnvelope>) {
    super(envelope.error?.message ?? '');
    this.status = status;
    this.code = envelope.error?.code ?? 'NETWORK';
    const detail = envelope.error?.details?.[0];
    this.reason = typeof detail?.reason === 'string' ? detail.reason : '';
    this.requestId = envelope.requestId ?? '';
  }
}

interface FailureEnvelope {
  success: false;
  error: { code: string; message: string; details?: { reason?: unknown }[] };
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
  const { method = 'GET', body, account, signal } = options;
  const headers = new Headers(headersFor(account));
  if (body !== undefined) headers.set('Content-Type', 'application/json');
  const response = await fetch(path, {
    method,
    headers,
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
export interface FileUpload {
  type: string;
  file: Blob;
  account: string;
  signal: AbortSignal;
  /** Called with the share of the file that was sent, 0 to 1. */
  onProgress: (share: number) => void;
}

/** Sends a file to an operation of the public API; `fetch` does not report the progress of a request. */
export function uploadFile<T>(
  path: string,
  { type, file, account, signal, onProgress }: FileUpload,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const upload = new XMLHttpRequest();
    upload.open('POST', `/console/api${path}`);
    upload.responseType = 'json';
    for (const [name, value] of Object.entries({ ...headersFor(account), 'Content-Type': type }))
      upload.setRequestHeader(name, value);
    upload.upload.addEventListener('progress', ({ loaded }) => onProgress(loaded / Math.max(file.size, 1)));
    upload.addEventListener('error', () => reject(new ApiError(0, {})));
    upload.addEventListener('abort', () => reject(new ApiError(0, {})));
    upload.addEventListener('load', () => {
      const envelope = upload.response as Envelope<T> | null;
      if (envelope?.success === true) return resolve(envelope.data);
      if (upload.status === 401) onSignedOut();
      return reject(new ApiError(upload.status, envelope ?? {}));
    });
    signal.addEventListener('abort', () => upload.abort());
    upload.send(file);
  });
}

/** The header fields of every request; the first one shows that no form of another site sent it. */
function headersFor(account: string | undefined): Record<string, string> {
  return {
    'X-Postrider-Console': '1',
    Accept: 'application/json',
    ...(account === undefined ? {} : { 'X-Id': account }),
  };
}

/** Sends a request to an operation of the public API, as the session's person. */
export function callApi<T>(path: string, options: RequestOptions & { account: string }): Promise<T> {
  return request<T>(`/console/api${path}`, options);
}

/** A path with the parameters that have a value. */
export function withQuery(path: string, query: Readonly<Record<string, string | undefined>>): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== '') parameters.set(name, value);
  return parameters.size === 0 ? path : `${path}?${parameters}`;
}
