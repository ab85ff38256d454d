import type { IncomingHttpHeaders } from 'node:http';
import * as z from 'zod';
import type { Caller, CallerAddress } from '../accounts/authenticate.ts';
import type { ApiScope } from '../accounts/keys.ts';
import type { JsonList } from '../core/json-scan.ts';
import { recordOf } from '../core/record-of.ts';
import { isRefusal, type Refusal, type RefusalCode } from '../core/refusal.ts';
import type { Permission } from '../people/roles.ts';

/*
 * One operation of the API: path, input, output. The router, the validation and the OpenAPI document are all derived
 * from this description. A handler gets validated input with narrow types, calls a service and returns the response.
 */

export type { ApiScope, Caller, CallerAddress };

export interface Call<Params, Query, Body, Position = unknown> {
  caller: Caller;
  /** Canonical address of the client: for records such as consent, not for authorization. */
  address: string;
  params: Params;
  query: Query;
  body: Body;
  /** Where the page before this one of a list ended; null: this is the first one. */
  after: Position | null;
  /** The upload; null for operations without one. */
  upload: Upload | null;
  /** The body of an operation with `file`, unless it is JSON; empty for others. */
  file: Buffer;
  /** Repeated fields are joined, except `Idempotency-Key`, which is then an array. */
  headers: IncomingHttpHeaders;
  requestId: string;
  /**
   * What was ignored in the request, as sentences. The server adds them to `data.warnings`; a handler that returns a raw
   * body builds it with `successBody(data, call.warnings)`.
   */
  warnings: readonly string[];
  /**
   * Waits for the next turn of the account on the event loop. Handlers that do long work in portions call it between
   * portions, so that other accounts get their turns.
   */
  turn(): Promise<void>;
  /** Aborted when the client disconnects or the daemon stops. */
  readonly signal: AbortSignal;
}

/** A body of any length that is read as a stream with backpressure. */
export interface Upload {
  /** One of the media types of the operation, without parameters. */
  type: string;
  /** Throws `UploadAborted` when the client disconnects, `UploadTooSlow` when it sends too slowly. Readable once. */
  bytes: AsyncIterable<Buffer>;
}

export type HttpMethod = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** A success that is more than the data of the operation. */
export class Reply {
  /** Default: that of the operation. */
  readonly status: number | undefined;
  /** `data` is put into the envelope; `raw` is sent unchanged, such as a stored idempotent response. */
  readonly content: { data: object } | { raw: string | Buffer };
  readonly headers: Record<string, string>;
  /** Of a `raw` body; default: JSON. */
  readonly contentType: string | undefined;
  /** In addition to those of the request; `raw` contains its warnings already. */
  readonly warnings: readonly string[];
  /** Called when the response has been sent, or cannot be sent any more. */
  readonly onClosed: (() => void) | undefined;

  constructor(
    content: { data: object } | { raw: string | Buffer },
    {
      status,
      headers = {},
      contentType,
      warnings = [],
      onClosed,
    }: {
      status?: number | undefined;
      headers?: Record<string, string>;
      contentType?: string | undefined;
      warnings?: readonly string[];
      onClosed?: (() => void) | undefined;
    } = {},
  ) {
    this.status = status;
    this.content = content;
    this.headers = headers;
    this.contentType = contentType;
    this.warnings = warnings;
    this.onClosed = onClosed;
  }
}

/** What a handler returns: the data of the success, or more than that. */
export type Answer<Data = object> = Data | Reply | Refusal;

/** The answer with its data changed; a refusal and a raw body are returned unchanged. */
export function mapData(answer: Answer, change: (data: object) => object): Answer {
  if (isRefusal(answer)) return answer;
  if (!(answer instanceof Reply)) return change(answer);
  const { content, ...others } = answer;
  return 'data' in content ? new Reply({ data: change(content.data) }, others) : answer;
}

interface SuccessDescription<Data extends z.ZodType = z.ZodType> {
  description: string;
  data: Data;
  example?: object;
  /** The other form that the caller may choose: its media type, with an example. `isOnly`: there is no JSON. */
  file?: { type: string; example: string; isOnly?: true };
}

/** What the operations of one resource have in common. */
export interface RouteGroup {
  /** Section of the documentation. */
  tag: string;
  scope: ApiScope;
  /**
   * What the console requires of the person who is signed in, for GET and for all other methods. Default: `operator`, the
   * permission that no member of an account has.
   */
  permissions?: readonly [read: Permission, write: Permission];
}

interface SharedDescription {
  operationId: string;
  /** Also the name of the operation in the console. */
  summary: string;
  description?: string;
  /** Whether unknown fields of `body` that were meant for one of field-names.toml are refused, not ignored. */
  refusesMisnamed?: boolean;
  /** Fields that the resource has only in other responses than that of this write: they are ignored like those of its own. */
  readOnly?: readonly string[];
  /** A list in `body` whose elements the handler gets as `JsonElement`s and reads one at a time. */
  list?: JsonList;
  /** An example request body for the documentation. */
  example?: object;
  /** In place of `body`, which is then absent or optional: the accepted media types, with an example of each. */
  upload?: Record<string, string>;
  /**
   * In place of `body`: a file up to `limit`, which the handler gets as a whole, whatever its media type; with the media types
   * for the documentation. Next to `body`: a request is JSON, or a file of one of these media types.
   */
  file?: readonly string[];
  /** The limit of the body, or its bytes. Default: 'setup'. */
  limit?: 'setup' | 'send' | number;
  /** The response may have megabytes: a few of an account are prepared at a time, further requests wait. */
  hasLargeResponse?: boolean;
  /** Additional request headers, for the documentation. */
  headers?: Record<string, string>;
  /**
   * For reads that may exceed their time budget (`QUERY_TOO_BROAD`): the query parameters that narrow them; empty if
   * there are none.
   */
  narrowBy?: readonly string[];
  /**
   * When a test key is refused, because live mail would leave (`withTestKeyCheck`): in any case; while a sequence is active,
   * because contacts change; while the domain in the path has failed, because a check may release its mail. Default: never.
   */
  refusesTestKeys?: 'always' | 'whileSequenceActive' | 'whileDomainFailed' | undefined;
  /** In the console: whether the person must have proved recently who they are. */
  isConfirmed?: boolean;
  /** In the console: whether it is a read although it has a body, so that the audit log has its denials only. */
  isRead?: boolean;
  /** In the console: what is hidden of fields named `url` from people who may not read messages (hidden-urls.ts). */
  hidesUrls?: 'query' | 'path';
}

export interface RouteDescription<
  Path extends string = string,
  Params extends z.ZodRawShape = z.ZodRawShape,
  Query extends z.ZodObject = z.ZodObject,
  Body extends z.ZodType = z.ZodType,
  Data extends z.ZodType = z.ZodType,
  Position = unknown,
> extends SharedDescription {
  /** Replaces that of the group. */
  permission?: Permission;
  /** The names in braces of the path that are not any text. */
  params?: Params;
  query?: Query;
  body?: Body;
  /** Of a list that is read page by page: what `lastKey` of the query and `nextKey` of the data contain. */
  page?: PageKind<Position>;
  /** The only success; its default status is 200. */
  response?: SuccessDescription<Data> & { status?: number };
  /** In its place: several successes, by status. */
  responses?: Record<number, SuccessDescription>;
  /** Errors in addition to those of every operation that requires a key. */
  refusals?: readonly RefusalCode[];
  /**
   * Whether a request adds to what its account stores: it is then refused while there is no storage (`withStorageCheck`).
   * Default: yes, except for the methods GET and DELETE and the scope `operator`. Opt-outs must not be refused.
   */
  stores?(body: z.output<Body>): boolean;
  /** What the audit record of a success states besides the operation: the reason of a person. */
  auditDetail?(body: z.output<Body>): string | undefined;
  handle(
    call: Call<PathParams<Path, Params>, z.output<Query>, z.output<Body>, Position>,
  ): Promise<Answer<z.input<Data>>> | Answer<z.input<Data>>;
}

/** The parameters of a path; without schemas, every name is any text. */
type PathParams<Path extends string, Params extends z.ZodRawShape> = string extends keyof Params
  ? ParamsIn<Path>
  : Omit<ParamsIn<Path>, keyof Params> & { [Name in keyof Params]: z.output<Params[Name]> };

/** The names in braces of a path, with any text. */
type ParamsIn<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? { [Key in Name]: string } & ParamsIn<Rest>
  : object;

/** How the positions of a list are written in its page keys. */
export interface PageKind<Position> {
  /** Names the list in its page keys, which other lists refuse. */
  list: string;
  /** Null: not a position of the list. */
  parse(text: string): Position | null;
}

/** A complete description, with its types erased after they were checked. */
export interface Route extends SharedDescription, Omit<RouteGroup, 'permissions'> {
  method: HttpMethod;
  /** `/web-setup/domains/{domainId}`; every name in braces is a key of `params`. */
  path: string;
  permission: Permission;
  params: z.ZodObject;
  query?: z.ZodObject;
  body?: z.ZodType;
  page?: PageKind<unknown>;
  /** The status of data without a `Reply`. */
  status: number;
  responses: Record<number, SuccessDescription>;
  refusals: readonly RefusalCode[];
  stores?(body: unknown): boolean;
  auditDetail?(body: unknown): string | undefined;
  handle(call: AnyCall): Promise<Answer> | Answer;
}

/** A call whose input has the types of its schemas, which are erased. */
export type AnyCall = Call<Record<string, unknown>, Record<string, unknown>, unknown>;

/** Returns the function that describes the operations of a group: `route('GET /web-setup/domains', { … })`. */
export function routesOf(group: RouteGroup) {
  const { permissions: [read, write] = ['operator', 'operator'], ...common } = group;
  return <
    const Path extends string,
    Query extends z.ZodObject,
    Body extends z.ZodType,
    Data extends z.ZodType,
    Position,
    Params extends z.ZodRawShape,
  >(
    operation: `${HttpMethod} ${Path}`,
    description: RouteDescription<Path, Params, Query, Body, Data, Position>,
  ): Route => {
    const { permission, params, response, responses, refusals = [], ...rest } = description;
    const [method = '', path = ''] = operation.split(' ');
    const { status = 200, ...success } = response ?? {};
    // Erasing the types is sound: the server calls a handler only with the output of the schemas.
    return {
      ...common,
      ...rest,
      method,
      path,
      permission: permission ?? (method === 'GET' ? read : write),
      params: paramsOf(path, params ?? {}),
      status,
      responses: responses ?? (response === undefined ? {} : { [status]: success }),
      refusals,
    } as Route;
  };
}

/** For a success whose data is presented by functions with results of any type: the compiler does not compare them. */
export function unchecked(data: z.ZodType): z.ZodType {
  return data;
}

const anyText = z.string();

/** Throws when a schema belongs to no name in the path. */
function paramsOf(path: string, schemas: z.ZodRawShape): z.ZodObject {
  const names = [...path.matchAll(/\{([^{}]*)\}/g)].map(([, name = '']) => name);
  const unknown = Object.keys(schemas).filter((name) => !names.includes(name));
  if (unknown.length > 0) throw new Error(`${path} does not have the parameters ${unknown.join()}`);
  return z.object(recordOf(names, (name) => schemas[name] ?? anyText));
}

/** What `present` returns for a result; a refusal is returned unchanged. */
export function mapResult<Result, Data>(
  result: Result,
  present: (result: Exclude<Result, Refusal>) => Data,
): Data | Refusal {
  // Sound: all that is no refusal.
  return isRefusal(result) ? result : present(result as Exclude<Result, Refusal>);
}

/** A request that requires no key: health, metrics, the documentation. */
export interface OpenRequest {
  from: CallerAddress;
  params: Record<string, string>;
  query: URLSearchParams;
  headers: IncomingHttpHeaders;
  requestId: string;
}

/** A complete response. */
export interface HttpResponse {
  status: number;
  /** '': the response has no body. */
  contentType: string;
  body: string | Buffer;
  headers?: Record<string, string>;
  /** What the audit record of the console states besides the operation. */
  auditDetail?: string;
}

/** An operation that requires no key. It is read-only: the server supports GET and HEAD. */
export interface OpenRoute {
  path: string;
  operationId: string;
  tag: string;
  summary: string;
  description?: string;
  /** Path and query parameters, which are any text, with their descriptions. */
  params?: Record<string, string>;
  query?: Record<string, string>;
  /** Schema of the body for each success status, where the body is JSON. */
  responses: Record<
    number,
    { description: string; contentType: string; schema?: z.ZodType; example?: object | string }
  >;
  /** Errors beyond those that every operation may return. */
  refusals?: RefusalCode[];
  handle(request: OpenRequest): Promise<HttpResponse | Refusal> | HttpResponse | Refusal;
}
