import { type Refusal, type RefusalCode, refuse } from '../../core/refusal.ts';
import { SmtpReply } from '../reply.ts';

/**
 * What a refusal is called over SMTP (RFC 5321 §4.2.2, RFC 3463, RFC 5248). Permanent where HTTP says 4xx and
 * nothing will be better for waiting; a program that gets a 4yz keeps the mail and comes again.
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
  IDEMPOTENCY_KEY_REUSED: [554, '5.5.4'],
  IDEMPOTENCY_IN_PROGRESS: [451, '4.5.0'],
  PAYLOAD_TOO_LARGE: [552, '5.3.4'],
  ATTACHMENTS_TOO_LARGE: [552, '5.3.4'],
  INTERNAL_ERROR: [451, '4.3.0'],
  UNAVAILABLE: [452, '4.3.1'],
  QUERY_TOO_BROAD: [451, '4.3.0'],
};

/** All that is wrong with the mail itself: what is missing in it, what it must not hold. */
const ABOUT_CONTENT: [number, string] = [554, '5.6.0'];

/** A reply line has 512 octets, code and line end included (RFC 5321 §4.5.3.1.5). */
const LONGEST_TEXT = 480;

/** With the code in front, by which programs that know the HTTP interface tell refusals apart. */
export function replyTo(refusal: Refusal): SmtpReply {
  return reply(refusal, REPLIES[refusal.code] ?? ABOUT_CONTENT);
}

/** The same at AUTH, where another code says to come again (RFC 4954 §6), and nobody knows of HTTP's fields. */
export function authReplyTo(refusal: Refusal): SmtpReply {
  if (refusal.code === 'RATE_LIMITED') return reply(refusal, [454, '4.7.0']);
  return refusal.code === 'UNAUTHENTICATED' ? replyTo(NOT_KNOWN) : replyTo(refusal);
}

const NOT_KNOWN = refuse(
  'UNAUTHENTICATED',
  'user and password must be an account id and a key of that account',
);

function reply({ code: name, message }: Refusal, [code, enhanced]: [number, string]): SmtpReply {
  const text = `${name}: ${message}`.replaceAll(/\s+/g, ' ').replaceAll(/[^\x20-\x7e]/g, '?');
  return new SmtpReply(code, enhanced, text.slice(0, LONGEST_TEXT));
}
