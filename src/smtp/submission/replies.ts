import { type Refusal, type RefusalCode, refuse } from '../../core/refusal.ts';
import { SmtpRejection } from '../reply.ts';

/**
 * The SMTP codes of refusals (RFC 5321 §4.2.2, RFC 3463, RFC 5248): permanent (5yz) unless a later attempt may succeed
 * (4yz), for which a client keeps the mail and retries.
 */
const REPLIES: Partial<Record<RefusalCode, [code: number, enhanced: string]>> = {
  UNAUTHENTICATED: [535, '5.7.8'],
  INSUFFICIENT_SCOPE: [535, '5.7.8'],
  ACCOUNT_DISABLED: [525, '5.7.13'],
  KEY_NOT_ALLOWED: [550, '5.7.1'],
  RATE_LIMITED: [450, '4.7.1'],
  DOMAIN_NOT_REGISTERED: [550, '5.7.1'],
  DOMAIN_NOT_VERIFIED: [550, '5.7.1'],
  USE_CASE_MISMATCH: [550, '5.7.1'],
  COMPANY_ADDRESS_MISSING: [550, '5.7.1'],
  CONSENT_REQUIRED: [550, '5.7.1'],
  RECIPIENT_UNSUBSCRIBED: [550, '5.7.1'],
  RECIPIENT_SUPPRESSED: [550, '5.7.1'],
  CAMPAIGN_NOT_FOUND: [554, '5.5.4'],
  SUBSCRIPTION_GROUP_NOT_FOUND: [554, '5.5.4'],
  SEGMENT_NOT_FOUND: [554, '5.5.4'],
  IDEMPOTENCY_KEY_REUSED: [554, '5.5.4'],
  IDEMPOTENCY_IN_PROGRESS: [451, '4.5.0'],
  PAYLOAD_TOO_LARGE: [552, '5.3.4'],
  ATTACHMENTS_TOO_LARGE: [552, '5.3.4'],
  INTERNAL_ERROR: [451, '4.3.0'],
  UNAVAILABLE: [452, '4.3.1'],
  LIMIT_REACHED: [452, '4.3.1'],
  QUERY_TOO_BROAD: [451, '4.3.0'],
};

/** For all other codes: the content of the mail is invalid. */
const INVALID_CONTENT: [number, string] = [554, '5.6.0'];

/** A reply line has at most 512 bytes, including the code and the line end (RFC 5321 §4.5.3.1.5). */
const MAX_TEXT = 480;

/** The text begins with the refusal's code, so that programs can identify it as over HTTP. */
export function replyTo(refusal: Refusal): SmtpRejection {
  return reply(refusal, REPLIES[refusal.code] ?? INVALID_CONTENT);
}

/** The reply to AUTH, which has its own temporary code (RFC 4954 §6), and a text that fits SMTP credentials. */
export function authReplyTo(refusal: Refusal): SmtpRejection {
  if (refusal.code === 'RATE_LIMITED') return reply(refusal, [454, '4.7.0']);
  if (refusal.code === 'INSUFFICIENT_SCOPE') return replyTo(NO_SENDING_SCOPE);
  return refusal.code === 'UNAUTHENTICATED' ? replyTo(INVALID_CREDENTIALS) : replyTo(refusal);
}

const NO_SENDING_SCOPE = refuse(
  'INSUFFICIENT_SCOPE',
  'The key needs the scope "transactional" or "marketing"',
);
export const INVALID_CREDENTIALS = refuse(
  'UNAUTHENTICATED',
  'The user name must be an account id, and the password a key of that account',
);

function reply({ code: name, message }: Refusal, [code, enhanced]: [number, string]): SmtpRejection {
  const text = `${name}: ${message}`.replaceAll(/\s+/g, ' ').replaceAll(/[^\x20-\x7e]/g, '?');
  return new SmtpRejection(code, enhanced, text.slice(0, MAX_TEXT));
}
