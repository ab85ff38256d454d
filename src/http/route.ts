import type { IncomingHttpHeaders } from 'node:http';
import type * as z from 'zod';
import type { Caller, CallerAddress } from '../accounts/authenticate.ts';
import type { ApiScope } from '../accounts/keys.ts';
import type { JsonList } from '../core/json-scan.ts';
import type { Refusal, RefusalCode } from '../core/refusal.ts';
import type { SignificantFields } from './validation/misnamed-fields.ts';

/*
 * One operation of the API: path, input, output. The router, the validation and the OpenAPI document are all derived
 * from this description. A handler gets validated input with narrow types, calls a service and returns the response.
 */

export type { ApiScope, Caller, CallerAddress };

export interface Call<Params, Query, Body> {
  caller: Caller;
  /** Canonical address of the client: for records such as consent, not for authorization. */
  address: string;
  params: Params;
  query: Query;
  body: Body;
  /** The upload; null for operations without one. */
  upload: Upload | null;
  /** Repeated fields are joined, except `Idempotency-Key`, which is then an array. */
  headers: IncomingHttpHeaders;
  requestId: string;
  /**
   * What was ignored in the request, as sentences. The server adds them to `data.warnings` of a `data` response; a
   * handler that returns `raw` builds its body with `successBody(data, call.warnings)`.
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

/** A success: `data` is put into the envelope; `raw` is sent unchanged, such as a stored idempotent response. */
export type ApiResponse =
  | { status: number; data: object; headers?: Record<string, string> }
  | { status: number; raw: string; headers?: Record<string, string> };

export interface RouteDescription<
  Params extends z.ZodObject = z.ZodObject,
  Query extends z.ZodObject = z.ZodObject,
  Body extends z.ZodType = z.ZodType,
> {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** `/web-setup/domains/{domainId}`; every name in braces is a key of `params`. */
  path: string;
  operationId: string;
  /** Section of the documentation. */
  tag: string;
  summary: string;
  description?: string;
  scope: ApiScope;
  params?: Params;
  query?: Query;
  body?: Body;
  /** Fields of `body` that are refused, not ignored, when they are misspelled. */
  significant?: SignificantFields;
  /** A list in `body` whose elements the handler gets as `JsonElement`s and reads one at a time. */
  list?: JsonList;
  /** An example request body for the documentation. */
  example?: object;
  /** In place of `body`: the accepted media types, with an example of each. */
  upload?: Record<string, string>;
  /** The limit of the body, or its bytes. Default: 'setup'. */
  limit?: 'setup' | 'send' | number;
  /** The response may have megabytes: a few of an account are prepared at a time, further requests wait. */
  hasLargeResponse?: boolean;
  /** Additional request headers, for the documentation. */
  headers?: Record<string, string>;
  /** Schema of `data` for each success status. */
  responses: Record<number, { description: string; data: z.ZodType; example?: object }>;
  /**
   * For reads that may exceed their time budget (`QUERY_TOO_BROAD`): the query parameters that narrow them; empty if
   * there are none.
   */
  narrowBy?: readonly string[];
  /** Errors in addition to those of every operation that requires a key. */
  refusals: RefusalCode[];
  /**
   * Whether a request adds to what its account stores: it is then refused while there is no storage (storage-check.ts).
   * Default: yes, except for the methods GET and DELETE and the scope `operator`. Opt-outs must not be refused.
   */
  stores?(body: z.output<Body>): boolean;
  handle(
    call: Call<z.output<Params>, z.output<Query>, z.output<Body>>,
  ): Promise<ApiResponse | Refusal> | ApiResponse | Refusal;
}

/** A route with its types erased after they were checked. */
export type Route = RouteDescription;

/** Checks the types of a description: those of the handler follow from the schemas. */
export function route<Params extends z.ZodObject, Query extends z.ZodObject, Body extends z.ZodType>(
  description: RouteDescription<Params, Query, Body>,
): Route {
  // Erasing the types is sound: the server calls a handler only with the output of the schemas.
  return description;
}

/** A request that requires no key: health, metrics, the documentation. */
export interface OpenRequest {
  from: CallerAddress;
  query: URLSearchParams;
  headers: IncomingHttpHeaders;
  requestId: string;
}

/** The response of an open route, sent unchanged. */
export interface OpenResponse {
  status: number;
  contentType: string;
  body: string | Buffer;
  headers?: Record<string, string>;
}

/** An operation that requires no key. It is read-only: the server supports GET and HEAD. */
export interface OpenRoute {
  path: string;
  operationId: string;
  tag: string;
  summary: string;
  description?: string;
  query?: Record<string, string>;
  /** Schema of the body for each success status, where the body is JSON. */
  responses: Record<
    number,
    { description: string; contentType: string; schema?: z.ZodType; example?: object | string }
  >;
  /** Errors beyond those that every operation may return. */
  refusals?: RefusalCode[];
  handle(request: OpenRequest): Promise<OpenResponse | Refusal> | OpenResponse | Refusal;
}
