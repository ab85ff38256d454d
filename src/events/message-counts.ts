import { DAY } from '../core/clock.ts';
import { providerOf } from '../mail/providers.ts';
import type { Stream } from '../store/domains/domains.ts';
import { type CountedOutcome, hourOf } from '../store/messages/hourly-counts.ts';
import type { MessageRow } from '../store/messages/messages.ts';
import type { Tables } from '../store/tables.ts';
import { isCancellation } from './campaign-counts.ts';
import type { MessageEvent } from './event-types.ts';
import { providerOfRecipient } from './message-provider.ts';

/*
 * Counts of messages by hour, for `postrider stats` and the metrics. As in campaigns, outcomes are counted, not messages:
 * a message that is delivered and bounces afterwards counts as both. Simulated mail is not counted.
 */

/** Counts an accepted message, in the unit of work that stores it. Must not be called for a simulated one. */
export function countAccepted(
  tables: Tables,
  mail: { accountId: string; domainId: string; stream: Stream; destination: string },
  at: number,
): void {
  const { destination, ...from } = mail;
  tables.hourlyCounts.add({
    hour: hourOf(at),
    provider: providerOf(destination),
    outcome: 'accepted',
    outcomeClass: '',
    ...from,
  });
}

/** Counts an event of a message, in its unit of work. */
export function countMessageEvent(
  tables: Tables,
  message: MessageRow,
  event: MessageEvent,
  at: number,
): void {
  if (message.simulated === 1) return;
  const counted = outcomeOf(event);
  if (counted === null) return;
  tables.hourlyCounts.add({
    hour: hourOf(at),
    accountId: message.account_id,
    domainId: message.domain_id,
    provider: providerOfRecipient(message.recipient),
    stream: message.use_case,
    ...counted,
  });
}

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
  for (const { report } of tables.messages.attemptsOf(message.seq)) {
    const attempt: { action?: string; egress?: string; provider?: string } = JSON.parse(report);
    if (attempt.action !== 'deliver' || attempt.egress === undefined || attempt.provider === undefined)
      continue;
    const key = { day: at - (at % DAY), entry: attempt.egress, provider: attempt.provider };
    tables.egressCounts.add(key, { complained: 1 });
    return;
  }
}
