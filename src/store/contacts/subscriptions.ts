import type { DataPolicy } from '../data-policy.ts';
import type { Database } from '../database/database.ts';
import { columnsSet, statements } from '../database/statements.ts';
import { type Page, pageOf } from '../rows/page.ts';
import type { ConsentMethod, OptOutMethod } from './consent.ts';
import { CONTACT_COLUMNS, type KnownContact, WITH_CONSENT } from './contacts.ts';

/*
 * Memberships in groups, and opt-outs from them, which remain after the membership and the person are deleted. Only this
 * module changes the counts of a group, together with its memberships.
 */

/** A membership of a contact in a group. */
export interface SubscriptionRow {
  group_seq: number;
  contact_seq: number;
  is_active: 0 | 1;
  source: string;
  consent_method: ConsentMethod;
  consent_details: string | null;
  joined_at: number;
  updated_at: number;
}

/** A membership with its group's public id. */
export type Membership = SubscriptionRow & { subscription_group_id: string };

/** A contact and its membership in a group. */
export interface Member {
  contact: KnownContact;
  subscription: SubscriptionRow;
}

/** What decides whether a contact may receive marketing mail: few columns, because every message needs them. */
export interface ContactPermission {
  /** The entry of the consent history that is in effect; null: there is none. */
  consent_n: number | null;
  /** The contact gets no marketing mail until then; null: it is not paused. */
  paused_until: number | null;
  /** Null: the group does not exist, or none was named. */
  group_is_active: 0 | 1 | null;
  /** Whether the membership in the group is active; null: there is none. */
  member_is_active: 0 | 1 | null;
}

type Counted = Pick<SubscriptionRow, 'group_seq' | 'is_active'>;

export interface MemberFilter {
  groupSeq: number;
  isActive?: boolean;
  /** Only contacts before this one: the page key. */
  beforeSeq: number | null;
  limit: number;
}

export const SUBSCRIPTION_POLICY = {
  table: 'subscriptions',
  personal: ['consent_details'],
  erasure: ['contact'],
  retention: { until: 'the contact leaves the group' },
} as const satisfies DataPolicy;

/**
 * `subscriptions`, by group and contact; each change also updates the counts of the group, in the same unit of work.
 * Lists by activity are read by the index `subscriptions_by_activity`.
 */
export function subscriptionTable(db: Database) {
  const sql = statements(db);
  const get = db.prepare<[number, number], SubscriptionRow>(
    'SELECT * FROM subscriptions WHERE group_seq = ? AND contact_seq = ?',
  );
  const permission = sql.get<[string | null, string, string], ContactPermission>(`
    SELECT c.consent_n, c.paused_until, g.is_active AS group_is_active, s.is_active AS member_is_active
    FROM contacts c
      LEFT JOIN subscription_groups g
        ON g.subscription_group_id = ? AND g.account_id = c.account_id AND g.deleted_at IS NULL
      LEFT JOIN subscriptions s ON s.group_seq = g.seq AND s.contact_seq = c.seq
    WHERE c.account_id = ? AND c.email_hash = ?`);
  const insert = sql.run<[SubscriptionRow]>(`INSERT INTO ${sql.row('subscriptions')}`);
  const update = sql.run<[SubscriptionRow]>(`
    UPDATE subscriptions SET ${columnsSet('is_active, source, consent_method, consent_details, updated_at')}
    WHERE group_seq = @group_seq AND contact_seq = @contact_seq`);
  const remove = sql.all<[number, number], Counted>(
    'DELETE FROM subscriptions WHERE group_seq = ? AND contact_seq = ? RETURNING group_seq, is_active',
  );
  const count = sql.run<[number, number, number]>(`
    UPDATE subscription_groups SET total_subscribers = total_subscribers + ?, active_subscribers = active_subscribers + ?
    WHERE seq = ?`);
  const removeOfContact = sql.all<[number], Counted>(
    'DELETE FROM subscriptions WHERE contact_seq = ? RETURNING group_seq, is_active',
  );
  const removeOfGroup = sql.all<[number, number, number], Counted>(`
    DELETE FROM subscriptions WHERE group_seq = ? AND contact_seq IN (
      SELECT contact_seq FROM subscriptions WHERE group_seq = ? LIMIT +?)
    RETURNING group_seq, is_active`);
  const page = sql.all<[number, number, number], JoinedMember>(`
    ${selectMember('subscriptions s')} WHERE s.group_seq = ? AND s.contact_seq < ? ORDER BY s.contact_seq DESC LIMIT +?`);
  const pageOfActivity = sql.all<[number, 0 | 1, number, number], JoinedMember>(`
    ${selectMember('subscriptions s INDEXED BY subscriptions_by_activity')}
    WHERE s.group_seq = ? AND s.is_active = ? AND s.contact_seq < ?
    ORDER BY s.contact_seq DESC LIMIT +?`);
  const MAY_RECEIVE = "email IS NOT NULL AND global_status = 'active' AND paused_until IS NULL";
  const selectAudience = `
    SELECT count(*) AS members,
      coalesce(sum(email IS NULL), 0) AS withoutEmail,
      coalesce(sum(email IS NOT NULL AND NOT (${MAY_RECEIVE})), 0) AS suppressed,
      coalesce(sum(${MAY_RECEIVE} AND consent_n IS NOT NULL), 0) AS eligible`;
  const audience = db.prepare<[number, number], AudienceCounts>(`${selectAudience}
    FROM (
      SELECT c.email, c.global_status, c.paused_until, c.consent_n
      FROM subscriptions s INDEXED BY subscriptions_by_activity JOIN contacts c ON c.seq = s.contact_seq
      WHERE s.group_seq = ? AND s.is_active = 1 LIMIT +?)`);
  const audienceAmong = db.prepare<[string], AudienceCounts>(`${selectAudience}
    FROM json_each(?) chosen CROSS JOIN contacts ON seq = chosen.value`);

  /** Subtracts removed memberships from the counts of their groups; returns how many were removed. */
  function uncount(removed: Counted[]): number {
    for (const { group_seq, is_active } of removed) count(-1, -is_active, group_seq);
    return removed.length;
  }

  return {
    get: (groupSeq: number, contactSeq: number): SubscriptionRow | null =>
      get.get(groupSeq, contactSeq) ?? null,
    /** Returns null if no contact has this address. `emailHash`: `email_<md5>`. `groupId` null: without a group. */
    permission: (accountId: string, emailHash: string, groupId: string | null): ContactPermission | null =>
      permission(groupId, accountId, emailHash),
    /** Throws when the contact is a member already. */
    insert: (row: SubscriptionRow): void => {
      insert(row);
      count(1, row.is_active, row.group_seq);
    },
    /** Writes activity, source and consent; `joined_at` never changes. */
    update: (row: SubscriptionRow): void => {
      const before = get.get(row.group_seq, row.contact_seq);
      if (before === undefined) return;
      update(row);
      if (before.is_active !== row.is_active) count(0, row.is_active - before.is_active, row.group_seq);
    },
    /** Returns false when the contact is not a member. */
    remove: (groupSeq: number, contactSeq: number): boolean => uncount(remove(groupSeq, contactSeq)) === 1,
    /** Whether the active members of a group can receive marketing mail, of at most `limit` members. */
    audience: (groupSeq: number, limit: number): AudienceCounts => {
      const counts = audience.get(groupSeq, limit);
      if (counts === undefined) throw new Error('an aggregate query returned no row');
      return counts;
    },
    /** The same for these contacts. */
    audienceAmong: (contactSeqs: readonly number[]): AudienceCounts => {
      const counts = audienceAmong.get(JSON.stringify(contactSeqs));
      if (counts === undefined) throw new Error('an aggregate query returned no row');
      return counts;
    },
    /** Oldest first. */
    ofContact: sql.all<[contactSeq: number], Membership>(`
      SELECT s.*, g.subscription_group_id FROM subscriptions s JOIN subscription_groups g ON g.seq = s.group_seq
      WHERE s.contact_seq = ? AND g.deleted_at IS NULL ORDER BY s.joined_at, s.group_seq`),
    removeOfContact: (contactSeq: number): void => {
      uncount(removeOfContact(contactSeq));
    },
    /** Returns how many were removed, at most `limit`. */
    removeOfGroup: (groupSeq: number, limit: number): number =>
      uncount(removeOfGroup(groupSeq, groupSeq, limit)),
    /** The newest contacts first. */
    list: ({ groupSeq, isActive, beforeSeq, limit }: MemberFilter): Page<Member> => {
      const before = beforeSeq ?? Number.MAX_SAFE_INTEGER;
      const found =
        isActive === undefined
          ? page(groupSeq, before, limit + 1)
          : pageOfActivity(groupSeq, isActive ? 1 : 0, before, limit + 1);
      const { rows, more } = pageOf(found, limit);
      return { rows: rows.map(memberFrom), more };
    },
  };
}

/** Active members of a group; those in no other count have no consent on record. `suppressed`: also those who paused mail. */
export interface AudienceCounts {
  members: number;
  eligible: number;
  withoutEmail: number;
  suppressed: number;
}

/** A contact with its membership. Columns that both tables have are prefixed with `member_` in the membership. */
type JoinedMember = KnownContact & {
  group_seq: number;
  is_active: 0 | 1;
  joined_at: number;
  member_source: string;
  member_consent_method: ConsentMethod;
  member_consent_details: string | null;
  member_updated_at: number;
};

const selectMember = (from: string) => `
  SELECT ${CONTACT_COLUMNS}, s.group_seq, s.is_active, s.joined_at, s.source AS member_source,
    s.consent_method AS member_consent_method, s.consent_details AS member_consent_details,
    s.updated_at AS member_updated_at
  FROM ${from} JOIN contacts c ON c.seq = s.contact_seq ${WITH_CONSENT}`;

function memberFrom(row: JoinedMember): Member {
  return {
    contact: row,
    subscription: {
      group_seq: row.group_seq,
      contact_seq: row.seq,
      is_active: row.is_active,
      source: row.member_source,
      consent_method: row.member_consent_method,
      consent_details: row.member_consent_details,
      joined_at: row.joined_at,
      updated_at: row.member_updated_at,
    },
  };
}

export interface OptOutRow {
  group_seq: number;
  /** `email_<md5>` or `phone_<md5>`. */
  recipient_hash: string;
  method: OptOutMethod;
  created_at: number;
}

export const OPT_OUT_POLICY = {
  table: 'group_opt_outs',
  personal: ['recipient_hash'],
  erasure: { stays: 'the opt-out applies to the identifier' },
  retention: { until: 'the opt-out is withdrawn or the group is deleted' },
} as const satisfies DataPolicy;

/** `group_opt_outs`, by group and identifier, whether or not a contact with it exists. */
export function groupOptOutTable(db: Database) {
  const sql = statements(db);
  const since = db
    .prepare<[number, string], number>(
      'SELECT created_at FROM group_opt_outs WHERE group_seq = ? AND recipient_hash = ?',
    )
    .pluck();
  const copy = sql.run<[{ from: string; to: string; accountId: string }]>(`
    INSERT INTO group_opt_outs (group_seq, recipient_hash, method, created_at)
    SELECT o.group_seq, @to, o.method, o.created_at
    FROM group_opt_outs o JOIN subscription_groups g ON g.seq = o.group_seq
    WHERE o.recipient_hash = @from AND g.account_id = @accountId
    ON CONFLICT DO NOTHING`);
  const removeOfGroup = sql.changes<[number, number, number]>(`
    DELETE FROM group_opt_outs WHERE group_seq = ? AND recipient_hash IN (
      SELECT recipient_hash FROM group_opt_outs WHERE group_seq = ? LIMIT +?)`);
  return {
    /** Returns false when there is an opt-out already, which stays. */
    add: sql.changed<[row: OptOutRow]>(`
      INSERT INTO ${sql.row('group_opt_outs')}
      ON CONFLICT DO NOTHING`),
    has: (groupSeq: number, recipientHash: string): boolean =>
      since.get(groupSeq, recipientHash) !== undefined,
    /** When the person left the group; null: never. */
    since: (groupSeq: number, recipientHash: string): number | null =>
      since.get(groupSeq, recipientHash) ?? null,
    /** Returns false when there was none. */
    remove: sql.changed<[groupSeq: number, recipientHash: string]>(
      'DELETE FROM group_opt_outs WHERE group_seq = ? AND recipient_hash = ?',
    ),
    /** Copies the opt-outs of one identifier of a person to another one. */
    copy: (accountId: string, from: string, to: string): void => copy({ accountId, from, to }),
    /** Returns how many were removed, at most `limit`. */
    removeOfGroup: (groupSeq: number, limit: number): number => removeOfGroup(groupSeq, groupSeq, limit),
  };
}
