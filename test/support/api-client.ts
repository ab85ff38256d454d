/** An account and one API key of each scope. */
export interface Credentials {
  accountId: string;
  keys: Record<Scope, string>;
  /** The key for operations on the installation. Default: the key of `setup`. */
  operatorKey?: string;
}

export type Scope = 'setup' | 'marketing' | 'transactional';

export interface ApiResponse<Data> {
  status: number;
  headers: Headers;
  /** The body. */
  text: string;
  /** `data` of a success; throws for an error response. */
  readonly data: Data;
  /** `error` of an error response; throws for a success. */
  readonly error: ApiError;
}

export interface ApiError {
  code: string;
  message: string;
  details?: {
    field: string;
    message: string;
    code?: string;
    recipient?: string;
    name?: string;
    reason?: string;
  }[];
}

export interface CallOptions {
  /** Sent as JSON. */
  body?: unknown;
  /** Sent unchanged instead of `body`. */
  rawBody?: string | Buffer;
  /** Override the default header fields; null omits one. */
  headers?: Record<string, string | null>;
  signal?: AbortSignal;
}

/** A client of the HTTP API: sends `X-Id`, and as `X-Api-Key` the key of the scope that the path requires. */
export interface ApiClient extends Credentials {
  /** Throws only when there was no response. */
  call<Data>(method: string, path: string, options?: CallOptions): Promise<ApiResponse<Data>>;
  get<Data>(path: string): Promise<ApiResponse<Data>>;
  put<Data>(path: string, body: unknown): Promise<ApiResponse<Data>>;
  post<Data>(path: string, body?: unknown): Promise<ApiResponse<Data>>;
  /** `POST /transactional/send`. */
  send(body: SendBody, headers?: Record<string, string>): Promise<ApiResponse<SendData>>;
  message(messageId: string): Promise<MessageData>;
  /** All messages of the account that match the filters, newest first. */
  allMessages(filters?: Record<string, string>): Promise<MessageSummary[]>;
  /** All events that match the filters, oldest first. */
  allEvents(filters?: Record<string, string>): Promise<EventData[]>;
}

export interface DomainRecord {
  type: 'TXT' | 'CNAME' | 'MX';
  name: string;
  value: string;
  description: string;
  purpose?: string;
  priority?: number;
  ttl?: number;
  chunks?: string[];
}

export interface DomainFlags {
  status: string;
  dkimEnabled: boolean;
  spfConfigured: boolean;
  dmarcConfigured: boolean;
  mxConfigured: boolean;
}

export interface CreatedDomain {
  domainId: string;
  domain: string;
  groupId: string;
  status: string;
  dnsRecords: DomainRecord[];
  recommendedDnsRecords: DomainRecord[];
  altDomainId: string;
  altStatus: string;
}

export interface VerifiedDomain extends DomainFlags {
  message: string;
  domainId: string;
  domain: string;
  checks: DomainCheck[];
}

export interface DomainCheck {
  check: string;
  passed: boolean;
  expected: string;
  found: string | null;
  hint: string;
}

export interface SendBody {
  [field: string]: unknown;
}

export interface SendData {
  message: string;
  messageId: string;
  from: string;
  totalRecipients: number;
  recipients: { email: string; status: string; role: string; messageId: string }[];
  status: string;
  delivery?: { status: string; smtpReply?: string };
  warnings?: string[];
}

export interface MessageSummary {
  messageId: string;
  recipient: string;
  role: string;
  status: string;
  attempts: number;
  subject: string;
  nextAttemptAt?: string;
  heldBecause?: string;
}

export interface MessageData extends MessageSummary {
  timeline: TimelineEntry[];
}

/** An event or a delivery attempt; its fields depend on the kind. */
export interface TimelineEntry {
  type: 'event' | 'attempt';
  timestamp: string;
  event?: string;
  [field: string]: unknown;
}

export interface EventData {
  eventId: string;
  event: string;
  timestamp: string;
  messageId?: string | null;
  recipient?: string;
  [field: string]: unknown;
}

export function createApiClient(baseUrl: string, credentials: Credentials): ApiClient {
  const { accountId, keys } = credentials;
  const keyFor = (path: string) =>
    OPERATOR_PATHS.test(path) ? (credentials.operatorKey ?? keys.setup) : keys[scopeOf(path)];
  const client: ApiClient = {
    ...credentials,
    call: async (method, path, { body, rawBody, headers = {}, signal } = {}) => {
      const payload = rawBody ?? (body === undefined ? undefined : JSON.stringify(body));
      const all: Record<string, string | null> = {
        'X-Api-Key': keyFor(path),
        'X-Id': accountId,
        ...(payload === undefined ? {} : { 'Content-Type': 'application/json' }),
        ...headers,
      };
      const response = await fetch(baseUrl + path, {
        method,
        redirect: 'manual',
        headers: Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== null),
        ...(payload === undefined ? {} : { body: payload }),
        ...(signal === undefined ? {} : { signal }),
      });
      return readResponse(`${method} ${path}`, response);
    },
    get: (path) => client.call('GET', path),
    put: (path, body) => client.call('PUT', path, { body }),
    post: (path, body) => client.call('POST', path, { body }),
    send: (body, headers = {}) => client.call('POST', '/transactional/send', { body, headers }),
    message: async (messageId) => (await client.get<MessageData>(`/web-setup/messages/${messageId}`)).data,
    allMessages: (filters = {}) =>
      pages(async (lastKey) => {
        const { data } = await client.get<{ messages: MessageSummary[]; nextKey?: string }>(
          `/web-setup/messages?${query({ limit: '200', ...filters, ...lastKey })}`,
        );
        return { rows: data.messages, nextKey: data.nextKey };
      }),
    allEvents: (filters = {}) =>
      pages(async (lastKey) => {
        const { data } = await client.get<{ events: EventData[]; nextKey?: string }>(
          `/web-setup/events?${query({ limit: '200', ...filters, ...lastKey })}`,
        );
        return { rows: data.events, nextKey: data.nextKey };
      }),
  };
  return client;
}

const OPERATOR_PATHS = /^\/web-setup\/(?:doctor|queue|accounts|installation)\b/;

/** The scope that a path of an account requires. */
function scopeOf(path: string): Scope {
  if (path.startsWith('/transactional')) return 'transactional';
  return path.startsWith('/marketing') ? 'marketing' : 'setup';
}

async function readResponse<Data>(request: string, response: Response): Promise<ApiResponse<Data>> {
  const text = await response.text();
  const { status, headers } = response;
  const envelope = (): { success?: boolean; data?: Data; error?: ApiError } => JSON.parse(text);
  return {
    status,
    headers,
    text,
    get data() {
      const { success, data } = envelope();
      if (success !== true || data === undefined) throw new Error(`${request} failed: ${status} ${text}`);
      return data;
    },
    get error() {
      const { success, error } = envelope();
      if (success !== false || error === undefined)
        throw new Error(`${request} succeeded: ${status} ${text}`);
      return error;
    },
  };
}

function query(parameters: Record<string, string>): string {
  return new URLSearchParams(parameters).toString();
}

async function pages<Row>(
  read: (lastKey: Record<string, string>) => Promise<{ rows: Row[]; nextKey: string | undefined }>,
): Promise<Row[]> {
  const all: Row[] = [];
  for (let lastKey: Record<string, string> = {}; ; ) {
    const { rows, nextKey } = await read(lastKey);
    all.push(...rows);
    // The last page of the event feed has a `nextKey`, too.
    if (nextKey === undefined || rows.length === 0) return all;
    lastKey = { lastKey: nextKey };
  }
}
