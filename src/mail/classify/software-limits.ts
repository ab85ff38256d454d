import { phrasesAbout } from './languages.ts';
import type { Rule } from './rules.ts';

/** Codes of temporary failures. */
const TEMPORARY = [421, 432, 450, 451, 452, 454];

/** What mail filters and mail software reply when they defer or limit mail; they precede general wording, as provider.ts does. */
export const SOFTWARE_LIMIT_RULES: readonly Rule[] = [
  // Mimecast: https://mimecastsupport.zendesk.com/hc/en-us/articles/34000709564691
  {
    phrases: ['internal resource temporarily unavailable', 'internal resources are temporarily unavailable'],
    meaning: 'greylisted',
    example: {
      code: 451,
      text: 'Internal resource temporarily unavailable - https://community.mimecast.com/docs/DOC-1369#451',
    },
  },
  {
    phrases: [
      'unable to process connection at this time',
      'account inbounds disabled',
      'account outbounds disabled',
    ],
    meaning: 'server error',
    example: { code: 421, text: 'Unable to process connection at this time', phase: 'greeting' },
  },
  {
    phrases: ['content examination policy'],
    meaning: 'content rejected',
    example: { code: 550, text: 'Message bounced due to Content Examination policy', phase: 'dot' },
  },
  {
    phrases: ['sender address blocked'],
    codes: [421],
    meaning: 'sender rejected',
    example: { code: 421, text: 'Sender address blocked', phase: 'mail' },
  },
  // Symantec, Zoho, Rackspace
  {
    phrases: ['too many messages from a new or untrusted ip'],
    codes: [421, 451, 550, 554],
    meaning: 'IP address rate limit',
    example: { code: 421, text: 'Too many messages from a new or untrusted IP: 192.0.2.1', phase: 'mail' },
  },
  {
    phrases: ['recipient quota exceeded', 'unusual sending activity'],
    codes: [421, 451, 550, 554],
    meaning: 'sender rate limit',
    example: { code: 421, enhanced: '4.7.1', text: 'Recipient quota exceeded', phase: 'mail' },
  },
  // Postfix, Exim, Sendmail, Cisco, Proofpoint
  {
    phrases: [
      'too many concurrent',
      'too many connections',
      'too many simultaneous',
      'too many sessions',
      'concurrent connections',
    ],
    codes: TEMPORARY,
    meaning: 'rate limit',
    example: {
      code: 421,
      text: 'Too many concurrent SMTP connections from this IP address; please try again later.',
      phase: 'greeting',
    },
  },
  {
    phrases: phrasesAbout('tooMany'),
    meaning: 'rate limit',
    example: { code: 451, text: 'Zu viele Nachrichten in kurzer Zeit', phase: 'mail' },
  },
];
