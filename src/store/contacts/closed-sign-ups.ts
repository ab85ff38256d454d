import { DAY } from '../../core/clock.ts';
import type { DataPolicy } from '../data-policy.ts';
import type { Database } from '../database/database.ts';
import { statements } from '../database/statements.ts';

/** How long the link of a sign-up is valid. */
export const SIGN_UP_LIFETIME_MS = 7 * DAY;

/** The links of a recipient that confirm nothing any more, by the time of their form. Stored as long as they are valid. */
export const CLOSED_SIGN_UP_POLICY = {
  table: 'closed_sign_ups',
  personal: ['recipient_hash'],
  erasure: { stays: 'a link that was sent before the erasure must not create the contact again' },
  retention: {
    kind: 'closedSignUps',
    rows: 'timed',
    period: 'expiry',
    key: 'account_id, recipient_hash, subscription_group_id',
    time: 'expires_at',
  },
} as const satisfies DataPolicy;

export interface ClosedSignUpRow {
  account_id: string;
  /** `email_<md5>` or `phone_<md5>`. */
  recipient_hash: string;
  /** '': all groups. */
  subscription_group_id: string;
  /** The time of the newest form whose link is closed. */
  until: number;
  expires_at: number;
}

/** Statement that stores a row or extends the one that exists. `rows`: VALUES or a SELECT of the columns. */
export const closeSignUps = (rows: string) => `
  INSERT INTO closed_sign_ups (account_id, recipient_hash, subscription_group_id, until, expires_at) ${rows}
  ON CONFLICT DO UPDATE SET until = max(until, excluded.until), expires_at = max(expires_at, excluded.expires_at)`;

/**
 * `closed_sign_ups`, by account, recipient and group. Expired rows count until retention deletes them; their links are
 * rejected by age before that.
 */
export function closedSignUpTable(db: Database) {
  const sql = statements(db);
  const close = sql.run<[ClosedSignUpRow]>(
    closeSignUps('VALUES (@account_id, @recipient_hash, @subscription_group_id, @until, @expires_at)'),
  );
  const until = db
    .prepare<[string, string, string], number>(
      'SELECT until FROM closed_sign_ups WHERE account_id = ? AND recipient_hash = ? AND subscription_group_id = ?',
    )
    .pluck();
  return {
    /** Closes the links of a group whose forms were sent until `at`. */
    close: (
      row: Pick<ClosedSignUpRow, 'account_id' | 'recipient_hash' | 'subscription_group_id'>,
      at: number,
      now: number,
    ): void => close({ ...row, until: at, expires_at: now + SIGN_UP_LIFETIME_MS }),
    /** Whether a link of this group with a form sent at `at` was used, or one with a newer form. */
    isUsed: (accountId: string, recipientHash: string, groupId: string, at: number): boolean =>
      (until.get(accountId, recipientHash, groupId) ?? -1) >= at,
    /** Whether the person was erased after a form sent at `at`. */
    isErased: (accountId: string, recipientHash: string, at: number): boolean =>
      (until.get(accountId, recipientHash, '') ?? -1) >= at,
  };
}
