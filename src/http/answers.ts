import { type Refusal, type RefusalCode, type RefusalDetail, shortened } from '../core/refusal.ts';
import { reachedHeaders } from './rate-headers.ts';
import type { Answer, Page } from './route.ts';

/**
 * What goes over the wire: the envelopes of contract §3. Every answer of the API, whoever gives it, is made
 * here, so that a client can rely on one shape.
 */
export interface Reply {
  status: number;
  contentType: string;
  body: string | Buffer;
  headers: Record<string, string>;
}

export const JSON_TYPE = 'application/json; charset=utf-8';

/** Seconds to wait where a refusal that asks for `Retry-After` names none. */
const RETRY_AFTER: Partial<Record<RefusalCode, number>> = {
  UNAVAILABLE: 10,
  RATE_LIMITED: 1,
  IDEMPOTENCY_IN_PROGRESS: 1,
};

/** The body of a success. `warnings` appear in `data` only when there are any. */
export function successBody(data: object, warnings: readonly string[]): string {
  return JSON.stringify({ success: true, data: warnings.length === 0 ? data : { ...data, warnings } });
}

export function answerReply(
  answer: Answer,
  warnings: readonly string[],
  headers: Record<string, string>,
): Reply {
  return {
    status: answer.status,
    contentType: JSON_TYPE,
    body: 'raw' in answer ? answer.raw : successBody(answer.data, warnings),
    headers: answer.headers === undefined ? headers : { ...headers, ...answer.headers },
  };
}

export function pageReply(page: Page): Reply {
  return {
    status: page.status,
    contentType: page.contentType,
    body: page.body,
    headers: page.headers ?? {},
  };
}

/** A refusal as it is answered; `headers` come along (rate fields, `Allow`). */
export function refusalReply(
  refusal: Refusal,
  requestId: string,
  headers: Record<string, string> = {},
): Reply {
  const retryAfter = refusal.extras.retryAfter ?? RETRY_AFTER[refusal.code];
  const more: Record<string, string> = {};
  if (retryAfter !== undefined) more['Retry-After'] = String(retryAfter);
  const { limit } = refusal.extras;
  if (limit !== undefined) Object.assign(more, reachedHeaders(limit, retryAfter ?? limit.seconds));
  // RFC 9110 §15.5.9: the rest of the request is not waited for.
  if (refusal.status === 408) more['Connection'] = 'close';
  // RFC 9110 §15.5.2: a 401 names a scheme.
  if (refusal.status === 401) more['WWW-Authenticate'] = 'ApiKey realm="postrider"';
  return {
    status: refusal.status,
    contentType: JSON_TYPE,
    body: refusalBody(refusal, requestId),
    headers: { ...headers, ...more },
  };
}

/** Bytes of all details of an error together, and characters of its message, which the envelope repeats. */
const MAX_DETAIL_BYTES = 10 * 1024;
const MAX_MESSAGE = 600;

/**
 * The error envelope; clients read `error` or the repeated fields beside it. It stays below 16 KiB whatever the
 * request held. `maxDetails`: for an answer that holds many errors.
 */
export function refusalBody(
  refusal: Refusal,
  requestId: string,
  maxDetails = Number.POSITIVE_INFINITY,
): string {
  return JSON.stringify(refusalEnvelope(refusal, requestId, maxDetails));
}

export function refusalEnvelope(
  refusal: Refusal,
  requestId: string,
  maxDetails = Number.POSITIVE_INFINITY,
): object {
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

/** The first details, as far as they fit; how many more there are is the last one. */
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
