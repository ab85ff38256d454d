import type { ReplyPhase, Rule } from './rules.ts';

/** Where a code alone may concern the recipient: to the greeting, EHLO, MAIL, DATA and the message a server replies about others. */
const ABOUT_RECIPIENT: readonly ReplyPhase[] = ['rcpt', 'dsn'];
/** A server may know only after DATA whether the mailbox has space for the message. */
const ABOUT_MAILBOX: readonly ReplyPhase[] = ['rcpt', 'data', 'dot', 'dsn'];

/**
 * The meaning of the codes alone (RFC 3463, RFC 5248, RFC 5321 §4.2.3), for text without known wording. The enhanced codes
 * precede the basic ones.
 */
export const STATUS_RULES: readonly Rule[] = [
  {
    enhanced: ['x.1.1'],
    phases: ABOUT_RECIPIENT,
    meaning: 'no such recipient',
    example: { reply: '550 5.1.1 Recipient address rejected' },
  },
  {
    enhanced: ['x.1.2'],
    phases: ABOUT_RECIPIENT,
    meaning: 'no such domain',
    example: { reply: '550 5.1.2 rejected' },
  },
  {
    enhanced: ['x.1.3'],
    phases: ABOUT_RECIPIENT,
    meaning: 'no such recipient',
    example: { reply: '501 5.1.3 rejected' },
  },
  {
    enhanced: ['x.1.6'],
    phases: ABOUT_RECIPIENT,
    meaning: 'recipient moved',
    example: { reply: '551 5.1.6 rejected' },
  },
  {
    enhanced: ['x.1.10'],
    phases: ABOUT_RECIPIENT,
    meaning: 'domain accepts no mail',
    example: { reply: '550 5.1.10 rejected' },
  },
  {
    enhanced: ['x.1.0'],
    codes: [550, 551, 553],
    phases: ABOUT_RECIPIENT,
    meaning: 'possibly no such recipient',
    example: { reply: '550 5.1.0 Address rejected.' },
  },
  {
    enhanced: ['x.2.1'],
    phases: ['rcpt'],
    meaning: 'mailbox disabled',
    example: { reply: '550 5.2.1 rejected' },
  },
  {
    enhanced: ['x.2.1'],
    phases: ABOUT_RECIPIENT,
    meaning: 'mailbox inactive',
    example: { reply: '550 5.2.1 rejected', phase: 'dsn' },
  },
  {
    enhanced: ['x.2.2'],
    phases: ABOUT_MAILBOX,
    meaning: 'mailbox full',
    example: { reply: '550 5.2.2 rejected' },
  },
  {
    enhanced: ['x.2.3', 'x.3.4'],
    meaning: 'message too large',
    example: { reply: '552 5.3.4 rejected' },
  },
  {
    enhanced: ['x.4.6', 'x.4.14'],
    meaning: 'routing loop',
    example: { reply: '554 5.4.6 rejected' },
  },
  {
    enhanced: ['x.4.7'],
    meaning: 'expired',
    example: { reply: '554 5.4.7 No more tries' },
  },
  {
    enhanced: ['x.4.310'],
    phases: ABOUT_RECIPIENT,
    meaning: 'no such domain',
    example: { reply: '550 5.4.310 rejected' },
  },
  {
    enhanced: ['x.4.x'],
    meaning: 'network error',
    example: { reply: '451 4.4.2 Bad connection' },
  },
  {
    enhanced: ['x.3.x'],
    meaning: 'server error',
    example: { reply: '451 4.3.0 rejected' },
  },
  { enhanced: ['x.5.x'], meaning: 'protocol error', example: { reply: '501 5.5.4 Bad' } },
  {
    enhanced: ['x.6.x'],
    meaning: 'content rejected',
    example: { reply: '554 5.6.1 Media not supported' },
  },
  {
    enhanced: ['x.7.10', 'x.7.4', 'x.7.5'],
    meaning: 'TLS failed',
    example: { reply: '523 5.7.10 Needed' },
  },
  {
    enhanced: ['x.7.25'],
    meaning: 'IP address blocklisted',
    example: { reply: '550 5.7.25 rejected' },
  },
  {
    enhanced: ['x.7.17', 'x.7.18', 'x.7.13'],
    phases: ABOUT_RECIPIENT,
    meaning: 'mailbox inactive',
    example: { reply: '525 5.7.13 rejected' },
  },
  {
    enhanced: ['x.7.28'],
    meaning: 'sender rate limit',
    example: { reply: '421 4.7.28 rejected' },
  },
  {
    enhanced: ['x.7.x'],
    meaning: 'message rejected by policy',
    example: { reply: '550 5.7.1 rejected' },
  },
  {
    codes: [552],
    phases: ABOUT_RECIPIENT,
    meaning: 'mailbox full',
    example: { reply: '552 rejected' },
  },
  // RFC 1870 §6.1: elsewhere the code is about the size of the message.
  { codes: [552], meaning: 'message too large', example: { reply: '552 rejected', phase: 'mail' } },
  {
    codes: [551],
    phases: ABOUT_RECIPIENT,
    meaning: 'recipient moved',
    example: { reply: '551 rejected' },
  },
  {
    // RFC 7504 §2: in reply to RCPT. 521 is about the host, and as often a refusal of our address.
    codes: [556],
    phases: ABOUT_RECIPIENT,
    meaning: 'no such domain',
    example: { reply: '556 rejected' },
  },
  {
    codes: [521],
    phases: ['dsn'],
    meaning: 'server error',
    example: { reply: '521 mx.example.com', phase: 'dsn' },
  },
  {
    codes: [500, 501, 502, 503, 504, 555],
    meaning: 'protocol error',
    example: { reply: '502 rejected' },
  },
];
