import { ENGAGEMENT_BITS, type EngagementTimes } from '../store/contacts/engagement.ts';
import type { MessageRow } from '../store/messages/messages.ts';
import type { Tables } from '../store/tables.ts';
import type { MessageEvent } from './event-types.ts';

/*
 * What segments know about a contact and marketing mail, updated in the transaction of each event: when it last received,
 * opened and clicked, and what it did with each campaign. Visits of programs do not count, nor does mail of test keys, which
 * reaches nobody. Recipients who are no contacts have none; addresses of the simulator have some, so that segments can be
 * tested with them.
 */

type Engaged = Pick<
  MessageRow,
  'account_id' | 'recipient' | 'recipient_hash' | 'simulated' | 'use_case' | 'campaign_id'
>;

/** Records an event of a message. `at`: epoch ms. */
export function recordEngagement(tables: Tables, message: Engaged, event: MessageEvent, at: number): void {
  if (message.use_case !== 'mk' || isOfTestKey(message)) return;
  const engaged = engagementOf(event, at);
  if (engaged === null) return;
  const seq = tables.contacts.seqOf(message.account_id, message.recipient_hash);
  if (seq === null) return;
  tables.engagement.record({ contact_seq: seq, ...engaged.times });
  if (message.campaign_id !== null) tables.engagement.addOfCampaignId(message.campaign_id, seq, engaged.bits);
}

/** Whether the message is simulated although its recipient is not one of the simulator. */
function isOfTestKey({ simulated, recipient }: Engaged): boolean {
  return simulated === 1 && !/@simulator\.[^@]+$/i.test(recipient);
}

interface Engagement {
  /** Null: unchanged. */
  times: Omit<EngagementTimes, 'contact_seq'>;
  bits: number;
}

function engagementOf(event: MessageEvent, at: number): Engagement | null {
  const { received, opened, clicked } = ENGAGEMENT_BITS;
  const none = { received_at: null, opened_at: null, clicked_at: null };
  switch (event.kind) {
    case 'email_delivered':
      return { times: { ...none, received_at: at }, bits: received };
    case 'email_opened':
      return event.fields.isBot ? null : { times: { ...none, opened_at: at }, bits: received | opened };
    case 'email_clicked':
      // A person who clicks has opened the message, also where images are blocked.
      return event.fields.isBot
        ? null
        : { times: { ...none, opened_at: at, clicked_at: at }, bits: received | opened | clicked };
    default:
      return null;
  }
}
