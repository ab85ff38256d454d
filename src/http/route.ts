import type { IncomingHttpHeaders } from 'node:http';
import type { z } from 'zod';
import type { Refusal, RefusalCode } from '../core/refusal.ts';

/**
 * One operation of the API: how it is reached, what it takes, what it answers. The router, the validation and
 * the OpenAPI document are all made from this one description, so they cannot disagree. A handler parses
 * nothing and checks no form: it gets narrow types, calls the room below and answers.
 */
export type Scope = 'setup' | 'marketing' | 'transactional';

/** Who is calling: the key was valid, the account enabled, the scope right. */
export interface Caller {
  accountId: string;
  keyId: string;
  /** From domains the key is tied to, empty: any. */
  allowFrom: string[];
}

export interface Call<Params, Query, Body> {
  caller: Caller;
  params: Params;
  query: Query;
  body: Body;
  headers: IncomingHttpHeaders;
  requestId: string;
  /** Aborted when the caller hangs up or the daemon stops. */
  signal: AbortSignal;
}

/**
 * A success: `data` goes into the envelope. With `raw` the body is sent as it stands, byte for byte (an
 * idempotent replay).
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
  /** `/web-setup/domains/{domainId}`. */
  path: string;
  operationId: string;
  /** Heading in the documentation. */
  tag: string;
  summary: string;
  description?: string;
  scope: Scope;
  params?: Params;
  query?: Query;
  body?: Body;
  /** An example request body for the documentation. */
  example?: object;
  /** Which body limit holds; 'setup' when not said. */
  limit?: 'setup' | 'send';
  /** Request headers beyond the usual ones, for the documentation. */
  headers?: Record<string, string>;
  /** Schema of `data` for each success status. */
  answers: Record<number, { description: string; data: z.ZodType; example?: object }>;
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
