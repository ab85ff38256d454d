import { iso } from '../core/clock.ts';
import type { RefusalCode, RefusalDetail, SubscriptionStatus } from '../core/refusal.ts';
import type { UseCase } from '../store/domains/domains.ts';
import type { SuppressionReason, SuppressionRow } from '../store/suppressions.ts';
import type { Tables } from '../store/tables.ts';

/** Whether an address may be written to at all: bounces, complaints, opt-outs, the caller's own list. */
export interface Suppressed {
  code: 'RECIPIENT_SUPPRESSED' | 'RECIPIENT_UNSUBSCRIBED';
  status: SubscriptionStatus;
  row: SuppressionRow;
}

const STATUS: Record<SuppressionReason, SubscriptionStatus> = {
  hard_bounce: 'bounced',
  soft_bounces: 'bounced',
  complaint: 'complained',
  unsubscribe: 'unsubscribed',
  manual: 'suppressed',
};

const WORDS: Record<SuppressionReason, string> = {
  hard_bounce: 'an earlier mail bounced for good',
  soft_bounces: 'mail to it bounced again and again',
  complaint: 'its owner complained',
  unsubscribe: 'its owner unsubscribed',
  manual: 'it is on the suppression list',
};

/** What stands in the way of one person; the first person's code is the whole request's. */
export type PersonDetail = RefusalDetail & { code: RefusalCode };

/**
 * The suppression that stands in the way of this stream, or null. Essential mail (sign-in codes, legal notices)
 * ignores the recipient's own opt-out, and no other reason.
 */
export function suppressedFor(
  tables: Tables,
  accountId: string,
  recipientHash: string,
  { useCase, essential }: { useCase: UseCase; essential: boolean },
): Suppressed | null {
  const rows = tables.suppressions
    .of(accountId, recipientHash)
    .filter(({ stream }) => stream === 'all' || stream === useCase)
    .filter(({ reason }) => !essential || reason !== 'unsubscribe');
  const row = rows.find(({ reason }) => reason !== 'unsubscribe') ?? rows[0];
  if (row === undefined) return null;
  return {
    code: row.reason === 'unsubscribe' ? 'RECIPIENT_UNSUBSCRIBED' : 'RECIPIENT_SUPPRESSED',
    status: STATUS[row.reason],
    row,
  };
}

export function suppressionDetail(field: string, recipient: string, found: Suppressed): PersonDetail {
  const { reason, created_at } = found.row;
  const since = iso(created_at);
  return {
    field,
    message: `${recipient} is not written to: ${WORDS[reason]} (since ${since})`,
    code: found.code,
    recipient,
    reason,
    since,
  };
}
