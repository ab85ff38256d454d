import type { Refusal, RefusalCode } from '../core/refusal.ts';
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

/** The error envelope; clients read `error` or the repeated fields beside it. */
export function refusalBody(refusal: Refusal, requestId: string): string {
  return JSON.stringify(refusalEnvelope(refusal, requestId));
}

export function refusalEnvelope(refusal: Refusal, requestId: string): object {
  const { code, message, extras } = refusal;
  return {
    success: false,
    error: { code, message, ...(extras.details === undefined ? {} : { details: extras.details }) },
    message,
    reasonCode: code,
    requestId,
    ...(extras.subscriptionStatus === undefined ? {} : { subscriptionStatus: extras.subscriptionStatus }),
  };
}
