import { Readable } from 'node:stream';
import type { RateClass } from '../accounts/rate-limits.ts';
import { type Refusal, type RefusalCode, type RefusalDetail, refuse, shortened } from '../core/refusal.ts';
import type { RateReading } from '../core/token-bucket.ts';
import { PartlyDone, storageFailure } from '../store/database/failure.ts';
import { type HttpResponse, Reply } from './route.ts';

/* Responses as they are sent: the envelopes and header fields of all responses of the API. */

export const JSON_TYPE = 'application/json; charset=utf-8';

/** Default of `Retry-After`, in seconds, by error code. */
const RETRY_AFTER: Partial<Record<RefusalCode, number>> = {
  UNAVAILABLE: 10,
  RATE_LIMITED: 1,
  IDEMPOTENCY_IN_PROGRESS: 1,
};

function retryAfterOf({ code, extras }: Refusal): number | undefined {
  return extras.retryAfter ?? RETRY_AFTER[code];
}

/** The refusal of a request, or of an item of one, for which an unexpected error was thrown. It has no details of it. */
export function faultRefusal(error: unknown): Refusal {
  const failure = storageFailure(error);
  const [outcome, done] =
    error instanceof PartlyDone ? ['completed', `. Before that, ${error.done}`] : ['processed', ''];
  return failure === null
    ? refuse('INTERNAL_ERROR', `Internal error; the log has the details under this request id${done}`)
    : refuse('UNAVAILABLE', `The request was not ${outcome}: ${failure.reason}${done}`);
}

/** The body of a success. `warnings` are added to `data` only if there are any. */
export function successBody(data: object, warnings: readonly string[]): string {
  return JSON.stringify({ success: true, data: warnings.length === 0 ? data : { ...data, warnings } });
}

/** `status` is that of an answer without its own. Fields of the answer take precedence over `headers`. */
export function successResponse(
  answer: object,
  status: number,
  warnings: readonly string[],
  headers: Record<string, string>,
): HttpResponse {
  if (!(answer instanceof Reply))
    return { status, contentType: JSON_TYPE, body: successBody(answer, warnings), headers };
  const { content } = answer;
  return {
    status: answer.status ?? status,
    contentType: answer.contentType ?? JSON_TYPE,
    body: 'raw' in content ? content.raw : successBody(content.data, [...warnings, ...answer.warnings]),
    headers: { ...headers, ...answer.headers },
  };
}

/** A function with the response for a refusal, in our form or in that of another provider. */
export type RefusalResponse = typeof refusalResponse;

/** The response for a refusal, with additional `headers` (rate fields, `Allow`). */
export function refusalResponse(
  refusal: Refusal,
  requestId: string,
  headers: Record<string, string> = {},
): HttpResponse {
  const retryAfter = retryAfterOf(refusal);
  const more: Record<string, string> = {};
  if (retryAfter !== undefined) more['Retry-After'] = String(retryAfter);
  const { limit } = refusal.extras;
  if (limit !== undefined) Object.assign(more, reachedHeaders(limit, retryAfter ?? limit.seconds));
  // RFC 9110 §15.5.9: the server does not wait for the rest of the request.
  if (refusal.status === 408) more['Connection'] = 'close';
  // RFC 9110 §15.5.2: a 401 names the authentication schemes.
  if (refusal.status === 401) more['WWW-Authenticate'] = 'Bearer realm="postrider", ApiKey realm="postrider"';
  return {
    status: refusal.status,
    contentType: JSON_TYPE,
    body: refusalBody(refusal, requestId),
    headers: { ...headers, ...more },
  };
}

/** Bytes of all details of an error, and characters of its message, which the envelope has twice. */
const MAX_DETAIL_BYTES = 10 * 1024;
const MAX_MESSAGE = 600;

/**
 * The error envelope; clients read `error` or the fields that repeat it. It stays below 16 KiB for every request.
 * `maxDetails`: for responses with many errors.
 */
export function refusalBody(
  refusal: Refusal,
  requestId: string,
  maxDetails = Number.POSITIVE_INFINITY,
): string {
  return JSON.stringify(refusalEnvelope(refusal, requestId, maxDetails));
}

/** The envelope of `refusalBody` as an object, for responses that add fields to it. */
export function refusalEnvelope(
  refusal: Refusal,
  requestId: string,
  maxDetails = Number.POSITIVE_INFINITY,
): { error: object; [field: string]: unknown } {
  const { code, extras } = refusal;
  const message = shortened(refusal.message, MAX_MESSAGE);
  const details = extras.details === undefined ? undefined : fittingDetails(extras.details, maxDetails);
  return {
    success: false,
    error: { code, message, ...(details === undefined ? {} : { details }) },
    message,
    reasonCode: code,
    requestId,
    ...(extras.subscriptionStatus === undefined ? {} : { subscriptionStatus: extras.subscriptionStatus }),
  };
}

/**
 * The envelope of a refused item in a list of results, with `error.retryAfter`, seconds, where the response to a single
 * request has the field `Retry-After`.
 */
export function refusedItemBody(refusal: Refusal, requestId: string, maxDetails: number): string {
  const envelope = refusalEnvelope(refusal, requestId, maxDetails);
  const retryAfter = retryAfterOf(refusal);
  return JSON.stringify({ ...envelope, error: { ...envelope.error, retryAfter } });
}

/** The first details that fit; the last one counts the others. */
function fittingDetails(details: readonly RefusalDetail[], max: number): RefusalDetail[] {
  const fitting: RefusalDetail[] = [];
  let left = MAX_DETAIL_BYTES;
  for (const detail of details) {
    left -= Buffer.byteLength(JSON.stringify(detail));
    if (left < 0 || fitting.length >= max) {
      const more = details.length - fitting.length;
      return [...fitting, { field: detail.field, message: `and ${more} more errors` }];
    }
    fitting.push(detail);
  }
  return fitting;
}

/**
 * Header fields about the rate limit of the caller: those of draft-ietf-httpapi-ratelimit-headers (the policy allows `q`
 * requests in `w` seconds; `r` requests remain, and `q` again after `t` seconds) and the older X- fields.
 */
export function rateHeaders(rateClass: RateClass, reading: RateReading): Record<string, string> {
  const { burst, perSecond } = reading.rate;
  return {
    'X-RateLimit-Limit': String(burst),
    'X-RateLimit-Remaining': String(reading.remaining),
    'RateLimit-Policy': `"${rateClass}";q=${burst};w=${Math.max(1, Math.ceil(burst / perSecond))}`,
    RateLimit: `"${rateClass}";r=${reading.remaining};t=${reading.fullAfterSeconds}`,
  };
}

/** Header fields about a rate limit that is reached. `retryAfter`: seconds until the next request is allowed. */
export function reachedHeaders(
  { name, calls, seconds }: { name: string; calls: number; seconds: number },
  retryAfter: number,
): Record<string, string> {
  return {
    'X-RateLimit-Limit': String(calls),
    'X-RateLimit-Remaining': '0',
    'RateLimit-Policy': `"${name}";q=${calls};w=${seconds}`,
    RateLimit: `"${name}";r=0;t=${retryAfter}`,
  };
}

/** A larger body is written to the connection in chunks of this size. */
const CHUNK_BYTES = 64 * 1024;

/**
 * A large body as a stream, which is written as fast as the client reads it, so that bytes that wait in the socket indicate a
 * stalled client. Null: the body is small.
 */
export function largeBody(body: string | Buffer): Readable | null {
  if (Buffer.byteLength(body) <= CHUNK_BYTES) return null;
  const bytes = typeof body === 'string' ? Buffer.from(body) : body;
  return Readable.from(chunksOf(bytes), { objectMode: false, highWaterMark: 1 });
}

function* chunksOf(bytes: Buffer): Generator<Buffer> {
  for (let start = 0; start < bytes.length; start += CHUNK_BYTES)
    yield bytes.subarray(start, start + CHUNK_BYTES);
}
