import { iso } from '../core/clock.ts';
import type { SubscriptionStatus } from '../core/refusal.ts';
import type { ContactPermission } from '../store/contacts/subscriptions.ts';
import type { SuppressionReason } from '../store/suppressions.ts';
import type { Tables } from '../store/tables.ts';
import { leftAt } from './opt-out.ts';
import { marketingStanding } from './standing.ts';

/**
 * Why a person may not receive marketing mail. Eligible are contacts without a suppression, with recorded consent, and
 * with an active membership in the group if one is named, unless they paused marketing mail on the preference page. Checked when a send is accepted and again when the message
 * leaves the queue.
 */
export interface Ineligible {
  code: 'CONSENT_REQUIRED' | 'RECIPIENT_UNSUBSCRIBED' | 'RECIPIENT_SUPPRESSED';
  status: SubscriptionStatus;
  /** The reason of the suppression; `not_subscribed`: there is no consent or membership; `paused`: for a while. */
  reason: SuppressionReason | 'not_subscribed' | 'paused';
  /** For people. */
  message: string;
  /** Epoch ms; absent when unknown. */
  since?: number;
}

/**
 * Returns null if the person is eligible. `recipientHash`: `email_<md5>`. An unknown or inactive group has no eligible
 * members. `known`: the permission of the contact, if it was read in the same unit of work.
 */
export function marketingIneligibility(
  tables: Tables,
  accountId: string,
  recipientHash: string,
  groupId: string | null,
  known?: ContactPermission,
): Ineligible | null {
  const standing = marketingStanding(tables, accountId, recipientHash);
  if (standing !== null) {
    const { status, row } = standing;
    const code = status === 'unsubscribed' ? 'RECIPIENT_UNSUBSCRIBED' : 'RECIPIENT_SUPPRESSED';
    return { code, status, reason: row.reason, message: SUPPRESSED_MESSAGES[status], since: row.created_at };
  }
  const permission = known ?? tables.subscriptions.permission(accountId, recipientHash, groupId);
  if (permission === null) return notSubscribed('The recipient is not a contact');
  if (groupId !== null) {
    if (permission.group_is_active !== 1) return notSubscribed('The group is inactive or was deleted');
    if (permission.member_is_active === null) return notSubscribed('The recipient is not in the group');
    if (permission.member_is_active === 0) {
      const since = inactiveSince(tables, accountId, recipientHash, groupId);
      return {
        code: 'RECIPIENT_UNSUBSCRIBED',
        status: 'unsubscribed',
        reason: 'unsubscribe',
        message: 'The recipient unsubscribed from the group',
        ...(since === null ? {} : { since }),
      };
    }
  }
  if (permission.consent_n === null) return notSubscribed('There is no consent on record');
  if (permission.paused_until === null) return null;
  return {
    code: 'RECIPIENT_SUPPRESSED',
    status: 'paused',
    reason: 'paused',
    message: `The recipient paused marketing mail until ${iso(permission.paused_until)}`,
  };
}

const SUPPRESSED_MESSAGES = {
  unsubscribed: 'The recipient unsubscribed',
  bounced: 'Mail to the recipient bounced',
  complained: 'The recipient complained',
  suppressed: 'The recipient is on the suppression list',
} as const;

/** When an inactive member left the group; null: the membership was deleted in the meantime. */
function inactiveSince(
  tables: Tables,
  accountId: string,
  recipientHash: string,
  groupId: string,
): number | null {
  const contact = tables.contacts.byIdentifier(accountId, recipientHash);
  const group = tables.subscriptionGroups.get(accountId, groupId);
  if (contact === null || group === null) return null;
  return (
    leftAt(tables, group, contact) ?? tables.subscriptions.get(group.seq, contact.seq)?.updated_at ?? null
  );
}

function notSubscribed(message: string): Ineligible {
  return { code: 'CONSENT_REQUIRED', status: 'not_subscribed', reason: 'not_subscribed', message };
}
