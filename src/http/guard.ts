import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { isDeepStrictEqual } from 'node:util';
import * as z from 'zod';
import type { Authenticator, Caller } from '../accounts/authenticate.ts';
import type { RateClass, RateLimits } from '../accounts/rate-limits.ts';
import type { Config } from '../config/schema.ts';
import { eventLoopTurns } from '../core/concurrency/slices.ts';
import { invalid, isRefusal, type Refusal, refuse, shortened } from '../core/refusal.ts';
import type { RateReading } from '../core/token-bucket.ts';
import { ReadRejected } from '../store/database/failure.ts';
import { MAX_ROWS, unknownKey } from './api/paging.ts';
import { type BodyReader, type ReceivedJson, UploadAborted, UploadTooSlow } from './body/body.ts';
import type { BodyOwner } from './body/body-budget.ts';
import { type CallSignals, whenClosed } from './call-signals.ts';
import type { InFlight } from './in-flight.ts';
import { isRecord } from './json-schema.ts';
import type { PageKeys } from './page-keys.ts';
import { type RefusalResponse, rateHeaders, refusalResponse, successResponse } from './responses.ts';
import {
  type Answer,
  type AnyCall,
  mapData,
  type PageKind,
  Reply,
  type Route,
  type Upload,
} from './route.ts';
import type { Handler, RoutedRequest } from './router.ts';
import { parseInput, readInput } from './validation/parse.ts';
import { type UnknownField, unknownWarnings } from './validation/unknown-fields.ts';

/*
 * The checks of every request that requires a key, in this order: key, account, scope, rate limit, concurrent
 * requests, body, validation, page key, concurrent large responses. The body is not read before the key is verified, unless
 * the key has signed the body: it is then read first, and parsed in its place. Parsing and everything after it wait for the
 * turn of the account.
 */

export interface GuardDeps {
  authenticate: Authenticate;
  /** The response for a refusal. Default: that of our API. */
  refused?: RefusalResponse;
  rateLimits: RateLimits;
  /** Maximum number of concurrent requests of an account; null: unlimited. */
  concurrencyOf(accountId: string): number | null;
  inFlight: InFlight;
  pageKeys: PageKeys;
  bodies: BodyReader;
  signals: CallSignals;
  /** Resolves when all readable data is on disk: what a response contains survives a crash. */
  durable(): Promise<void>;
  /** Limits of request bodies, in bytes; a reload changes them. */
  config: { limits: Pick<Config['limits'], 'setupBytes' | 'sendBytes'> };
}

/** Identifies the caller of a request and checks that the caller may use the route. */
export type Authenticate = (incoming: RoutedRequest, route: Route) => Caller | SignedRequest | Refusal;

/** A request whose signature includes the body: its caller is known when the body has arrived. */
export interface SignedRequest {
  /** For whom the body is read until then. */
  owner: BodyOwner;
  /** `bodyHash`: SHA-256 of the body. */
  callerOf(bodyHash: Buffer): Caller | Refusal;
}

/** Wraps the handler of a route in the checks. Throws when the description is inconsistent. */
export function guardedHandler(route: Route, deps: GuardDeps): Handler {
  const { refused = refusalResponse } = deps;
  checkDescription(route);
  const { page } = route;
  const rateClass = route.scope === 'setup' || route.scope === 'operator' ? 'setup' : 'send';
  const written = writtenBy(route);

  return async (incoming) => {
    const { requestId } = incoming;
    const identified = deps.authenticate(incoming, route);
    if (isRefusal(identified)) return refused(identified, requestId);
    const { limit: limitName = 'setup' } = route;
    const limit = typeof limitName === 'number' ? limitName : deps.config.limits[`${limitName}Bytes`];
    const found =
      'callerOf' in identified
        ? await callerOfSigned(incoming, identified, limit, deps)
        : { caller: identified, received: null };
    if (found === null) return null;
    if (isRefusal(found)) return refused(found, requestId);
    const { caller, received } = found;
    const reading = deps.rateLimits.take(caller.keyId, rateClass);
    const headers = reading === null ? {} : rateHeaders(rateClass, reading);
    const limited = rateRefusal(deps, caller, rateClass, reading);
    if (limited !== null) return refused(limited, requestId, headers);
    const slot = deps.inFlight.enter(caller.accountId, deps.concurrencyOf(caller.accountId));
    if (isRefusal(slot)) return refused(slot, requestId, headers);
    whenClosed(incoming.res, slot.release);
    const input = await inputOf(incoming, caller, received, route, written, limit, deps);
    if (input === null) return null;
    if (isRefusal(input)) return refused(input, requestId, headers);
    const { accountId } = caller;
    const after = page === undefined ? null : openPosition(page, input.query, accountId, deps.pageKeys);
    if (isRefusal(after)) return refused(after, requestId, headers);
    if (route.hasLargeResponse === true) {
      const large = await deps.inFlight.enterLargeResponse(accountId);
      if (isRefusal(large)) return refused(large, requestId, headers);
      whenClosed(incoming.res, large.release);
      if (incoming.res.closed) return null;
    }
    // The account can have been disabled while the body arrived: an export does not have what is changed after that. What accepts
    // mail checks it where it stores the message.
    if (rateClass === 'setup' && route.method !== 'GET' && !('callerOf' in identified)) {
      const still = deps.authenticate(incoming, route);
      if (isRefusal(still)) return refused(still, requestId, headers);
    }
    const { params, warnings, readOnly } = input;
    const call = callOf(incoming, caller, input, after, deps);
    // Neither `input` nor `call` is used after this: the body can be freed while the handler waits for the disk.
    const answered = await answerOf(route, call, input.query);
    if (answered === null) return null;
    if (answered instanceof Reply && answered.onClosed !== undefined)
      whenClosed(incoming.res, answered.onClosed);
    // A write has waited for the disk already.
    if (route.method === 'GET') await deps.durable();
    const answer = page === undefined ? answered : sealPosition(page, answered, accountId, deps.pageKeys);
    if (isRefusal(answer)) return refused(answer, requestId, headers);
    if (readOnly.length > 0) warnings.push(...readOnlyWarnings(readOnly, written, answer, params));
    const done = successResponse(answer, route.status, warnings, headers);
    const detail = route.auditDetail?.(call.body);
    return detail === undefined ? done : { ...done, auditDetail: detail };
  };
}

/** The caller of a signed request, with its body; null when the client disconnected. */
async function callerOfSigned(
  { req, res }: RoutedRequest,
  { owner, callerOf }: SignedRequest,
  limit: number,
  { bodies }: GuardDeps,
): Promise<{ caller: Caller; received: ReceivedJson } | Refusal | null> {
  const digest = createHash('sha256');
  const turn = () => eventLoopTurns.next(owner.accountId);
  const received = await bodies.receiveJson(req, res, { limit, owner, turn, digest });
  if (received === null || isRefusal(received)) return received;
  const caller = callerOf(digest.digest());
  return isRefusal(caller) ? caller : { caller, received };
}

/** The position that `lastKey` of the query contains, which the list has issued to the account; null: none. */
function openPosition(
  { list, parse }: PageKind<unknown>,
  { lastKey }: Record<string, unknown>,
  accountId: string,
  pageKeys: PageKeys,
): unknown {
  if (typeof lastKey !== 'string' || lastKey === '') return null;
  const text = pageKeys.open(accountId, lastKey);
  const prefix = `${list}:`;
  return (text?.startsWith(prefix) === true ? parse(text.slice(prefix.length)) : null) ?? unknownKey();
}

/** Replaces the position in `nextKey` of the data of a page by its key. */
function sealPosition(
  { list }: PageKind<unknown>,
  page: Answer,
  accountId: string,
  pageKeys: PageKeys,
): Answer {
  return mapData(page, (data) =>
    'nextKey' in data && typeof data.nextKey === 'string'
      ? { ...data, nextKey: pageKeys.seal(accountId, `${list}:${data.nextKey}`) }
      : data,
  );
}

/** Null when the client disconnected while the handler was reading. */
async function answerOf(route: Route, call: AnyCall, query: Record<string, unknown>): Promise<Answer | null> {
  try {
    return await route.handle(call);
  } catch (error) {
    if (error instanceof UploadAborted) return null;
    if (error instanceof UploadTooSlow)
      return refuse('REQUEST_TIMEOUT', 'The upload arrived too slowly: only what was read before is stored');
    if (error instanceof ReadRejected) return readRefusal(error, unsetOf(route.narrowBy ?? [], query));
    throw error;
  }
}

/** `Retry-After`, in seconds, of a read for which no thread was free. */
const READ_RETRY_SECONDS = 1;

/** The parameters that can narrow a query further: filters that are not set, and the limit, which has a default. */
function unsetOf(narrowBy: readonly string[], query: Record<string, unknown>): string[] {
  return narrowBy.filter((name) => name === 'limit' || query[name] === undefined);
}

function readRefusal({ reason, message }: ReadRejected, narrowBy: readonly string[]): Refusal {
  const sentence = message.charAt(0).toUpperCase() + message.slice(1);
  if (reason !== 'too-broad')
    return refuse('UNAVAILABLE', `${sentence}; try again`, { retryAfter: READ_RETRY_SECONDS });
  if (narrowBy.length === 0) return refuse('QUERY_TOO_BROAD', sentence);
  const advice = `narrow it with ${narrowBy.map((name) => `\`${name}\``).join(', ')}`;
  return refuse('QUERY_TOO_BROAD', `${sentence}: ${advice}`, {
    details: narrowBy.map((field) => ({ field, message: 'narrows the query' })),
  });
}

function rateRefusal(
  { rateLimits }: GuardDeps,
  { accountId }: Caller,
  rateClass: RateClass,
  ofKey: RateReading | null,
): Refusal | null {
  if (ofKey?.allowed === false) {
    return refuse(
      'RATE_LIMITED',
      `This key has reached its limit of ${ofKey.rate.perSecond} requests per second`,
      {
        retryAfter: ofKey.retryAfterSeconds,
      },
    );
  }
  const ofAccount = rateLimits.takeOfAccount(accountId, rateClass);
  if (ofAccount?.allowed !== false) return null;
  const { burst, perSecond } = ofAccount.rate;
  return refuse('RATE_LIMITED', `This account has reached its limit of ${perSecond} requests per second`, {
    retryAfter: ofAccount.retryAfterSeconds,
    limit: { name: `${rateClass}-account`, calls: burst, seconds: Math.max(1, Math.ceil(burst / perSecond)) },
  });
}

/**
 * Authentication by the key in `X-Api-Key` and the account in `X-Id`, or by the key as a bearer token (RFC 6750 §2.1), for
 * which `X-Id` is optional. A request with `X-Api-Key` may have an `Authorization` of a proxy, which is not read.
 */
export function byKey(authenticator: Authenticator): Authenticate {
  return ({ req, from }, route) => {
    const { 'x-api-key': key, 'x-id': id } = req.headers;
    const isBearer = key === undefined;
    const secret = isBearer ? bearerToken(req) : text(key);
    const accountId = isBearer && id === undefined ? null : text(id);
    return authenticator.authenticate({ secret, accountId, from: from() }, route.scope);
  };
}

/** Of a header that was sent twice Node has the first one only: neither is used. */
function bearerToken({ headers, headersDistinct }: IncomingMessage): string {
  if (headers.authorization === undefined || headersDistinct['authorization']?.length !== 1) return '';
  return /^bearer +([\w.~+/-]+=*)$/i.exec(headers.authorization)?.[1] ?? '';
}

/** A header that was sent twice is invalid: Node joins both values, and no key has that form. */
function text(value: string | string[] | undefined): string {
  return typeof value === 'string' ? value : '';
}

interface Input {
  params: Record<string, unknown>;
  query: Record<string, unknown>;
  body: unknown;
  /** Fields of the body that the resource has and a request cannot set. */
  readOnly: readonly UnknownField[];
  upload: Upload | null;
  file: Buffer;
  warnings: string[];
}

async function inputOf(
  incoming: RoutedRequest,
  owner: Caller,
  received: ReceivedJson | null,
  route: Route,
  written: WrittenResource,
  limit: number,
  { bodies }: GuardDeps,
): Promise<Input | Refusal | null> {
  let sent: unknown;
  const turn = () => eventLoopTurns.next(owner.accountId);
  const isUpload = route.upload !== undefined && (route.body === undefined || !isJson(incoming.req));
  const isFile = route.file !== undefined && (route.body === undefined || !isJson(incoming.req));
  const types = route.body === undefined ? undefined : ['application/json', ...(route.file ?? [])];
  const file = isFile
    ? await bodies.readFile(incoming.req, incoming.res, { limit, owner, turn, types })
    : NO_FILE;
  if (file === null || isRefusal(file)) return file;
  const schema = isUpload || isFile ? undefined : route.body;
  if (schema === undefined) await turn();
  else {
    const { list } = route;
    const arrived =
      received ?? (await bodies.receiveJson(incoming.req, incoming.res, { limit, owner, turn, list }));
    if (arrived === null || isRefusal(arrived)) return arrived;
    const read = await arrived.parse();
    if (isRefusal(read)) return read;
    if (read.value === undefined && !schema.safeParse(undefined).success) {
      return refuse('INVALID_JSON', 'The body is empty; JSON is required');
    }
    sent = read.value;
  }
  const upload =
    route.upload === undefined || !isUpload
      ? null
      : bodies.openUpload(incoming.req, incoming.res, Object.keys(route.upload));
  if (isRefusal(upload)) return upload;
  const params = route.path.includes('{') ? parseInput(route.params, incoming.params, 'path') : {};
  if (isRefusal(params)) return params;
  const sentQuery = readQuery(incoming.search);
  if (isRefusal(sentQuery)) return sentQuery;
  const clamped = clampLimit(route, sentQuery);
  const query = readInput(route.query ?? anyQuery, sentQuery, 'query');
  if (isRefusal(query)) return query;
  const warnings = [...clamped, ...unknownWarnings(query.unknown, 'query parameter')];
  if (schema === undefined)
    return { params, query: query.value, body: undefined, readOnly: [], upload, file, warnings };
  const body = readInput(schema, sent, 'body', route.refusesMisnamed);
  if (isRefusal(body)) return body;
  const { count, listed } = body.unknown;
  const isReadOnly = ({ object, name }: UnknownField) => object === '' && written.fields.has(name);
  const readOnly = listed.filter(isReadOnly);
  const others = listed.filter((field) => !isReadOnly(field));
  warnings.push(...unknownWarnings({ count: count - readOnly.length, listed: others }, 'field'));
  return { params, query: query.value, body: body.value, readOnly, upload, file, warnings };
}

/** Whether the body is JSON, or there is none. */
function isJson({ headers }: IncomingMessage): boolean {
  const [type = ''] = (headers['content-type'] ?? 'application/json').toLowerCase().split(';');
  return type.trim() === 'application/json';
}

const anyQuery = z.looseObject({});
const NO_FILE = Buffer.alloc(0);

/*
 * Read-only fields, such as `createdAt`: a resource has them, and a request cannot set them. Clients send back what they
 * read, so these are not unknown: one that is as in the response or in the path is ignored silently, another one with a
 * warning.
 */

/** A resource as the response to a write has it. */
interface WrittenResource {
  /** The field of the data that has it; null: the data is the resource. */
  name: string | null;
  /** Its fields, and those that it has in other responses only. */
  fields: ReadonlySet<string>;
  isNew: boolean;
}

/** The first field of the data of the response if that is an object, else the data. */
function writtenBy({ method, body, responses, readOnly = [] }: Route): WrittenResource {
  const isWrite = method === 'PUT' || method === 'PATCH' || 201 in responses;
  const [success] = isWrite && body !== undefined ? Object.values(responses) : [];
  const data = success === undefined ? {} : shapeOf(success.data);
  const [[name, first] = []] = Object.entries(data);
  const inside = Object.keys(first === undefined ? {} : shapeOf(first));
  const isInside = name !== undefined && inside.length > 0;
  return {
    name: isInside ? name : null,
    fields: new Set([...(isInside ? inside : Object.keys(data)), ...readOnly]),
    isNew: method === 'POST',
  };
}

function shapeOf(schema: z.core.$ZodType): z.core.$ZodShape {
  if (schema instanceof z.ZodIntersection)
    return { ...shapeOf(schema.def.left), ...shapeOf(schema.def.right) };
  return schema instanceof z.ZodObject ? schema.shape : {};
}

/**
 * Warnings about fields whose values differ from those of the resource in the response, or of the path. An update has the
 * `updatedAt` of the version that the client has read, and may have fields that the response does not have.
 */
function readOnlyWarnings(
  readOnly: readonly UnknownField[],
  { name: inside, isNew }: WrittenResource,
  answer: object,
  params: Record<string, unknown>,
): string[] {
  const content = answer instanceof Reply ? answer.content : { data: answer };
  const data: Record<string, unknown> = 'data' in content ? { ...content.data } : {};
  const found = inside === null ? data : data[inside];
  const resource: Record<string, unknown> = { ...(isRecord(found) ? found : {}), ...params };
  return readOnly
    .filter(({ name, value }) => {
      const isCompared = isNew || (name !== 'updatedAt' && name in resource);
      return isCompared && !isDeepStrictEqual(value, resource[name]);
    })
    .map(({ name }) => `read-only field "${name}" was ignored`);
}

/** Reduces a `limit` above that of the lists, in the query, and returns a warning about it. Clients of other builds ask for more. */
function clampLimit(route: Route, query: Record<string, string>): string[] {
  const { limit = '' } = query;
  if (route.query?.shape['limit'] === undefined || !/^\d+$/.test(limit) || Number(limit) <= MAX_ROWS)
    return [];
  query['limit'] = String(MAX_ROWS);
  return [`limit ${shortened(limit)} is above the maximum: ${MAX_ROWS} was used`];
}

/** Refuses repeated parameters: otherwise one of the values is silently ignored. */
function readQuery(search: string): Record<string, string> | Refusal {
  const query: Record<string, string> = Object.create(null);
  if (search === '') return query;
  for (const [name, value] of new URLSearchParams(search)) {
    if (name in query) return invalid(name, 'is given more than once');
    query[name] = value;
  }
  return query;
}

function callOf(
  incoming: RoutedRequest,
  caller: Caller,
  input: Input,
  after: unknown,
  { signals }: GuardDeps,
): AnyCall {
  let signal: AbortSignal | null = null;
  return {
    caller,
    address: incoming.from().address,
    params: input.params,
    query: input.query,
    body: input.body,
    after,
    upload: input.upload,
    file: input.file,
    headers: headersOf(incoming.req),
    requestId: incoming.requestId,
    warnings: input.warnings,
    turn: () => eventLoopTurns.next(caller.accountId),
    get signal() {
      signal ??= signals.of(incoming.res);
      return signal;
    },
  };
}

/** Node joins repeated fields by ", ", which an Idempotency-Key may contain: its values remain separate. */
function headersOf(req: IncomingMessage): IncomingHttpHeaders {
  if (req.headers[IDEMPOTENCY_KEY]?.includes(', ') !== true) return req.headers;
  const values = req.headersDistinct[IDEMPOTENCY_KEY] ?? [];
  return values.length < 2 ? req.headers : { ...req.headers, [IDEMPOTENCY_KEY]: values };
}

const IDEMPOTENCY_KEY = 'idempotency-key';

function checkDescription(route: Route): void {
  const unknown = (route.narrowBy ?? []).filter((name) => route.query?.shape[name] === undefined);
  if (unknown.length > 0)
    throw new Error(`${route.operationId}: narrowBy names [${unknown.join()}], which are not in query`);
  if (route.upload !== undefined && route.body?.safeParse(undefined).success === false)
    throw new Error(`${route.operationId}: has an upload in place of its body, which must be optional`);
}
