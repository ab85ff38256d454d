/**
 * Expected errors: all error codes with their HTTP status and, for the API reference, their meaning. A refusal is a value, not
 * an exception: a function that can refuse returns `T | Refusal`, and the caller checks with `isRefusal`. All other errors are
 * thrown, logged once, and answered with 500 or retried.
 */
export const REFUSALS = {
  INVALID_JSON: [400, 'The body is not valid JSON.'],
  VALIDATION_ERROR: [
    400,
    'A field, path parameter or query parameter is missing or invalid; `details` names it.',
  ],
  SUPPRESSION_FILE: [
    400,
    'The file is an export of suppressions, whose addresses are not imported as contacts: import it with `POST /web-setup/suppressions/import`.',
  ],
  UNAUTHENTICATED: [
    401,
    'The key is missing, unknown or revoked, or does not belong to the account in `X-Id`, which only `Authorization: Bearer` makes optional.',
  ],
  INSUFFICIENT_SCOPE: [403, 'The key does not have the scope of this operation.'],
  KEY_NOT_ALLOWED: [403, 'The key is restricted to other caller addresses or From domains.'],
  ACCOUNT_DISABLED: [403, 'The account is disabled.'],
  DOMAIN_NOT_REGISTERED: [403, 'The `from` domain is not registered in this account.'],
  DOMAIN_NOT_VERIFIED: [403, 'The `from` domain is registered but not verified.'],
  USE_CASE_MISMATCH: [403, 'The `from` domain is registered for the other use case only.'],
  CONSENT_REQUIRED: [403, 'The recipient has not given consent.'],
  RECIPIENT_UNSUBSCRIBED: [403, 'The recipient has unsubscribed.'],
  RECIPIENT_SUPPRESSED: [403, 'The recipient is suppressed; `details` has the reason and the time.'],
  ACCOUNT_NOT_FOUND: [404, 'The account does not exist.'],
  KEY_NOT_FOUND: [404, 'The key does not exist.'],
  DOMAIN_NOT_FOUND: [404, 'The account has no such domain.'],
  GROUP_NOT_FOUND: [404, 'The account has no such domain group.'],
  SUBSCRIPTION_GROUP_NOT_FOUND: [404, 'The account has no such subscription group.'],
  SEGMENT_NOT_FOUND: [404, 'The account has no such segment.'],
  SUBSCRIPTION_NOT_FOUND: [404, 'The contact is not a member of the group.'],
  CONTACT_NOT_FOUND: [404, 'The account has no such contact.'],
  WEBHOOK_NOT_FOUND: [404, 'The account has no such webhook.'],
  CAMPAIGN_NOT_FOUND: [404, 'The account has no such campaign.'],
  SEQUENCE_NOT_FOUND: [404, 'The account has no such sequence.'],
  MESSAGE_NOT_FOUND: [404, 'The account has no such message.'],
  TEMPLATE_NOT_FOUND: [404, 'The account has no such template.'],
  MEDIA_NOT_FOUND: [404, 'The account has no such image.'],
  PARTIAL_NOT_FOUND: [404, 'The account has no such partial.'],
  INBOUND_ROUTE_NOT_FOUND: [404, 'The account has no such inbound route.'],
  INBOUND_NOT_FOUND: [404, 'The account has no such received mail, or it was deleted.'],
  USE_CASE_NOT_FOUND: [404, 'The use case does not exist.'],
  NOT_FOUND: [404, 'The resource does not exist.'],
  METHOD_NOT_ALLOWED: [405, 'The path does not support this method; `Allow` lists those that it supports.'],
  REQUEST_TIMEOUT: [408, 'The body arrived too slowly.'],
  CONTACT_ALREADY_EXISTS: [409, 'A contact with this email address or phone number already exists.'],
  GROUP_NOT_EMPTY: [409, 'The group still has domains, or is the default group.'],
  INVALID_STATE: [409, 'The resource is not in a state that allows this operation.'],
  PARTIAL_IN_USE: [409, 'A template, a sequence or another partial uses the partial; `details` names them.'],
  MEDIA_IN_USE: [409, 'A template, a campaign or a sequence contains the image; `details` names them.'],
  LIMIT_REACHED: [409, 'The account has reached its limit for this resource; `details` names the limit.'],
  INBOUND_ROUTE_EXISTS: [409, 'The account has another inbound route with the same match.'],
  IDEMPOTENCY_IN_PROGRESS: [409, 'A request with the same `Idempotency-Key` is in progress.'],
  PAYLOAD_TOO_LARGE: [413, 'The body exceeds its limit.'],
  ATTACHMENTS_TOO_LARGE: [413, 'The decoded attachments exceed 2,097,152 bytes in total.'],
  UNSUPPORTED_MEDIA_TYPE: [415, 'The media type of the body is not supported.'],
  HOST_NOT_ALLOWED: [421, 'The API is not served under the name in `Host`; `api.hosts` lists the names.'],
  ATTACHMENT_NOT_FETCHED: [
    422,
    'The file of an attachment could not be fetched from its `url`; `details` names it and the reason.',
  ],
  TOO_MANY_ATTACHMENTS: [422, 'The message has more than 10 attachments.'],
  COMPLIANCE_TEMPLATE_MISSING: [422, 'The html lacks a compliance variable; `details` names it.'],
  COMPANY_ADDRESS_MISSING: [422, 'The account has no company name and postal address to insert.'],
  TEMPLATE_VARIABLE_MISSING: [
    422,
    'A variable has no value, or its name has characters that names cannot have; `details` names it.',
  ],
  TEMPLATE_SYNTAX: [
    422,
    'Liquid or MJML is not valid, and `details` names the place; or marketing mail has the syntax of another template language, which would be sent as text.',
  ],
  IDEMPOTENCY_KEY_REUSED: [422, 'The same `Idempotency-Key` was sent with a different body.'],
  RATE_LIMITED: [
    429,
    'Too many requests, concurrent requests, messages or failed authentications; the message names the limit, `Retry-After` has the time to wait.',
  ],
  INTERNAL_ERROR: [500, 'The service failed; its log has the error under the request id.'],
  UNAVAILABLE: [
    503,
    'The service is shutting down, its database is not available (disk full, I/O error, locked), its queue exceeds its limit, or too many queries are waiting. Nothing was accepted; try again after `Retry-After`.',
  ],
  QUERY_TOO_BROAD: [
    503,
    'The query was stopped because it reads more rows than its time budget allows (`readers.budget`); `details` names the parameters that narrow it.',
  ],
} as const satisfies Record<string, readonly [status: number, meaning: string]>;

export type RefusalCode = keyof typeof REFUSALS;

/** The HTTP status of a code. */
export function statusOf(code: RefusalCode): number {
  return REFUSALS[code][0];
}

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

export type SubscriptionStatus =
  | 'not_subscribed'
  | 'unsubscribed'
  | 'bounced'
  | 'complained'
  | 'suppressed'
  | 'paused';

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
    return statusOf(this.code);
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
