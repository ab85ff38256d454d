import { DAY } from '../core/clock.ts';
import type { MessageRow } from '../store/messages/messages.ts';
import type { SuppressionReason } from '../store/suppressions.ts';
import type { Tables } from '../store/tables.ts';
import { isErased } from './erased.ts';
import type { BounceEffect, EventFields } from './event-types.ts';

/*
 * Suppressions that follow from a bounce or a complaint. Only bounces about the recipient suppress: a sender on a
 * blocklist must not lose its list.
 */

/** What a suppression needs of the message that was reported. */
export type ReportedMessage = Pick<MessageRow, 'account_id' | 'recipient_hash' | 'recipient' | 'use_case'> & {
  /** Null: the message was sent by another installation. */
  seq: number | null;
};

/** Soft bounces within the window after which the recipient is suppressed. */
const MAX_SOFT_BOUNCES = 5;
const SOFT_WINDOW_MS = 14 * DAY;
/** How long an unproven hard bounce counts: a second one within this time suppresses. */
const UNPROVEN_WINDOW_MS = 90 * DAY;

/** Returns whether the bounce suppressed the recipient. */
export function suppressAfterBounce(
  tables: Tables,
  message: ReportedMessage,
  bounce: EventFields['email_bounced'],
  effect: BounceEffect,
  at: number,
): boolean {
  const reason = effect.scope === 'recipient' ? reasonToSuppress(tables, message, bounce, effect, at) : null;
  if (reason === null) return false;
  addSuppression(tables, message, { stream: 'all', reason, at });
  return true;
}

/**
 * Records a bounce that suppresses only with others as a strike. Returns the reason to suppress the recipient now; null: there
 * is none yet.
 */
function reasonToSuppress(
  tables: Tables,
  { account_id: account, recipient_hash: hash }: ReportedMessage,
  { bounceType, verified }: EventFields['email_bounced'],
  { suppress }: BounceEffect,
  at: number,
): SuppressionReason | null {
  // Strikes before the newest message that is still `delivered` do not count. A 250 does not delete them: a server that
  // accepts every message and reports the failure later would delete the strike of each message with the next one.
  const since = (windowMs: number) =>
    Math.max(at - windowMs, tables.messages.lastDelivery(account, hash) ?? 0);
  if (bounceType === 'hard' && suppress === 'now') return 'hard_bounce';
  if (bounceType === 'hard' && suppress === 'second-time') {
    const earlier = tables.suppressions.strikesSince(account, hash, 'unproven', since(UNPROVEN_WINDOW_MS));
    tables.suppressions.addStrike(account, hash, 'unproven', at);
    return earlier.some((strike) => dayOf(strike) !== dayOf(at)) ? 'hard_bounce' : null;
  }
  if (bounceType === 'soft') {
    // Unverified bounces count once a day: five forged reports in a row are one strike.
    const sameDay = tables.suppressions.strikesSince(account, hash, 'soft', dayOf(at) * DAY);
    if (verified === false && sameDay.length > 0) return null;
    tables.suppressions.addStrike(account, hash, 'soft', at);
    const strikes = tables.suppressions.strikesSince(account, hash, 'soft', since(SOFT_WINDOW_MS));
    return strikes.length >= MAX_SOFT_BOUNCES ? 'soft_bounces' : null;
  }
  return null;
}

/**
 * A complaint ends marketing mail; a verified one about transactional mail ends all mail. Unverified complaints do not:
 * anyone with a copy of the mail can send a report without the receiver's signature, or open our report page.
 */
export function suppressAfterComplaint(
  tables: Tables,
  message: ReportedMessage,
  { source, verified }: EventFields['email_complained'],
  at: number,
): true {
  const endsAll = message.use_case === 'tx' && source === 'arf' && verified === true;
  addSuppression(tables, message, { stream: endsAll ? 'all' : 'mk', reason: 'complaint', at });
  return true;
}

function addSuppression(
  tables: Tables,
  message: ReportedMessage,
  { stream, reason, at }: { stream: 'all' | 'mk'; reason: SuppressionReason; at: number },
): void {
  tables.suppressions.add({
    account_id: message.account_id,
    recipient_hash: message.recipient_hash,
    stream,
    reason,
    email: isErased(message) ? null : message.recipient,
    message_seq: message.seq,
    created_at: at,
  });
}

/** UTC day, counted from the epoch. */
function dayOf(at: number): number {
  return Math.floor(at / DAY);
}
