import { HOUR } from '../core/clock.ts';
import type { CampaignCount } from '../store/campaigns/campaign-counts.ts';
import type { MessageRow } from '../store/messages/messages.ts';
import type { Tables } from '../store/tables.ts';
import type { MessageEventKind } from './lifecycle.ts';

/**
 * What an event adds to its campaign's counts, in the event's own transaction: the counts can be trusted as
 * far as the events, and reading them never walks over messages. Events are counted, so a message that is
 * delivered and bounces afterwards counts in both, and one that is deferred twice counts twice.
 */
const COUNTED: Record<MessageEventKind, CampaignCount> = {
  email_sent: 'sent',
  email_delivered: 'delivered',
  email_delayed: 'deferred',
  email_bounced: 'bounced',
  // The API's state for content that was refused is `bounced`, too.
  email_rejected: 'bounced',
  email_suppressed: 'failed',
  email_failed: 'failed',
  email_complained: 'complained',
  email_opened: 'opened',
  email_clicked: 'clicked',
  email_unsubscribed: 'unsubscribed',
};

const UNIQUE: Partial<Record<MessageEventKind, CampaignCount>> = {
  email_opened: 'uniqueOpened',
  email_clicked: 'uniqueClicked',
};

/**
 * Counts an event of a message. Opens and clicks of machines (`isBot`) are not counted; `isFirst` is to say
 * that no person has done this with the message before.
 */
export function countEvent(
  tables: Tables,
  message: MessageRow,
  kind: MessageEventKind,
  fields: Record<string, unknown>,
  at: number,
): void {
  const { campaign_id: campaignId } = message;
  // Simulated mail counts in no statistics.
  if (campaignId === null || message.simulated === 1 || fields['isBot'] === true) return;
  const count = isCancellation(kind, fields) ? 'cancelled' : COUNTED[kind];
  tables.campaignCounts.add(campaignId, hourOf(at), count, 1);
  const unique = UNIQUE[kind];
  if (unique !== undefined && fields['isFirst'] === true)
    tables.campaignCounts.add(campaignId, hourOf(at), unique, 1);
  if (kind === 'email_clicked' && typeof fields['url'] === 'string')
    tables.campaignCounts.addClick(campaignId, fields['url']);
}

/** Whether the event is that the message was cancelled (contract §6: `email_failed`, reason `cancelled`). */
export function isCancellation(kind: MessageEventKind, fields: Record<string, unknown>): boolean {
  return kind === 'email_failed' && fields['reason'] === 'cancelled';
}

/** Counts messages that enter the queue, in the transaction that stores them; simulated ones do not count. */
export function countQueued(tables: Tables, campaignId: string, messages: number, at: number): void {
  if (messages > 0) tables.campaignCounts.add(campaignId, hourOf(at), 'queued', messages);
}

function hourOf(at: number): number {
  return at - (at % HOUR);
}
