/**
 * Expected errors: all error codes with their HTTP status. A refusal is a value, not an exception: a function that can
 * refuse returns `T | Refusal`, and the caller checks with `isRefusal`. All other errors are thrown, logged once, and
 * answered with 500 or retried.
 */
export const REFUSALS = {
  INVALID_JSON: 400,
  VALIDATION_ERROR: 400,
  SUPPRESSION_FILE: 400,
  UNAUTHENTICATED: 401,
  INSUFFICIENT_SCOPE: 403,
  KEY_NOT_ALLOWED: 403,
  ACCOUNT_DISABLED: 403,
  DOMAIN_NOT_REGISTERED: 403,
  DOMAIN_NOT_VERIFIED: 403,
  USE_CASE_MISMATCH: 403,
  CONSENT_REQUIRED: 403,
  RECIPIENT_UNSUBSCRIBED: 403,
  RECIPIENT_SUPPRESSED: 403,
  ACCOUNT_NOT_FOUND: 404,
  KEY_NOT_FOUND: 404,
  DOMAIN_NOT_FOUND: 404,
  GROUP_NOT_FOUND: 404,
  SUBSCRIPTION_GROUP_NOT_FOUND: 404,
  SUBSCRIPTION_NOT_FOUND: 404,
  CONTACT_NOT_FOUND: 404,
  WEBHOOK_NOT_FOUND: 404,
  CAMPAIGN_NOT_FOUND: 404,
  MESSAGE_NOT_FOUND: 404,
  TEMPLATE_NOT_FOUND: 404,
  USE_CASE_NOT_FOUND: 404,
  NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  REQUEST_TIMEOUT: 408,
  CONTACT_ALREADY_EXISTS: 409,
  GROUP_NOT_EMPTY: 409,
  INVALID_STATE: 409,
  LIMIT_REACHED: 409,
  IDEMPOTENCY_IN_PROGRESS: 409,
  PAYLOAD_TOO_LARGE: 413,
  ATTACHMENTS_TOO_LARGE: 413,
  UNSUPPORTED_MEDIA_TYPE: 415,
  HOST_NOT_ALLOWED: 421,
  TOO_MANY_ATTACHMENTS: 422,
  COMPLIANCE_TEMPLATE_MISSING: 422,
  COMPANY_ADDRESS_MISSING: 422,
  TEMPLATE_VARIABLE_MISSING: 422,
  TEMPLATE_SYNTAX: 422,
  IDEMPOTENCY_KEY_REUSED: 422,
  RATE_LIMITED: 429,
  INTERNAL_ERROR: 500,
  UNAVAILABLE: 503,
  QUERY_TOO_BROAD: 503,
} as const;

export type RefusalCode = keyof typeof REFUSALS;

/** Whether a text is the code of a refusal. */
export function isRefusalCode(text: string): text is RefusalCode {
  return Object.hasOwn(REFUSALS, text);
}

/** One invalid part of a request; `field` is a path such as `attachments[2].content`. */
export interface RefusalDetail {
  field: string;
  message: string;
  code?: RefusalCode;
  recipient?: string;
  name?: string;
  reason?: string;
  since?: string;
}

export type SubscriptionStatus = 'not_subscribed' | 'unsubscribed' | 'bounced' | 'complained' | 'suppressed';

export interface RefusalExtras {
  details?: RefusalDetail[];
  subscriptionStatus?: SubscriptionStatus;
  /** Seconds for `Retry-After`. */
  retryAfter?: number;
  /** The limit that was reached (`calls` per `seconds`), unless it is the limit of the key. */
  limit?: { name: string; calls: number; seconds: number };
}

export class Refusal {
  readonly code: RefusalCode;
  readonly message: string;
  readonly extras: RefusalExtras;

  constructor(code: RefusalCode, message: string, extras: RefusalExtras = {}) {
    this.code = code;
    this.message = message;
    this.extras = extras;
  }

  get status(): number {
    return REFUSALS[this.code];
  }
}

/** Creates a refusal. `message`: a sentence for a person. */
export function refuse(code: RefusalCode, message: string, extras: RefusalExtras = {}): Refusal {
  return new Refusal(code, message, extras);
}

/** A `VALIDATION_ERROR` about one field. */
export function invalid(field: string, message: string): Refusal {
  return new Refusal('VALIDATION_ERROR', `${field}: ${message}`, { details: [{ field, message }] });
}

/**
 * A `LIMIT_REACHED` of an account. `name`: the limit as `details` names it. `resources`: what is counted, in words, if that is
 * not the name. `remedy`: what the caller can do, without a period.
 */
export function accountLimitReached(
  name: string,
  limit: number,
  { resources = name, remedy }: { resources?: string; remedy?: string } = {},
): Refusal {
  const message = `This account has reached its limit of ${limit} ${resources}`;
  return refuse('LIMIT_REACHED', remedy === undefined ? message : `${message}: ${remedy}`, {
    details: [{ field: name, name, message: `limit ${name} (${limit}) is reached` }],
  });
}

/** Whether a function that can refuse has refused. */
export function isRefusal(value: unknown): value is Refusal {
  return value instanceof Refusal;
}

/** Characters of a caller's name or value that a message quotes. */
const MAX_QUOTED = 64;

/** The beginning of a caller's text, for quoting it in a message. */
export function shortened(text: string, max = MAX_QUOTED): string {
  return text.length > max ? `${text.slice(0, max).toWellFormed()}…` : text;
}
