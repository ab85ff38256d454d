import type { DataPolicy } from '../data-policy.ts';
import type { Database } from '../database.ts';

/**
 * What people said about being written to: one numbered history for each contact, only ever added to. Which
 * entry is the consent that holds now, the contact itself knows (`consent_n`).
 */
export const CONSENT_METHODS = [
  'double_opt_in',
  'single_opt_in',
  'imported',
  'web_form',
  'implicit_api',
  'other',
] as const;
export type ConsentMethod = (typeof CONSENT_METHODS)[number];

/** Where somebody left a group, or came back. */
export const OPT_OUT_METHODS = ['one_click', 'page', 'mailto', 'api'] as const;
export type OptOutMethod = (typeof OPT_OUT_METHODS)[number];

export const CONSENT_ACTIONS = ['given', 'withdrawn', 'left_group', 'returned_to_group'] as const;
export type ConsentAction = (typeof CONSENT_ACTIONS)[number];

export interface ConsentRow {
  contact_seq: number;
  n: number;
  action: ConsentAction;
  /** Null: it is about the person as a whole. */
  subscription_group_id: string | null;
  method: ConsentMethod | OptOutMethod | null;
  details: string | null;
  ip_address: string | null;
  user_agent: string | null;
  /** When the person said it, as far as the caller knows; null: nobody told. */
  said_at: number | null;
  recorded_at: number;
  /** An API key's id, `import` or `recipient`. */
  recorded_by: string;
}

export const CONSENT_POLICY = {
  table: 'consents',
  personal: ['details', 'ip_address', 'user_agent'],
  erasure: ['contact'],
  retention: { until: 'the contact is deleted' },
} as const satisfies DataPolicy;

export function consentTable(db: Database) {
  const last = db
    .prepare<[number], number | null>('SELECT max(n) FROM consents WHERE contact_seq = ?')
    .pluck();
  const insert = db.prepare<ConsentRow>(`
    INSERT INTO consents (contact_seq, n, action, subscription_group_id, method, details, ip_address, user_agent, said_at,
      recorded_at, recorded_by)
    VALUES (@contact_seq, @n, @action, @subscription_group_id, @method, @details, @ip_address, @user_agent, @said_at,
      @recorded_at, @recorded_by)`);
  const history = db.prepare<[number, number, number], ConsentRow>(
    'SELECT * FROM consents WHERE contact_seq = ? AND n < ? ORDER BY n DESC LIMIT +?',
  );
  const removeAll = db.prepare<[number]>('DELETE FROM consents WHERE contact_seq = ?');
  return {
    /** The first word of a new contact. */
    begin: (entry: Omit<ConsentRow, 'n'>): void => {
      insert.run({ ...entry, n: 1 });
    },
    /** Returns its number. */
    add: (entry: Omit<ConsentRow, 'n'>): number => {
      const n = (last.get(entry.contact_seq) ?? 0) + 1;
      insert.run({ ...entry, n });
      return n;
    },
    /** Newest first, from before the number on. */
    history: (contactSeq: number, before: number | null, limit: number): ConsentRow[] =>
      history.all(contactSeq, before ?? Number.MAX_SAFE_INTEGER, limit),
    removeAll: (contactSeq: number): void => {
      removeAll.run(contactSeq);
    },
  };
}
