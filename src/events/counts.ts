import { DAY } from '../core/clock.ts';
import { domainOf } from '../mail/address.ts';
import { MEANINGS } from '../mail/classify/rules.ts';
import { KNOWN_PROVIDERS, providerOf } from '../mail/providers.ts';
import type { CampaignCount, ProviderCount } from '../store/campaigns/campaign-counts.ts';
import type { Stream } from '../store/domains/domains.ts';
import { type CountedOutcome, hourOf, OTHER_PROVIDER } from '../store/messages/hourly-counts.ts';
import { readLabels } from '../store/messages/labels.ts';
import type { MessageRow } from '../store/messages/messages.ts';
import type { ReputationCounter } from '../store/reputation/reputation-counts.ts';
import type { Tables } from '../store/tables.ts';
import { isErased } from './erased.ts';
import { MESSAGE_EVENT_TYPES, type MessageEvent } from './event-types.ts';

/*
 * Counts of messages by hour, for `postrider stats` and the metrics, by day, for the reputation, and of campaigns, updated in
 * the transaction of each event, so that reading them reads no messages. Events are counted, not messages: a message that is delivered and bounces
 * afterwards counts as both, and each deferral counts. Simulated mail is not counted.
 */

/** Counts an accepted message, in the unit of work that stores it. Must not be called for a simulated one. */
export function countAccepted(
  tables: Tables,
  mail: { accountId: string; domainId: string; stream: Stream; destination: string; labels: string | null },
  at: number,
): void {
  const { destination, labels, ...from } = mail;
  countTags(tables, mail.accountId, labels, 'accepted', at);
  const provider = providerOf(destination);
  tables.hourlyCounts.add({ hour: hourOf(at), provider, outcome: 'accepted', outcomeClass: '', ...from });
  countReputation(tables, { ...from, provider, source: '' }, 'volume', at);
}

/**
 * Counts an event of a message, in its unit of work. `source`: the source address of the attempt that caused it, '' for
 * one without a name; undefined: that of the last attempt.
 */
export function countMessageEvent(
  tables: Tables,
  message: MessageRow,
  event: MessageEvent,
  at: number,
  source?: string,
): void {
  if (message.simulated === 1) return;
  const counted = outcomeOf(event);
  if (counted === null) return;
  const of = {
    accountId: message.account_id,
    domainId: message.domain_id,
    provider: providerOfRecipient(message.recipient),
  };
  countTags(tables, message.account_id, message.labels, counted.outcome, at);
  tables.hourlyCounts.add({ hour: hourOf(at), stream: message.use_case, ...of, ...counted });
  const counter = reputationCounterOf(event, counted.outcome);
  if (counter !== null)
    countReputation(
      tables,
      { ...of, source: source ?? sendingAttempt(tables, message)?.egress ?? '' },
      counter,
      at,
    );
}

/** Counts an outcome for each tag of a message. */
function countTags(
  tables: Tables,
  accountId: string,
  labels: string | null,
  outcome: CountedOutcome,
  at: number,
): void {
  if (labels === null) return;
  for (const tag of readLabels(labels).tags ?? [])
    tables.tagCounts.add({ hour: hourOf(at), accountId, tag, outcome });
}

/** Counts for the reputation. Providers that are not known are counted together: recipient domains are chosen by callers. */
function countReputation(
  tables: Tables,
  of: { accountId: string; domainId: string; provider: string; source: string },
  counter: ReputationCounter,
  at: number,
): void {
  const { accountId, domainId, source } = of;
  const provider = KNOWN_PROVIDERS.has(of.provider) ? of.provider : OTHER_PROVIDER;
  tables.reputationCounts.add({ day: at - (at % DAY), accountId, domainId, source, provider }, counter);
}

/** What an event with an outcome counts as for the reputation; null: nothing. */
function reputationCounterOf(event: MessageEvent, outcome: CountedOutcome): ReputationCounter | null {
  if (event.kind === 'email_bounced' || event.kind === 'email_rejected')
    return BOUNCE_COUNTERS[event.fields.bounceType];
  if (event.kind === 'email_delayed')
    return BLOCK_CLASSES.has(event.fields.classification) ? 'blocked' : 'deferred';
  switch (outcome) {
    case 'delivered':
    case 'complained':
    case 'unsubscribed':
    case 'opened':
    case 'clicked':
      return outcome;
    default:
      return null;
  }
}

const BOUNCE_COUNTERS = { hard: 'hardBounced', soft: 'softBounced', block: 'blocked' } as const;

/** Classes of replies that reject the sender or the content, whether permanently or not. */
export const BLOCK_CLASSES: ReadonlySet<string> = new Set(
  Object.values(MEANINGS).flatMap(({ bounceType, bounceClass }) =>
    bounceType === 'block' ? [bounceClass] : [],
  ),
);

/** What an event counts as; null: nothing. */
function outcomeOf(event: MessageEvent): { outcome: CountedOutcome; outcomeClass: string } | null {
  const counted = (outcome: CountedOutcome, outcomeClass = '') => ({ outcome, outcomeClass });
  switch (event.kind) {
    case 'email_sent':
      return null;
    case 'email_delivered':
      return counted('delivered');
    case 'email_delayed':
      return counted('deferred', event.fields.classification);
    case 'email_bounced':
    case 'email_rejected':
      return counted('bounced', event.fields.classification);
    case 'email_failed':
      return isCancellation(event) ? counted('cancelled') : counted('failed', event.fields.reason);
    case 'email_suppressed':
      return counted('failed', 'suppressed');
    case 'email_complained':
      return counted('complained');
    case 'email_unsubscribed':
      return counted('unsubscribed');
    default: {
      const { isBot, isFirst } = event.fields;
      if (isBot || !isFirst) return null;
      return counted(event.kind === 'email_opened' ? 'opened' : 'clicked');
    }
  }
}

/**
 * Counts a complaint about a delivered message for the source address that sent it, on the day of the complaint. Many
 * complaints set the warm-up of the address back, for all accounts: call it for verified ones only, as an account can
 * report its mail to itself.
 */
export function countEgressComplaint(tables: Tables, message: MessageRow, at: number): void {
  if (message.simulated === 1) return;
  const { action, egress: entry, provider } = sendingAttempt(tables, message) ?? {};
  if (action !== 'deliver' || entry === undefined || provider === undefined) return;
  tables.egressCounts.add({ day: at - (at % DAY), entry, provider }, { complained: 1 });
}

interface StoredAttempt {
  action?: string;
  /** Absent: the source address has no name. */
  egress?: string;
  provider?: string;
}

/** The last attempt to send a message, which delivered it if any did; null: there was none, or it was deleted. */
function sendingAttempt(tables: Tables, { seq }: Pick<MessageRow, 'seq'>): StoredAttempt | null {
  const last = tables.messages.attemptsOf(seq).at(-1);
  if (last === undefined) return null;
  const attempt: StoredAttempt = JSON.parse(last.report);
  return attempt;
}

/**
 * Counts an event of a message, in its unit of work. Opens and clicks by programs (`isBot`) are counted by provider only.
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
  const add = (name: CampaignCount) => tables.campaignCounts.add(campaignId, hourOf(at), name, 1);
  if (event.kind === 'email_bounced' && event.fields.bounceType === 'hard') add('hardBounced');
  if (isBlock(event)) add('blocked');
  if (event.kind !== 'email_opened' && event.kind !== 'email_clicked')
    return add(isCancellation(event) ? 'cancelled' : count);
  if (event.fields.isBot) return;
  add(count);
  if (uniqueCount !== undefined && event.fields.isFirst) add(uniqueCount);
  // The link can contain the address.
  if (event.kind === 'email_clicked' && !isErased(message))
    tables.campaignCounts.addClick(campaignId, event.fields.url);
}

/**
 * Whether a receiver refused the message because of its sender's reputation or its content: at the first attempt, or
 * finally. Further attempts that are deferred count no message again.
 */
function isBlock({ kind, fields }: MessageEvent): boolean {
  return (
    ((kind === 'email_delayed' && fields.attempt === 1) ||
      kind === 'email_bounced' ||
      kind === 'email_rejected') &&
    BLOCK_CLASSES.has(fields.classification) &&
    !('source' in fields && fields.source === 'local')
  );
}

/**
 * Counts a complaint about a message that is not known, of which the domain and the campaign may be. `receiver`: the domain of the
 * organization that reports it.
 */
export function countUnknownComplaint(
  tables: Tables,
  of: {
    accountId: string;
    domainId: string | null;
    campaignId: string | null;
    stream: Stream;
    receiver: string;
  },
  at: number,
): void {
  const { accountId, domainId, campaignId, stream } = of;
  const provider = providerOf(of.receiver);
  if (campaignId !== null) {
    tables.campaignCounts.add(campaignId, hourOf(at), 'complained', 1);
    tables.campaignCounts.addOfProvider(campaignId, provider, 'complained');
  }
  if (domainId === null) return;
  const from = { accountId, domainId, provider };
  tables.hourlyCounts.add({ hour: hourOf(at), outcome: 'complained', outcomeClass: '', stream, ...from });
  countReputation(tables, { ...from, source: '' }, 'complained', at);
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

/** The mailbox provider of a message's recipient. The address of an erased person is empty. */
function providerOfRecipient(recipient: string): string {
  const domain = domainOf(recipient);
  return domain === '' ? OTHER_PROVIDER : providerOf(domain);
}
