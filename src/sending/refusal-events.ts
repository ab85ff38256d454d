import type { AccountLimits } from '../accounts/limits.ts';
import { HOUR } from '../core/clock.ts';
import { createLru } from '../core/lru.ts';
import { isRefusal, type Refusal } from '../core/refusal.ts';
import type { Recorder } from '../events/record.ts';
import { emailIdentifier } from '../mail/identifier.ts';
import type { Context } from '../store/context.ts';
import { isRecipientDetail, type RecipientDetail } from '../suppression/suppression.ts';
import { checkDomain, type Sender } from './checks.ts';
import type { ParsedSend } from './request.ts';

/** Events of one recipient, code and reason without an interval; further ones have at least RECORD_INTERVAL_MS between them. */
const MAX_REPEATED_EVENTS = 3;
const RECORD_INTERVAL_MS = HOUR;
/** Rows of refused sends of an account in an hour: events, and their deliveries to webhooks. */
const MAX_ROWS_PER_HOUR = 20_000;
/** Rows of a unit of work, unless one event has more deliveries. */
const UNIT_ROWS = 200;
/** Recipients and accounts in memory. One that was evicted counts from 0 again. */
const MAX_RECIPIENTS = 50_000;
const MAX_ACCOUNTS = 10_000;

interface Repeats {
  events: number;
  lastAt: number;
}

interface AccountHour {
  since: number;
  events: number;
  rows: number;
}

/**
 * Records an event for each recipient that causes the refusal of a send. A refused send costs the caller nothing, so
 * its events are bounded: repeated ones of a recipient, and the rows of an account in an hour. The bounds are in memory
 * and begin again after a restart; the response to the send does not depend on them. Begins with no event counted;
 * keeps up to 50,000 recipients and 10,000 accounts in memory. `record` resolves when the events are durable, in units
 * of about 200 rows.
 */
export function createRefusalEvents(
  { clock, tables, writer }: Pick<Context, 'clock' | 'tables' | 'writer'>,
  { recorder, limits }: { recorder: Recorder; limits: Pick<AccountLimits, 'of'> },
) {
  const recipients = createLru<Repeats>(MAX_RECIPIENTS);
  const accounts = createLru<AccountHour>(MAX_ACCOUNTS);

  /** Counts the event of a recipient; false: it is not recorded. `rows`: the rows of one event. */
  function take(accountId: string, { recipient, code, reason }: RecipientDetail, rows: number): boolean {
    const now = clock.now();
    const key = `${accountId} ${emailIdentifier(recipient)} ${code} ${reason}`;
    const repeats = recipients.get(key) ?? { events: 0, lastAt: now };
    if (repeats.events >= MAX_REPEATED_EVENTS && !isPast(repeats.lastAt, now, RECORD_INTERVAL_MS))
      return false;
    const known = accounts.get(accountId);
    const hour =
      known === undefined || isPast(known.since, now, HOUR) ? { since: now, events: 0, rows: 0 } : known;
    if (hour.rows + rows > MAX_ROWS_PER_HOUR || hour.events >= maxEvents(accountId)) return false;
    recipients.set(key, { events: repeats.events + 1, lastAt: now });
    accounts.set(accountId, { since: hour.since, events: hour.events + 1, rows: hour.rows + rows });
    return true;
  }

  /** An account has at most as many of these events in an hour as it may send messages. */
  function maxEvents(accountId: string): number {
    const { messagesPerHour, messagesPerDay } = limits.of(accountId);
    return Math.min(messagesPerHour ?? MAX_ROWS_PER_HOUR, messagesPerDay ?? MAX_ROWS_PER_HOUR);
  }

  return {
    record: async (sender: Sender, send: ParsedSend, subject: string, refusal: Refusal): Promise<void> => {
      const { account_id: accountId } = sender.account;
      const refused = (refusal.extras.details ?? []).filter(isRecipientDetail);
      if (refused.length === 0) return;
      const rows = 1 + tables.webhooks.subscribed(accountId, 'email_suppressed').length;
      const recorded = refused.filter((detail) => take(accountId, detail, rows));
      const domain = checkDomain(tables, sender, send);
      const domainId = isRefusal(domain) ? null : domain.domain_id;
      const common = {
        ...(send.campaignId === null ? {} : { campaignId: send.campaignId }),
        ...(send.groupId === null ? {} : { subscriptionGroupId: send.groupId }),
        useCase: sender.useCase,
        from: send.from.address,
        subject,
      };
      const perUnit = Math.max(1, Math.floor(UNIT_ROWS / rows));
      for (let at = 0; at < recorded.length; at += perUnit) {
        const portion = recorded.slice(at, at + perUnit);
        await writer.run((all) => {
          for (const { recipient, code, reason } of portion) {
            const contactIdentifier = emailIdentifier(recipient);
            const fields = { reasonCode: code, reason, ...common, recipient, contactIdentifier };
            recorder.refusedSend(all, { accountId, domainId, fields });
          }
        }, accountId);
      }
    },
  };
}

export type RefusalEvents = ReturnType<typeof createRefusalEvents>;

/** Whether the interval has passed, or the clock was set back. */
function isPast(since: number, now: number, intervalMs: number): boolean {
  return now < since || now - since >= intervalMs;
}
