import type { DataPolicy } from '../data-policy.ts';
import type { Database } from '../database/database.ts';
import { statements } from '../database/statements.ts';
import { CONTACT_COLUMNS, type KnownContact, WITH_CONSENT } from './contacts.ts';
import { CHUNK_SIZE, type EngagementRow } from './engagement.ts';

/** The copies of one account's contacts in a chunk. */
export interface ChunkCopy {
  account_id: string;
  /** Numbers modulo CHUNK_SIZE, ascending, 16 bits each: contacts in the order of the columns. */
  copied: Buffer;
  /** Numbers of contacts that are not copied. */
  others: Buffer;
  columns: ReadonlyMap<string, Buffer>;
}

/** A contact that changed after it was copied, with the number of its changes. */
export type ContactChange = readonly [contactSeq: number, n: number];

/** A membership with what a filter tests. */
export interface ChunkMembership {
  contact_seq: number;
  subscription_group_id: string;
  is_active: 0 | 1;
  joined_at: number;
}

const COPIES = { until: 'the contact is deleted, with every copy of its chunk' };

export const SEGMENT_COPY_POLICIES = [
  { table: 'segment_columns', personal: ['name', 'data'], erasure: ['contact'], retention: COPIES },
] as const satisfies DataPolicy[];

/**
 * `segment_chunks`, `segment_columns` and `segment_changes`: copies of contacts by column (audience/segments/columns.ts).
 * Triggers note the contacts that change.
 */
export function segmentColumnTable(db: Database) {
  const sql = statements(db);
  const nextContact = sql.value<[string, number], number>(
    'SELECT seq FROM contacts WHERE account_id = ? AND seq >= ? ORDER BY seq LIMIT 1',
  );
  const lastContact = sql.value<[string, number], number>(
    'SELECT seq FROM contacts WHERE account_id = ? AND seq <= ? ORDER BY seq DESC LIMIT 1',
  );
  const chunkOf = (seq: number | null) => (seq === null ? null : Math.floor(seq / CHUNK_SIZE));
  const putChunk = sql.run<[number, string, Buffer, Buffer]>(
    'INSERT INTO segment_chunks (chunk, account_id, copied, others) VALUES (?, ?, ?, ?)',
  );
  const noteChanges = sql.run<[number, Buffer]>(
    "INSERT INTO segment_chunks (chunk, account_id, copied, others) VALUES (?, '', NULL, ?) ON CONFLICT DO NOTHING",
  );
  const isNoted = sql.exists<[number]>("SELECT 1 FROM segment_chunks WHERE chunk = ? AND account_id = ''");
  const removeChunks = sql.run<[number]>('DELETE FROM segment_chunks WHERE chunk = ?');
  const columnNames = sql.all<[number], { account_id: string; name: string }>(
    'SELECT account_id, name FROM segment_columns WHERE chunk = ?',
  );
  const removeColumn = sql.run<[number, string, string]>(
    'DELETE FROM segment_columns WHERE chunk = ? AND account_id = ? AND name = ?',
  );
  const putColumn = sql.run<[number, string, string, Buffer]>(`
    INSERT INTO segment_columns (chunk, account_id, name, data) VALUES (?, ?, ?, ?)
    ON CONFLICT (chunk, account_id, name) DO UPDATE SET data = excluded.data WHERE data <> excluded.data`);
  const removeChange = sql.run<[number, number]>(
    'DELETE FROM segment_changes WHERE contact_seq = ? AND n = ?',
  );
  const changes = db
    .prepare<[number, number], [number, number]>(
      'SELECT contact_seq, n FROM segment_changes WHERE contact_seq BETWEEN ? AND ?',
    )
    .raw();
  const select = `SELECT ${CONTACT_COLUMNS} FROM contacts c ${WITH_CONSENT}`;
  const ofAccount = sql.all<[accountId: string, first: number, last: number], KnownContact>(
    `${select} WHERE c.account_id = ? AND c.seq BETWEEN ? AND ? ORDER BY c.seq`,
  );
  const all = sql.all<[number, number], KnownContact>(`${select} WHERE c.seq BETWEEN ? AND ? ORDER BY c.seq`);
  const memberships = sql.all<[number, number], ChunkMembership>(`
    SELECT s.contact_seq, g.subscription_group_id, s.is_active, s.joined_at
    FROM subscriptions s INDEXED BY subscriptions_by_contact
      CROSS JOIN subscription_groups g ON g.seq = s.group_seq
    WHERE s.contact_seq BETWEEN ? AND ? AND g.deleted_at IS NULL`);
  const engagement = sql.all<[number, number], EngagementRow>(
    'SELECT * FROM contact_engagement WHERE contact_seq BETWEEN ? AND ?',
  );
  const newest = sql.value<[], number>('SELECT max(seq) FROM contacts');
  const size = sql.count<[number, number]>('SELECT count(*) FROM contacts WHERE seq BETWEEN ? AND ?');
  const NOTHING = Buffer.alloc(0);
  return {
    /** The first chunk, from this one on, with a contact of the account; null: there is none. */
    next: (accountId: string, chunk: number): number | null =>
      chunkOf(nextContact(accountId, chunk * CHUNK_SIZE)),
    /** The last chunk, up to this one, with a contact of the account; null: there is none. */
    previous: (accountId: string, chunk: number): number | null =>
      chunkOf(lastContact(accountId, (chunk + 1) * CHUNK_SIZE - 1)),
    /** Which contacts of an account are copied; null: read all of them from their tables. */
    copied: sql.get<[chunk: number, accountId: string], Pick<ChunkCopy, 'copied' | 'others'>>(
      'SELECT copied, others FROM segment_chunks WHERE chunk = ? AND account_id = ?',
    ),
    /** Null: no copied contact has a value. */
    column: sql.value<[chunk: number, accountId: string, name: string], Buffer>(
      'SELECT data FROM segment_columns WHERE chunk = ? AND account_id = ? AND name = ?',
    ),
    /** Contacts from `first` to `last` that changed after they were copied. */
    changes: (first: number, last: number): ContactChange[] => changes.all(first, last),
    /** Contacts of an account from `first` to `last`, ascending. */
    contacts: ofAccount,
    /** Contacts of all accounts in a chunk, with what else a filter tests. */
    sources: (chunk: number) => {
      const range = [chunk * CHUNK_SIZE, (chunk + 1) * CHUNK_SIZE - 1] as const;
      return {
        contacts: all(...range),
        memberships: memberships(...range),
        engagement: engagement(...range),
      };
    },
    /** Chunks that exist: those with numbers up to this one. */
    lastChunk: (): number => chunkOf(newest()) ?? -1,
    /** Chunks that are copied, without those whose first copy is not stored yet. */
    copiedChunks: sql.values<[], number>(
      "SELECT chunk FROM segment_chunks WHERE account_id = '' AND copied IS NOT NULL ORDER BY chunk",
    ),
    /** Chunks with at least this number of changed contacts. */
    changedChunks: sql.values<[changes: number], number>(`
      SELECT contact_seq / ${CHUNK_SIZE} AS chunk FROM segment_changes GROUP BY chunk HAVING count(*) >= ?`),
    /** Number of contacts in a chunk. */
    size: (chunk: number): number => size(chunk * CHUNK_SIZE, (chunk + 1) * CHUNK_SIZE - 1),
    /** Notes the contacts of a chunk that change from now on: called before they are read for the first copy. */
    noteChanges: (chunk: number): void => noteChanges(chunk, NOTHING),
    /**
     * Replaces all copies of a chunk, which contain the changes up to `changes`. Does nothing when a contact of the chunk was
     * deleted since they were read.
     */
    replace: (chunk: number, copies: readonly ChunkCopy[], changes: readonly ContactChange[]): void => {
      if (!isNoted(chunk)) return;
      removeChunks(chunk);
      putChunk(chunk, '', NOTHING, NOTHING);
      const kept = new Map(copies.map((copy) => [copy.account_id, copy.columns]));
      for (const { account_id, name } of columnNames(chunk))
        if (kept.get(account_id)?.has(name) !== true) removeColumn(chunk, account_id, name);
      for (const { account_id, copied, others, columns } of copies) {
        putChunk(chunk, account_id, copied, others);
        for (const [name, data] of columns) putColumn(chunk, account_id, name, data);
      }
      for (const [contactSeq, n] of changes) removeChange(contactSeq, n);
    },
  };
}
