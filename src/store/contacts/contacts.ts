import type { DataPolicy } from '../data-policy.ts';
import type { Database } from '../database/database.ts';
import { columnsSet, statements } from '../database/statements.ts';
import { type Page, type PageFilter, pageOf } from '../rows/page.ts';
import type { ConsentMethod } from './consent.ts';
import {
  contactSearchIndex,
  type IndexedContact,
  type IndexHits,
  type IndexQuery,
} from './contact-search.ts';

/** Status of a contact for marketing messages. Every contact has an email address or a phone number, or both. */
export const GLOBAL_STATUSES = ['active', 'unsubscribed', 'bounced', 'complained', 'suppressed'] as const;
export type GlobalStatus = (typeof GLOBAL_STATUSES)[number];

export interface ContactRow {
  /** The page key. */
  seq: number;
  account_id: string;
  /** UUID version 7. */
  user_id: string;
  email: string | null;
  email_hash: string | null;
  /** E.164. */
  phone: string | null;
  phone_hash: string | null;
  first_name: string | null;
  last_name: string | null;
  /** A JSON object. */
  custom_fields: string;
  global_status: GlobalStatus;
  /** The entry of the consent history that is in effect; null: there is none. */
  consent_n: number | null;
  /** `api`, `import`, or a name from the caller. */
  source: string;
  /** An API key's id, or `import`. */
  added_by: string;
  email_key: string | null;
  name_key: string | null;
  last_name_key: string | null;
  /** The text that a search examines: folded address, name and number, one per line. Null: not yet indexed. */
  search_text: string;
  /** A language tag (BCP 47); null: unknown. */
  language: string | null;
  /** The contact gets no marketing mail until then; null: it is not paused. */
  paused_until: number | null;
  /** When the person asked on the preference page to be erased; null: never. */
  erasure_requested_at: number | null;
  created_at: number;
  updated_at: number;
}

/** A contact with the consent that is in effect; without one, its five columns are null. */
export type KnownContact = ContactRow & {
  consent_method: ConsentMethod | null;
  consent_details: string | null;
  consent_ip_address: string | null;
  consent_user_agent: string | null;
  consented_at: number | null;
};

export interface ContactFilter extends PageFilter {
  status?: GlobalStatus;
  /** Only contacts that asked to be erased; without a status. */
  erasureRequested?: true;
}

/** Columns for searches by prefix, each with an index. */
export const SEARCH_KEYS = ['email_key', 'name_key', 'last_name_key'] as const;
export type SearchKey = (typeof SEARCH_KEYS)[number];

/** The columns that a search by prefix compares. */
export type Candidate = Pick<
  ContactRow,
  'seq' | 'email' | 'first_name' | 'last_name' | 'global_status' | SearchKey
>;

/** The columns that a search inside the text compares. */
export type IndexCandidate = IndexedContact & Pick<ContactRow, 'phone' | 'global_status'>;

/** Suffixes that bound a range: every text that begins with T, and is longer, sorts between T + NEXT and T + BEYOND. */
const BEYOND = '\u{10ffff}';
const NEXT = '\u0000';
const WALK_BATCH_SIZE = 100;

/** The columns of KnownContact: a contact joined with the consent that is in effect. */
export const CONTACT_COLUMNS = `c.*, k.method AS consent_method, k.details AS consent_details,
  k.ip_address AS consent_ip_address, k.user_agent AS consent_user_agent, k.said_at AS consented_at`;
export const WITH_CONSENT = 'LEFT JOIN consents k ON k.contact_seq = c.seq AND k.n = c.consent_n';

const SELECT_CONTACT = `SELECT ${CONTACT_COLUMNS} FROM contacts c ${WITH_CONSENT}`;

const CONTACT_RETENTION = { until: 'the account deletes the contact' };

export const CONTACT_POLICIES = [
  {
    table: 'contacts',
    personal: [
      'user_id',
      'email',
      'email_hash',
      'phone',
      'phone_hash',
      'first_name',
      'last_name',
      'custom_fields',
      'language',
      'email_key',
      'name_key',
      'last_name_key',
      'search_text',
    ],
    erasure: ['contact'],
    retention: CONTACT_RETENTION,
  },
  // `contacts.remove` deletes the index entry, too.
  { table: 'contact_search', personal: ['trigrams'], erasure: ['contact'], retention: CONTACT_RETENTION },
] as const satisfies DataPolicy[];

/**
 * `contacts` with their entries in `contact_search`, which insertion, update and removal maintain. Address and number
 * are unique in an account (`contacts_by_email`, `contacts_by_phone`); pages follow `seq`.
 */
export function contactTable(db: Database) {
  const sql = statements(db);
  const insert = sql.insert<[Omit<ContactRow, 'seq'>]>(`INSERT INTO ${sql.row('contacts')}`);
  const update = sql.run<[ContactRow]>(`
    UPDATE contacts SET ${columnsSet(`email, email_hash, phone, phone_hash, first_name, last_name, custom_fields,
      global_status, source, email_key, name_key, last_name_key, search_text, language, paused_until,
      erasure_requested_at, updated_at`)}
    WHERE seq = @seq`);
  const setConsent = sql.run<[number | null, number, number]>(
    'UPDATE contacts SET consent_n = ?, updated_at = ? WHERE seq = ?',
  );
  const statusBy = (identifier: string) =>
    db.prepare<[GlobalStatus, number, string, string, GlobalStatus]>(`
      UPDATE contacts SET global_status = ?, updated_at = ?
      WHERE account_id = ? AND ${identifier} = ? AND global_status <> ?`);
  const setStatusByEmail = statusBy('email_hash');
  // An address takes precedence over a number: with both, the status is that of the address.
  const setStatusByPhone = statusBy('email_hash IS NULL AND phone_hash');
  const byEmail = db.prepare<[string, string], KnownContact>(
    `${SELECT_CONTACT} WHERE c.account_id = ? AND c.email_hash = ?`,
  );
  const byPhone = db.prepare<[string, string], KnownContact>(
    `${SELECT_CONTACT} WHERE c.account_id = ? AND c.phone_hash = ?`,
  );
  const page = sql.all<[string, number, number], KnownContact>(
    `${SELECT_CONTACT} WHERE c.account_id = ? AND c.seq < ? ORDER BY c.seq DESC LIMIT +?`,
  );
  const pageOfStatus = sql.all<[string, GlobalStatus, number, number], KnownContact>(
    `${SELECT_CONTACT} WHERE c.account_id = ? AND c.global_status = ? AND c.seq < ? ORDER BY c.seq DESC LIMIT +?`,
  );
  const pageOfRequests = sql.all<[string, number, number], KnownContact>(`
    SELECT ${CONTACT_COLUMNS} FROM contacts c INDEXED BY contacts_by_erasure_request ${WITH_CONSENT}
    WHERE c.account_id = ? AND c.erasure_requested_at IS NOT NULL AND c.seq < ? ORDER BY c.seq DESC LIMIT +?`);
  // Two queries: SQLite would read one range over (key, seq) from the first row of the key, however many rows have it.
  const walkBy = (key: SearchKey) => {
    const select = `SELECT seq, email, first_name, last_name, global_status, ${SEARCH_KEYS.join(', ')} FROM contacts`;
    return {
      same: db.prepare<[string, string, number, number], Candidate>(
        `${select} WHERE account_id = ? AND ${key} = ? AND seq > ? ORDER BY seq LIMIT +?`,
      ),
      next: db.prepare<[string, string, string, number], Candidate>(
        `${select} WHERE account_id = ? AND ${key} >= ? AND ${key} < ? ORDER BY ${key}, seq LIMIT +?`,
      ),
    };
  };
  const walks: Record<SearchKey, ReturnType<typeof walkBy>> = {
    email_key: walkBy('email_key'),
    name_key: walkBy('name_key'),
    last_name_key: walkBy('last_name_key'),
  };
  const remove = sql.run<[number]>('DELETE FROM contacts WHERE seq = ?');
  const removeEngagement = sql.run<[number]>('DELETE FROM contact_engagement WHERE contact_seq = ?');
  const removeCampaigns = sql.run<[number]>('DELETE FROM campaign_contacts WHERE contact_seq = ?');
  const clearEngagement = (seq: number): void => {
    removeEngagement(seq);
    removeCampaigns(seq);
  };
  const index = contactSearchIndex(db);
  const indexed = db.prepare<[number], IndexedContact>(
    'SELECT seq, account_id, user_id, email_hash, phone_hash, search_text FROM contacts WHERE seq = ?',
  );

  return {
    /** Returns its seq. Throws when one of its identifiers is taken in this account. */
    insert: (row: Omit<ContactRow, 'seq'>): number => {
      const seq = insert(row);
      index.add({ ...row, seq });
      return seq;
    },
    /** Writes every column except the consent and those that never change. */
    update: (row: ContactRow): void => {
      const before = indexed.get(row.seq);
      update(row);
      if (before === undefined || hasSameEntry(before, row)) return;
      index.remove(before);
      index.add(row);
    },
    /** Called once at the start; see `contactSearchIndex`. */
    configureIndex: (): void => index.configure(),
    /** Called once per commit; see `contactSearchIndex`. */
    mergeIndex: (): void => index.merge(),
    /** Candidates of a search inside the text and the identifiers. */
    find: (query: IndexQuery): IndexHits => index.find(query),
    candidate: sql.get<[seq: number], IndexCandidate>(`
      SELECT seq, account_id, user_id, email_hash, phone_hash, phone, search_text, global_status
      FROM contacts WHERE seq = ?`),
    setConsent: (seq: number, n: number | null, at: number): void => setConsent(n, at, seq),
    /** Sets the status of the contact whose first identifier this is, if there is one. */
    setStatus: (accountId: string, identifier: string, status: GlobalStatus, at: number): void => {
      const set = identifier.startsWith('phone_') ? setStatusByPhone : setStatusByEmail;
      set.run(status, at, accountId, identifier, status);
    },
    /** Ends at most `limit` pauses whose time has come; returns how many. */
    endPauses: sql.changes<[now: number, limit: number]>(`
      UPDATE contacts SET paused_until = NULL WHERE seq IN (
        SELECT seq FROM contacts INDEXED BY contacts_by_pause
        WHERE paused_until IS NOT NULL AND paused_until <= ? LIMIT +?)`),
    /** Null: no contact has this address. `emailHash`: `email_<md5>`. */
    seqOf: sql.value<[accountId: string, emailHash: string], number>(
      'SELECT seq FROM contacts WHERE account_id = ? AND email_hash = ?',
    ),
    /** The language tag of the contact with this address; null: unknown. */
    languageOf: sql.value<[accountId: string, emailHash: string], string | null>(
      'SELECT language FROM contacts WHERE account_id = ? AND email_hash = ?',
    ),
    bySeq: sql.get<[seq: number], KnownContact>(`${SELECT_CONTACT} WHERE c.seq = ?`),
    /** `identifier`: `email_<md5>` or `phone_<md5>`. */
    byIdentifier: (accountId: string, identifier: string): KnownContact | null =>
      (identifier.startsWith('phone_') ? byPhone : byEmail).get(accountId, identifier) ?? null,
    /** Newest first. */
    list: ({ accountId, status, erasureRequested, beforeSeq, limit }: ContactFilter): Page<KnownContact> => {
      const before = beforeSeq ?? Number.MAX_SAFE_INTEGER;
      if (erasureRequested === true) return pageOf(pageOfRequests(accountId, before, limit + 1), limit);
      const rows =
        status === undefined
          ? page(accountId, before, limit + 1)
          : pageOfStatus(accountId, status, before, limit + 1);
      return pageOf(rows, limit);
    },
    /** Contacts who asked to be erased, the oldest request first. */
    erasureRequests: sql.all<[accountId: string, limit: number], KnownContact>(`
      SELECT ${CONTACT_COLUMNS} FROM contacts c INDEXED BY contacts_by_erasure_time ${WITH_CONSENT}
      WHERE c.account_id = ? AND c.erasure_requested_at IS NOT NULL ORDER BY c.erasure_requested_at LIMIT +?`),
    /** Contacts whose key begins with `prefix`, in the order of key and seq; `after`: the position to continue from. */
    walk: function* (
      key: SearchKey,
      accountId: string,
      prefix: string,
      after: { key: string; seq: number } | null,
    ): Generator<Candidate> {
      const { same, next } = walks[key];
      let position = after;
      for (;;) {
        const rows =
          position === null ? [] : same.all(accountId, position.key, position.seq, WALK_BATCH_SIZE);
        const from = position === null ? prefix : position.key + NEXT;
        rows.push(...next.all(accountId, from, prefix + BEYOND, WALK_BATCH_SIZE - rows.length));
        yield* rows;
        const last = rows.at(-1);
        if (last === undefined || rows.length < WALK_BATCH_SIZE) return;
        position = { key: last[key] ?? '', seq: last.seq };
      }
    },
    /** The contact's memberships and consent history must be deleted first. */
    remove: (seq: number): void => {
      const before = indexed.get(seq);
      if (before !== undefined) index.remove(before);
      clearEngagement(seq);
      remove(seq);
    },
    /** Removes what the contact did with mail. */
    clearEngagement,
  };
}

/** Whether two versions of a contact have the same index entry; account and user id never change. */
function hasSameEntry(one: IndexedContact, two: IndexedContact): boolean {
  return (
    one.search_text === two.search_text &&
    one.email_hash === two.email_hash &&
    one.phone_hash === two.phone_hash
  );
}
