import type { Clock } from '../core/clock.ts';
import type { OnSuppressionChange } from '../events/record.ts';
import type { GlobalStatus } from '../store/contacts/contacts.ts';
import type { SuppressionReason, SuppressionRow } from '../store/suppressions.ts';
import type { Tables } from '../store/tables.ts';

/**
 * Where a person stands with an account's marketing, by the suppressions alone: it holds for people who are no
 * contacts, and for those who were erased. What ends only transactional mail has no part in it.
 */
export interface Standing {
  status: Exclude<GlobalStatus, 'active'>;
  /** What decides it. */
  row: SuppressionRow;
}

const STATUS: Record<SuppressionReason, Standing['status']> = {
  hard_bounce: 'bounced',
  soft_bounces: 'bounced',
  complaint: 'complained',
  unsubscribe: 'unsubscribed',
  manual: 'suppressed',
};

/** Null: nothing stands in the way. An opt-out gives way to what is graver; of the rest the first counts. */
export function marketingStanding(tables: Tables, accountId: string, recipientHash: string): Standing | null {
  return decidingSuppression(
    tables.suppressions.of(accountId, recipientHash).filter(({ stream }) => stream !== 'tx'),
  );
}

/** Of several suppressions the first that is no opt-out decides, else the first. */
export function decidingSuppression(rows: readonly SuppressionRow[]): Standing | null {
  const row = rows.find(({ reason }) => reason !== 'unsubscribe') ?? rows[0];
  return row === undefined ? null : { status: STATUS[row.reason], row };
}

/** `identifier`: the contact's first one. */
export function statusOf(tables: Tables, accountId: string, identifier: string | undefined): GlobalStatus {
  return identifier === undefined
    ? 'active'
    : (marketingStanding(tables, accountId, identifier)?.status ?? 'active');
}

/** Lets a contact's status follow the suppressions of its address, in the unit of work that changes them. */
export function createStatusFollower({ now }: Clock): OnSuppressionChange {
  return (tables, accountId, recipientHash) => {
    const status = statusOf(tables, accountId, recipientHash);
    tables.contacts.setStatus(accountId, recipientHash, status, now());
  };
}
