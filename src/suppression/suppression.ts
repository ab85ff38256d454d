import { decidingSuppression } from '../audience/standing.ts';
import { iso } from '../core/clock.ts';
import type { RefusalDetail, SubscriptionStatus } from '../core/refusal.ts';
import {
  RECIPIENT_REFUSAL_REASONS,
  RECIPIENT_REFUSALS,
  type RecipientRefusal,
  type RecipientRefusalReason,
} from '../events/event-types.ts';
import type { Stream } from '../store/domains/domains.ts';
import type { SuppressionReason, SuppressionRow } from '../store/suppressions.ts';
import type { Tables } from '../store/tables.ts';

/** A suppression that forbids a send: a bounce, a complaint, an opt-out, or an entry of the account's own list. */
export interface Suppressed {
  code: 'RECIPIENT_SUPPRESSED' | 'RECIPIENT_UNSUBSCRIBED';
  status: SubscriptionStatus;
  row: SuppressionRow;
}

const REASON_TEXTS: Record<SuppressionReason, string> = {
  hard_bounce: 'an earlier message bounced permanently',
  soft_bounces: 'messages bounced repeatedly',
  complaint: 'the recipient complained',
  unsubscribe: 'the recipient unsubscribed',
  manual: 'the address is on the suppression list',
};

/** Why one recipient of a request is refused; the code of the first one is the code of the whole request. */
export type RecipientDetail = RefusalDetail & {
  code: RecipientRefusal;
  recipient: string;
  reason: RecipientRefusalReason;
};

/**
 * Returns the suppression that applies to this stream, or null. Essential mail (sign-in codes, legal notices) ignores
 * opt-outs of the recipient and no other reason.
 */
export function suppressedFor(
  tables: Tables,
  accountId: string,
  recipientHash: string,
  { useCase, essential }: { useCase: Stream; essential: boolean },
): Suppressed | null {
  const rows = tables.suppressions
    .of(accountId, recipientHash)
    .filter(({ stream }) => stream === 'all' || stream === useCase)
    .filter(({ reason }) => !essential || reason !== 'unsubscribe');
  const deciding = decidingSuppression(rows);
  if (deciding === null) return null;
  const code = deciding.row.reason === 'unsubscribe' ? 'RECIPIENT_UNSUBSCRIBED' : 'RECIPIENT_SUPPRESSED';
  return { code, ...deciding };
}

/** `field`: path of the recipient in the request. The message states the reason and since when in ISO 8601. */
export function suppressionDetail(field: string, recipient: string, found: Suppressed): RecipientDetail {
  const { reason, created_at } = found.row;
  const since = iso(created_at);
  return {
    field,
    message: `${recipient} is suppressed: ${REASON_TEXTS[reason]} (since ${since})`,
    code: found.code,
    recipient,
    reason,
    since,
  };
}

/** Whether a detail of a refusal is about a recipient, not about the request. */
export function isRecipientDetail(detail: RefusalDetail): detail is RecipientDetail {
  const { code, recipient, reason } = detail;
  return (
    recipient !== undefined &&
    RECIPIENT_REFUSALS.some((known) => known === code) &&
    RECIPIENT_REFUSAL_REASONS.some((known) => known === reason)
  );
}
