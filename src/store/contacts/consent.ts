import type { DataPolicy } from '../data-policy.ts';
import type { Database } from '../database/database.ts';
import { statements } from '../database/statements.ts';

/*
 * The consent history of each contact, numbered: the first entry, the one in effect, and the newest. Entries are added and
 * the oldest removed, never changed. The column `consent_n` of the contact is the number of the entry that is in effect.
 */

/** Entries of a contact. A program that changes the consent with each request would otherwise fill the disk. */
export const MAX_CONSENT_ENTRIES = 200;

export const CONSENT_METHODS = [
  'double_opt_in',
  'single_opt_in',
  'imported',
  'web_form',
  'implicit_api',
  'other',
] as const;
export type ConsentMethod = (typeof CONSENT_METHODS)[number];

/** How a person opted out of a group or of marketing mail, or ended the opt-out. `sunset`: the rule of the account did. */
export const OPT_OUT_METHODS = ['one_click', 'page', 'mailto', 'api', 'sunset'] as const;
export type OptOutMethod = (typeof OPT_OUT_METHODS)[number];

/**
 * `withdrawn` with a method of OPT_OUT_METHODS: the person opted out of marketing mail, and the consent stays on record.
 * `given` with one: the person ended that opt-out.
 */
export const CONSENT_ACTIONS = ['given', 'withdrawn', 'left_group', 'returned_to_group'] as const;
export type ConsentAction = (typeof CONSENT_ACTIONS)[number];

export interface ConsentRow {
  contact_seq: number;
  n: number;
  action: ConsentAction;
  /** Null: the entry is not about a single group. */
  subscription_group_id: string | null;
  method: ConsentMethod | OptOutMethod | null;
  details: string | null;
  ip_address: string | null;
  user_agent: string | null;
  /** When the person consented or withdrew, according to the caller; null: unknown. */
  said_at: number | null;
  recorded_at: number;
  /** An API key's id, a person of the console, `command line`, `import` or `recipient`. */
  recorded_by: string;
  /** JSON: SignUpEvidence; null: there is none. */
  evidence: string | null;
}

/** What preceded a consent by double opt-in, as it was when the person confirmed. */
export interface SignUpEvidence {
  subscriptionGroupId: string;
  /** When the form was sent, epoch ms. */
  formSentAt: number;
  /** What the form showed. */
  form: { group: string; description: string | null };
  /** The mail with the link that was clicked; null: it is not stored any more. Null subject or intro: the default text. */
  mail: {
    messageId: string;
    from: string;
    subject: string;
    intro: string | null;
    /** When it was accepted, epoch ms. */
    acceptedAt: number;
  } | null;
}

export const CONSENT_POLICY = {
  table: 'consents',
  personal: ['details', 'ip_address', 'user_agent', 'evidence'],
  erasure: ['contact'],
  retention: { until: 'the contact is deleted' },
} as const satisfies DataPolicy;

/**
 * `consents`, by contact and number. Entries are never changed; `contacts.setConsent` sets the one that is in effect.
 */
export function consentTable(db: Database) {
  const sql = statements(db);
  const last = sql.count<[number]>('SELECT max(n) FROM consents WHERE contact_seq = ?');
  const insert = sql.run<[ConsentRow]>(`INSERT INTO ${sql.row('consents')}`);
  const removeOne = sql.run<[number, number, number]>(`
    DELETE FROM consents WHERE contact_seq = ? AND n = ? AND n IS NOT (SELECT consent_n FROM contacts WHERE seq = ?)`);
  const history = sql.all<[number, number, number], ConsentRow>(
    'SELECT * FROM consents WHERE contact_seq = ? AND n < ? ORDER BY n DESC LIMIT +?',
  );
  return {
    /** Inserts an entry that has a number already, of a contact from another installation. */
    insert: (entry: ConsentRow): void => insert(entry),
    /** Inserts the first entry of a new contact. */
    begin: (entry: Omit<ConsentRow, 'n'>): void => insert({ ...entry, n: 1 }),
    /** Appends an entry; returns its number. Removes the oldest one after the first when there are too many. */
    add: (entry: Omit<ConsentRow, 'n'>): number => {
      const { contact_seq: seq } = entry;
      const n = last(seq) + 1;
      insert({ ...entry, n });
      if (n > MAX_CONSENT_ENTRIES) removeOne(seq, n - MAX_CONSENT_ENTRIES + 1, seq);
      return n;
    },
    /** Newest first, entries with a number below `before`; null: all. */
    history: (contactSeq: number, before: number | null, limit: number): ConsentRow[] =>
      history(contactSeq, before ?? Number.MAX_SAFE_INTEGER, limit),
    removeAll: sql.run<[contactSeq: number]>('DELETE FROM consents WHERE contact_seq = ?'),
  };
}
