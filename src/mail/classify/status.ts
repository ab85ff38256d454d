import type { Rule } from './rules.ts';

/** What the codes alone say (RFC 3463, RFC 5248, RFC 5321 §4.2.3), when the words say nothing known. */
export const STATUS_RULES: readonly Rule[] = [
  {
    enhanced: ['x.1.1'],
    means: 'no such recipient',
    example: { code: 550, enhanced: '5.1.1', text: 'Recipient address rejected' },
  },
  {
    enhanced: ['x.1.2'],
    means: 'no such domain',
    example: { code: 550, enhanced: '5.1.2', text: 'rejected' },
  },
  {
    enhanced: ['x.1.3'],
    means: 'no such recipient',
    example: { code: 501, enhanced: '5.1.3', text: 'rejected' },
  },
  {
    enhanced: ['x.1.6'],
    means: 'recipient moved',
    example: { code: 551, enhanced: '5.1.6', text: 'rejected' },
  },
  {
    enhanced: ['x.1.10'],
    means: 'domain takes no mail',
    example: { code: 550, enhanced: '5.1.10', text: 'rejected' },
  },
  {
    enhanced: ['x.1.0'],
    code: [550, 551, 553],
    means: 'perhaps no such recipient',
    example: { code: 550, enhanced: '5.1.0', text: 'Address rejected.' },
  },
  {
    enhanced: ['x.2.1'],
    at: ['rcpt'],
    means: 'mailbox shut',
    example: { code: 550, enhanced: '5.2.1', text: 'rejected' },
  },
  {
    enhanced: ['x.2.1'],
    means: 'mailbox inactive',
    example: { code: 550, enhanced: '5.2.1', text: 'rejected', at: 'dsn' },
  },
  { enhanced: ['x.2.2'], means: 'mailbox full', example: { code: 550, enhanced: '5.2.2', text: 'rejected' } },
  {
    enhanced: ['x.2.3', 'x.3.4'],
    means: 'message too large',
    example: { code: 552, enhanced: '5.3.4', text: 'rejected' },
  },
  {
    enhanced: ['x.4.6', 'x.4.14'],
    means: 'loop',
    example: { code: 554, enhanced: '5.4.6', text: 'rejected' },
  },
  {
    enhanced: ['x.4.7'],
    means: 'given up',
    example: { code: 554, enhanced: '5.4.7', text: 'No more tries' },
  },
  {
    enhanced: ['x.4.310'],
    means: 'no such domain',
    example: { code: 550, enhanced: '5.4.310', text: 'rejected' },
  },
  {
    enhanced: ['x.4.x'],
    means: 'network trouble',
    example: { code: 451, enhanced: '4.4.2', text: 'Bad connection' },
  },
  {
    enhanced: ['x.3.x'],
    means: 'server trouble',
    example: { code: 451, enhanced: '4.3.0', text: 'Try later' },
  },
  { enhanced: ['x.5.x'], means: 'not understood', example: { code: 501, enhanced: '5.5.4', text: 'Bad' } },
  {
    enhanced: ['x.6.x'],
    means: 'content refused',
    example: { code: 554, enhanced: '5.6.1', text: 'Media not supported' },
  },
  {
    enhanced: ['x.7.10', 'x.7.4', 'x.7.5'],
    means: 'no encryption',
    example: { code: 523, enhanced: '5.7.10', text: 'Needed' },
  },
  {
    enhanced: ['x.7.25'],
    means: 'address listed',
    example: { code: 550, enhanced: '5.7.25', text: 'rejected' },
  },
  {
    enhanced: ['x.7.17', 'x.7.18', 'x.7.13'],
    means: 'mailbox inactive',
    example: { code: 525, enhanced: '5.7.13', text: 'rejected' },
  },
  {
    enhanced: ['x.7.28'],
    means: 'sender too fast',
    example: { code: 421, enhanced: '4.7.28', text: 'rejected' },
  },
  {
    enhanced: ['x.7.x'],
    means: 'policy refuses message',
    example: { code: 550, enhanced: '5.7.1', text: 'rejected' },
  },
  { code: [552], means: 'mailbox full', example: { code: 552, text: 'rejected' } },
  { code: [551], means: 'recipient moved', example: { code: 551, text: 'rejected' } },
  { code: [500, 501, 502, 503, 504, 555], means: 'not understood', example: { code: 502, text: 'rejected' } },
];
