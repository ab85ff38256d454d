import type { Database } from '../database/database.ts';
import { statements } from '../database/statements.ts';
import { eventRows, type StoredEvent } from '../messages/event-rows.ts';
import { type EventRow, selectEvent } from '../messages/events.ts';
import { type BoundId, idNumbers } from '../rows/id-numbers.ts';
import type { StrikeKind } from '../suppressions.ts';
import type { ClosedSignUpRow } from './closed-sign-ups.ts';
import type { OptOutRow } from './subscriptions.ts';

/** An opt-out from a group, with the group's public id. */
export type GroupOptOut = Pick<OptOutRow, 'method' | 'created_at'> & { subscription_group_id: string };

/** Closed links of a group; '': of all groups. */
export type ClosedSignUp = Pick<ClosedSignUpRow, 'subscription_group_id' | 'until'>;

export interface Strike {
  kind: StrikeKind;
  at: number;
}

export interface CampaignOfContact {
  campaign_id: string;
  /** `ENGAGEMENT_BITS` of audience/segments. */
  bits: number;
}

/** The default limit of an account's campaigns. */
const MAX_CAMPAIGNS = 10_000;
/** Strikes of a recipient that are read, the newest. */
const MAX_STRIKES = 500;

/** Rows about a person in tables that are otherwise read for one purpose only. Each statement reads one index. */
export function personalDataTable(db: Database) {
  const sql = statements(db);
  const { account } = idNumbers(db);
  const { toRow } = eventRows(db);
  const optOuts = sql.all<[string, string], GroupOptOut>(`
    SELECT g.subscription_group_id, o.method, o.created_at
    FROM group_opt_outs o INDEXED BY group_opt_outs_by_recipient JOIN subscription_groups g ON g.seq = o.group_seq
    WHERE o.recipient_hash = ? AND g.account_id = ? AND g.deleted_at IS NULL ORDER BY o.created_at, o.group_seq`);
  const events = sql.all<[BoundId, string, number, number], StoredEvent>(`
    ${selectEvent('events e INDEXED BY events_by_person')}
    WHERE e.account = ? AND e.data ->> '$.contactIdentifier' = ? AND e.message_seq IS NULL AND e.seq > ?
    ORDER BY e.seq LIMIT +?`);
  return {
    /** Opt-outs from groups of the account, oldest first. */
    optOutsOf: (accountId: string, recipientHash: string): GroupOptOut[] => optOuts(recipientHash, accountId),
    closedSignUpsOf: sql.all<[accountId: string, recipientHash: string], ClosedSignUp>(
      'SELECT subscription_group_id, until FROM closed_sign_ups WHERE account_id = ? AND recipient_hash = ?',
    ),
    /** Newest first, at most 500. */
    strikesOf: sql.all<[accountId: string, recipientHash: string], Strike>(
      `SELECT kind, at FROM strikes WHERE account_id = ? AND recipient_hash = ? ORDER BY at DESC LIMIT ${MAX_STRIKES}`,
    ),
    /** What the contact did with campaigns, the newest campaigns first. */
    campaignsOf: sql.all<[contactSeq: number], CampaignOfContact>(`
      SELECT p.campaign_id, c.bits FROM campaign_contacts c INDEXED BY campaign_contacts_by_contact
      JOIN campaigns p ON p.seq = c.campaign_seq
      WHERE c.contact_seq = ? ORDER BY c.campaign_seq DESC LIMIT ${MAX_CAMPAIGNS}`),
    /** Events without a message, oldest first, after this one. */
    eventsAbout: (accountId: string, recipientHash: string, after: number, limit: number): EventRow[] =>
      events(account.find(accountId), recipientHash, after, limit).map(toRow),
  };
}
