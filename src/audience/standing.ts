import type { Clock } from '../core/clock.ts';
import type { OnSuppressionChange } from '../events/record.ts';
import type { GlobalStatus } from '../store/contacts/contacts.ts';
import type { SuppressionReason, SuppressionRow } from '../store/suppressions.ts';
import type { Tables } from '../store/tables.ts';

/**
 * The suppression that ends an account's marketing mail to a person. It depends on suppressions only, so it applies to
 * people who are not contacts, and to erased ones. Suppressions of transactional mail only have no effect.
 */
export interface MarketingStanding {
  status: Exclude<GlobalStatus, 'active'>;
  /** The suppression that determines the status. */
  row: SuppressionRow;
}

const STATUS: Record<SuppressionReason, MarketingStanding['status']> = {
  hard_bounce: 'bounced',
  soft_bounces: 'bounced',
  complaint: 'complained',
  unsubscribe: 'unsubscribed',
  manual: 'suppressed',
};

/** Returns null if the recipient is not suppressed for marketing. */
export function marketingStanding(
  tables: Tables,
  accountId: string,
  recipientHash: string,
): MarketingStanding | null {
  return decidingSuppression(
    tables.suppressions.of(accountId, recipientHash).filter(({ stream }) => stream !== 'tx'),
  );
}

/** The first suppression with another reason than an opt-out decides, otherwise the first one. */
export function decidingSuppression(rows: readonly SuppressionRow[]): MarketingStanding | null {
  const row = rows.find(({ reason }) => reason !== 'unsubscribe') ?? rows[0];
  return row === undefined ? null : { status: STATUS[row.reason], row };
}

/** `identifier`: the contact's first one. */
export function statusOf(tables: Tables, accountId: string, identifier: string | undefined): GlobalStatus {
  return identifier === undefined
    ? 'active'
    : (marketingStanding(tables, accountId, identifier)?.status ?? 'active');
}

/** Updates a contact's status in the unit of work that changes the suppressions of its address. */
export function createStatusFollower({ now }: Clock): OnSuppressionChange {
  return (tables, accountId, recipientHash) => {
    const status = statusOf(tables, accountId, recipientHash);
    tables.contacts.setStatus(accountId, recipientHash, status, now());
  };
}
