import type { IncomingHttpHeaders } from 'node:http';
import type { z } from 'zod';
import type { Caller, CallerAddress } from '../accounts/authenticate.ts';
import type { ApiScope } from '../accounts/keys.ts';
import type { Refusal, RefusalCode } from '../core/refusal.ts';
import type { JsonList } from './body/json-scan.ts';

/**
 * One operation of the API: how it is reached, what it takes, what it answers. The router, the validation and
 * the OpenAPI document are all made from this one description, so they cannot disagree. A handler parses
 * nothing and checks no form: it gets narrow types, calls the room below and answers.
 */
export type { ApiScope, Caller, CallerAddress };

export interface Call<Params, Query, Body> {
  caller: Caller;
  /** Where it came from, canonical: for the record (consent, say), never for a decision. */
  address: string;
  params: Params;
  query: Query;
  body: Body;
  /** What is sent to an operation that takes an upload, null for the others. */
  upload: Upload | null;
  headers: IncomingHttpHeaders;
  requestId: string;
  /**
   * What of the request was ignored, in words. The server adds them to `data.warnings` of a `data` answer; a
   * handler that answers `raw` builds its body with `successBody(data, call.warnings)`.
   */
  warnings: readonly string[];
  /**
   * Waits for the account's next turn on the event loop: for handlers that do long work in portions, so that other
   * accounts have theirs in between.
   */
  turn(): Promise<void>;
  /** Aborted when the caller hangs up or the daemon stops. */
  readonly signal: AbortSignal;
}

/** A body that is read as it comes, of any length: whoever is slower waits for the other. */
export interface Upload {
  /** One of the media types that the operation takes, without parameters. */
  type: string;
  /** Throws `HungUp` when the caller goes away in the middle. To be read once. */
  bytes: AsyncIterable<Buffer>;
}

/**
 * A success: `data` goes into the envelope. With `raw` the body is sent as it stands, byte for byte (an
 * idempotent answer, kept before it is sent).
 */
export type Answer =
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
  /** Heading in the documentation. */
  tag: string;
  summary: string;
  description?: string;
  scope: ApiScope;
  params?: Params;
  query?: Query;
  body?: Body;
  /** A list in `body` whose elements the handler gets as `JsonElement`s, to be read one at a time. */
  list?: JsonList;
  /** An example request body for the documentation. */
  example?: object;
  /** In place of `body`: the media types of what is sent, and an example of each. */
  upload?: Record<string, string>;
  /** Which body limit holds, or its bytes; 'setup' when not said. */
  limit?: 'setup' | 'send' | number;
  /** Request headers beyond the usual ones, for the documentation. */
  headers?: Record<string, string>;
  /** Schema of `data` for each success status. */
  answers: Record<number, { description: string; data: z.ZodType; example?: object }>;
  /**
   * For reads that may exceed their time budget (`QUERY_TOO_BROAD`): the query parameters that make them smaller; none
   * where there is nothing to choose.
   */
  narrowBy?: readonly string[];
  /** Refusals beyond those that every keyed operation can answer with. */
  refusals: RefusalCode[];
  handle(
    call: Call<z.output<Params>, z.output<Query>, z.output<Body>>,
  ): Promise<Answer | Refusal> | Answer | Refusal;
}

/** A described operation whose handler's types have been checked and can be forgotten. */
export type Route = RouteDescription;

/** Checks a description against its own schemas; the handler's types follow from them. */
export function route<Params extends z.ZodObject, Query extends z.ZodObject, Body extends z.ZodType>(
  description: RouteDescription<Params, Query, Body>,
): Route {
  // Forgetting the types is sound: the server hands a handler only what its own schemas have parsed.
  return description;
}

/** A request without a key: health, metrics, the documentation. */
export interface Visit {
  from: CallerAddress;
  query: URLSearchParams;
  headers: IncomingHttpHeaders;
  requestId: string;
}

/** What a page answers, as it stands. */
export interface Page {
  status: number;
  contentType: string;
  body: string | Buffer;
  headers?: Record<string, string>;
}

/** An operation that needs no key. It is read only: GET, and HEAD by the server. */
export interface OpenRoute {
  path: string;
  operationId: string;
  tag: string;
  summary: string;
  description?: string;
  query?: Record<string, string>;
  answers: Record<number, { description: string; contentType: string; example?: object | string }>;
  visit(visit: Visit): Promise<Page | Refusal> | Page | Refusal;
}
