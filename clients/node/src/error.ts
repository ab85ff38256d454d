import type { Schemas } from './operations.ts';

export type ErrorDetail = Schemas['ErrorDetail'];

/** What is known about a failure. */
interface Failure {
  status: number;
  code: PostriderError['code'];
  message: string;
  details?: readonly ErrorDetail[];
  requestId?: string;
  retryAfterSeconds?: number | undefined;
  cause?: unknown;
}

/** A request that failed: the response was an error, or there was none. */
export class PostriderError extends Error {
  override readonly name = 'PostriderError';
  /** HTTP status; 0 if there was no response. */
  readonly status: number;
  /** `error.code` of the response; `NETWORK` or `TIMEOUT` if there was none, `INVALID_RESPONSE` if it is not one of Postrider. */
  readonly code: Schemas['ErrorCode'] | 'NETWORK' | 'TIMEOUT' | 'INVALID_RESPONSE';
  /** The first invalid field, such as `attachments[2].content`; null if the error is not about a field. */
  readonly field: string | null;
  readonly details: readonly ErrorDetail[];
  /** The id of the request in the log of the daemon; '' if there was no response. */
  readonly requestId: string;
  /** `Retry-After` of the response, in seconds. */
  readonly retryAfterSeconds: number | undefined;
  /** Of sends: a later request with this key and the same body sends the mail unless it was sent. */
  readonly idempotencyKey: string | undefined;

  constructor(failure: Failure, idempotencyKey?: string) {
    super(failure.message, failure.cause === undefined ? {} : { cause: failure.cause });
    this.status = failure.status;
    this.code = failure.code;
    this.details = failure.details ?? [];
    this.field = this.details[0]?.field ?? null;
    this.requestId = failure.requestId ?? '';
    this.retryAfterSeconds = failure.retryAfterSeconds;
    this.idempotencyKey = idempotencyKey;
  }
}
