import type { SubscriptionStatus } from '../core/refusal.ts';
import type { SuppressionReason } from '../store/suppressions.ts';
import type { Tables } from '../store/tables.ts';
import { leftAt } from './opt-out.ts';
import { marketingStanding } from './standing.ts';

/**
 * May we write to this person? For marketing, the contract's §5 with §13.9 and §13.10: nothing stands in the
 * way, the person is a contact with a consent on record, and an active member of the group where one is named.
 * Asked when a send is accepted, and once more when the message leaves the queue.
 */
export interface Ineligible {
  code: 'CONSENT_REQUIRED' | 'RECIPIENT_UNSUBSCRIBED' | 'RECIPIENT_SUPPRESSED';
  status: SubscriptionStatus;
  /** What stands in the way, in the words of the suppression list; `not_subscribed`: nothing was ever agreed. */
  reason: SuppressionReason | 'not_subscribed';
  /** Why, for a person to read. */
  message: string;
  /** Epoch ms; since when, where that is known. */
  since?: number;
}

/** `recipientHash` is `email_<md5>`. Null: we may. A group that is unknown or switched off has no members. */
export function mayReceiveMarketing(
  tables: Tables,
  accountId: string,
  recipientHash: string,
  groupId: string | null,
): Ineligible | null {
  const standing = marketingStanding(tables, accountId, recipientHash);
  if (standing !== null) {
    const { status, row } = standing;
    const code = status === 'unsubscribed' ? 'RECIPIENT_UNSUBSCRIBED' : 'RECIPIENT_SUPPRESSED';
    return { code, status, reason: row.reason, message: STANDS_IN_THE_WAY[status], since: row.created_at };
  }
  const contact = tables.contacts.byIdentifier(accountId, recipientHash);
  if (contact === null) return notSubscribed('the recipient is no contact');
  if (groupId !== null) {
    const group = tables.subscriptionGroups.get(accountId, groupId);
    if (group === null || group.is_active === 0) return notSubscribed('the group is switched off');
    const membership = tables.subscriptions.get(group.seq, contact.seq);
    if (membership === null) return notSubscribed('the recipient is not in the group');
    if (membership.is_active === 0) {
      return {
        code: 'RECIPIENT_UNSUBSCRIBED',
        status: 'unsubscribed',
        reason: 'unsubscribe',
        message: 'the recipient unsubscribed from the group',
        since: leftAt(tables, group, contact) ?? membership.updated_at,
      };
    }
  }
  return contact.consent_n === null ? notSubscribed('there is no consent on record') : null;
}

const STANDS_IN_THE_WAY = {
  unsubscribed: 'the recipient unsubscribed',
  bounced: 'mail to the recipient bounced',
  complained: 'the recipient complained',
  suppressed: 'the recipient is on the suppression list',
} as const;

function notSubscribed(message: string): Ineligible {
  return { code: 'CONSENT_REQUIRED', status: 'not_subscribed', reason: 'not_subscribed', message };
}
