import type { ProviderCount } from '../store/campaigns/campaign-counts.ts';
import { hourOf } from '../store/messages/hourly-counts.ts';
import type { MessageRow } from '../store/messages/messages.ts';
import type { Tables } from '../store/tables.ts';
import { isErased } from './erased.ts';
import { MESSAGE_EVENT_TYPES, type MessageEvent } from './event-types.ts';
import { providerOfRecipient } from './message-provider.ts';

/*
 * Counts of campaigns, updated in the transaction of each event, so that reading them reads no messages. Events are
 * counted, not messages: a message that is delivered and bounces afterwards counts as both, and each deferral counts.
 */

/**
 * Counts an event of a message, in its unit of work. Opens and clicks by programs (`isBot`) are counted by provider only,
 * and simulated mail is not counted.
 */
export function countCampaignEvent(
  tables: Tables,
  message: Pick<MessageRow, 'campaign_id' | 'simulated' | 'recipient'>,
  event: MessageEvent,
  at: number,
): void {
  const { campaign_id: campaignId } = message;
  if (campaignId === null || message.simulated === 1) return;
  const ofProvider = providerCountOf(event);
  if (ofProvider !== null)
    tables.campaignCounts.addOfProvider(campaignId, providerOfRecipient(message.recipient), ofProvider);
  const { count, uniqueCount } = MESSAGE_EVENT_TYPES[event.kind];
  const add = (name: typeof count) => tables.campaignCounts.add(campaignId, hourOf(at), name, 1);
  if (event.kind !== 'email_opened' && event.kind !== 'email_clicked')
    return add(isCancellation(event) ? 'cancelled' : count);
  if (event.fields.isBot) return;
  add(count);
  if (uniqueCount !== undefined && event.fields.isFirst) add(uniqueCount);
  // The link can contain the address.
  if (event.kind === 'email_clicked' && !isErased(message))
    tables.campaignCounts.addClick(campaignId, event.fields.url);
}

/** What an event counts as at the provider of the recipient; null: nothing. */
function providerCountOf(event: MessageEvent): ProviderCount | null {
  switch (event.kind) {
    case 'email_delivered':
      return 'delivered';
    case 'email_bounced':
    case 'email_rejected':
      return 'bounced';
    case 'email_complained':
      return 'complained';
    case 'email_unsubscribed':
      return 'unsubscribed';
    case 'email_opened':
      return !event.fields.isFirst ? null : event.fields.isBot ? 'machineOpened' : 'uniqueOpened';
    case 'email_clicked':
      return !event.fields.isFirst ? null : event.fields.isBot ? 'machineClicked' : 'uniqueClicked';
    default:
      return null;
  }
}

/** Whether the event cancels the message (contract §6: `email_failed`, reason `cancelled`). */
export function isCancellation(event: MessageEvent): boolean {
  return event.kind === 'email_failed' && event.fields.reason === 'cancelled';
}

/** Counts messages that enter the queue, in the transaction that stores them. Must not be called for simulated ones. */
export function countCampaignQueued(tables: Tables, campaignId: string, messages: number, at: number): void {
  if (messages > 0) tables.campaignCounts.add(campaignId, hourOf(at), 'queued', messages);
}
