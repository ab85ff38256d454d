import type { Clock } from '../core/clock.ts';
import type { Ids } from '../core/ids.ts';
import { DOMAIN_EVENTS } from '../events/lifecycle.ts';
import { emailIdentifier } from '../mail/identifier.ts';
import type { EventRow } from '../store/messages/events.ts';
import type { WebhookEvent } from './form.ts';

/** An event that never happened, in the shape of those that do: what a test call tells. */
const VISITOR = { ip: '192.0.2.1', userAgent: 'Example/1.0', isBot: false, isProxy: false, isFirst: true };
const FAILURE = {
  classification: 'invalid-recipient',
  smtpCode: 550,
  enhancedCode: '5.1.1',
  diagnostic: '550 5.1.1 No such user',
  source: 'smtp',
};

const FIELDS: Record<WebhookEvent, object> = {
  email_sent: {},
  email_delivered: { smtpCode: 250, enhancedCode: '2.0.0' },
  email_delayed: { attempt: 1, smtpCode: 451, enhancedCode: '4.7.1', classification: 'greylisted' },
  email_bounced: { bounceType: 'hard', ...FAILURE, suppressed: true },
  email_suppressed: { reasonCode: 'RECIPIENT_SUPPRESSED' },
  email_rejected: {
    ...FAILURE,
    classification: 'content-rejected',
    enhancedCode: '5.6.0',
    diagnostic: '550 5.6.0 Message refused',
  },
  email_failed: { reason: 'expired' },
  email_complained: { source: 'arf', feedbackType: 'abuse', verified: true, suppressed: true },
  email_opened: VISITOR,
  email_clicked: { url: 'https://example.com/', ...VISITOR },
  email_unsubscribed: { method: 'one_click' },
  domain_verified: { domain: 'example.com' },
  domain_failing: { domain: 'example.com' },
  domain_failed: { domain: 'example.com' },
};

const NO_MESSAGE = {
  message_id: null,
  job_id: null,
  campaign_id: null,
  subscription_group_id: null,
  use_case: null,
  from_address: null,
  recipient: null,
  recipient_hash: null,
  subject: null,
  // It counts nowhere, as simulated mail.
  simulated: 1,
} as const;

const MESSAGE = {
  use_case: 'tx',
  from_address: 'sender@example.com',
  recipient: 'recipient@example.com',
  recipient_hash: emailIdentifier('recipient@example.com'),
  subject: 'A test of this webhook',
} as const;

export function sampleEvent(
  kind: WebhookEvent,
  accountId: string,
  { clock, ids }: { clock: Clock; ids: Ids },
): EventRow {
  const ofDomain = DOMAIN_EVENTS.some((known) => known === kind);
  return {
    seq: 0,
    event_id: ids.make('evt'),
    account_id: accountId,
    kind,
    at: clock.now(),
    message_seq: null,
    domain_id: ids.make('domain'),
    data: JSON.stringify(FIELDS[kind]),
    ...NO_MESSAGE,
    ...(ofDomain ? {} : { ...MESSAGE, message_id: ids.make('msg') }),
  };
}
