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
    example: { code: 550, enhanced: '5.1.1', text: 'Recipient address rejected' },
  },
  {
    enhanced: ['x.1.2'],
    phases: ABOUT_RECIPIENT,
    meaning: 'no such domain',
    example: { code: 550, enhanced: '5.1.2', text: 'rejected' },
  },
  {
    enhanced: ['x.1.3'],
    phases: ABOUT_RECIPIENT,
    meaning: 'no such recipient',
    example: { code: 501, enhanced: '5.1.3', text: 'rejected' },
  },
  {
    enhanced: ['x.1.6'],
    phases: ABOUT_RECIPIENT,
    meaning: 'recipient moved',
    example: { code: 551, enhanced: '5.1.6', text: 'rejected' },
  },
  {
    enhanced: ['x.1.10'],
    phases: ABOUT_RECIPIENT,
    meaning: 'domain accepts no mail',
    example: { code: 550, enhanced: '5.1.10', text: 'rejected' },
  },
  {
    enhanced: ['x.1.0'],
    codes: [550, 551, 553],
    phases: ABOUT_RECIPIENT,
    meaning: 'possibly no such recipient',
    example: { code: 550, enhanced: '5.1.0', text: 'Address rejected.' },
  },
  {
    enhanced: ['x.2.1'],
    phases: ['rcpt'],
    meaning: 'mailbox disabled',
    example: { code: 550, enhanced: '5.2.1', text: 'rejected' },
  },
  {
    enhanced: ['x.2.1'],
    phases: ABOUT_RECIPIENT,
    meaning: 'mailbox inactive',
    example: { code: 550, enhanced: '5.2.1', text: 'rejected', phase: 'dsn' },
  },
  {
    enhanced: ['x.2.2'],
    phases: ABOUT_MAILBOX,
    meaning: 'mailbox full',
    example: { code: 550, enhanced: '5.2.2', text: 'rejected' },
  },
  {
    enhanced: ['x.2.3', 'x.3.4'],
    meaning: 'message too large',
    example: { code: 552, enhanced: '5.3.4', text: 'rejected' },
  },
  {
    enhanced: ['x.4.6', 'x.4.14'],
    meaning: 'routing loop',
    example: { code: 554, enhanced: '5.4.6', text: 'rejected' },
  },
  {
    enhanced: ['x.4.7'],
    meaning: 'expired',
    example: { code: 554, enhanced: '5.4.7', text: 'No more tries' },
  },
  {
    enhanced: ['x.4.310'],
    phases: ABOUT_RECIPIENT,
    meaning: 'no such domain',
    example: { code: 550, enhanced: '5.4.310', text: 'rejected' },
  },
  {
    enhanced: ['x.4.x'],
    meaning: 'network error',
    example: { code: 451, enhanced: '4.4.2', text: 'Bad connection' },
  },
  {
    enhanced: ['x.3.x'],
    meaning: 'server error',
    example: { code: 451, enhanced: '4.3.0', text: 'rejected' },
  },
  { enhanced: ['x.5.x'], meaning: 'protocol error', example: { code: 501, enhanced: '5.5.4', text: 'Bad' } },
  {
    enhanced: ['x.6.x'],
    meaning: 'content rejected',
    example: { code: 554, enhanced: '5.6.1', text: 'Media not supported' },
  },
  {
    enhanced: ['x.7.10', 'x.7.4', 'x.7.5'],
    meaning: 'TLS failed',
    example: { code: 523, enhanced: '5.7.10', text: 'Needed' },
  },
  {
    enhanced: ['x.7.25'],
    meaning: 'IP address blocklisted',
    example: { code: 550, enhanced: '5.7.25', text: 'rejected' },
  },
  {
    enhanced: ['x.7.17', 'x.7.18', 'x.7.13'],
    phases: ABOUT_RECIPIENT,
    meaning: 'mailbox inactive',
    example: { code: 525, enhanced: '5.7.13', text: 'rejected' },
  },
  {
    enhanced: ['x.7.28'],
    meaning: 'sender rate limit',
    example: { code: 421, enhanced: '4.7.28', text: 'rejected' },
  },
  {
    enhanced: ['x.7.x'],
    meaning: 'message rejected by policy',
    example: { code: 550, enhanced: '5.7.1', text: 'rejected' },
  },
  {
    codes: [552],
    phases: ABOUT_RECIPIENT,
    meaning: 'mailbox full',
    example: { code: 552, text: 'rejected' },
  },
  // RFC 1870 §6.1: elsewhere the code is about the size of the message.
  { codes: [552], meaning: 'message too large', example: { code: 552, text: 'rejected', phase: 'mail' } },
  {
    codes: [551],
    phases: ABOUT_RECIPIENT,
    meaning: 'recipient moved',
    example: { code: 551, text: 'rejected' },
  },
  {
    // RFC 7504 §2: in reply to RCPT. 521 is about the host, and as often a refusal of our address.
    codes: [556],
    phases: ABOUT_RECIPIENT,
    meaning: 'no such domain',
    example: { code: 556, text: 'rejected' },
  },
  {
    codes: [521],
    phases: ['dsn'],
    meaning: 'server error',
    example: { code: 521, text: 'mx.example.com', phase: 'dsn' },
  },
  {
    codes: [500, 501, 502, 503, 504, 555],
    meaning: 'protocol error',
    example: { code: 502, text: 'rejected' },
  },
];
