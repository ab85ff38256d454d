import type { DataPolicy } from '../data-policy.ts';
import type { Database } from '../database/database.ts';
import { statements } from '../database/statements.ts';
import { type BoundId, idNumbers } from '../rows/id-numbers.ts';
import type { ContentRow, NewContent } from './messages.ts';

/*
 * The part that the contents of many messages have in common (mail/shared-content.ts), in one row. A row never changes and
 * its id is never assigned again, so that it can be cached by id.
 */

/** Identifies a shared content. */
export interface SharedContentKey {
  /** `TEMPLATED` for messages with the same template. */
  campaignSeq: number;
  /**
   * SHA-256 of the body: a campaign gets another row when the common part of its messages changes while it is sent. For
   * messages with the same template it includes their account.
   */
  digest: Uint8Array;
  /** The account whose bytes are counted; undefined: they are not. */
  accountId?: string;
}

/** No campaign has this number. */
const TEMPLATED = 0;

/**
 * Recipients are in the contents that refer to a shared one. HTML that its sender rendered and sent several times is shared, too:
 * an erasure that removes its last content removes it (`erasures.removeContent`).
 */
export const SHARED_CONTENT_POLICY = {
  table: 'shared_contents',
  personal: [],
  retention: { kind: 'sharedBodies', rows: 'shared contents', period: 'bodies' },
} as const satisfies DataPolicy;

/**
 * `shared_contents`, unique by campaign and digest. Rows without copies are read by the index `shared_contents_unused`.
 */
export function sharedContentTable(db: Database) {
  const sql = statements(db);
  const find = db
    .prepare<[number, Uint8Array], number>(
      'SELECT shared_id FROM shared_contents WHERE campaign_seq = ? AND digest = ?',
    )
    .pluck();
  const insert = db.prepare<[number, Uint8Array, number, number, string | Uint8Array, BoundId | null]>(`
    INSERT INTO shared_contents (campaign_seq, digest, created_at, copies, size, body, account)
    VALUES (?, ?, ?, 0, ?, ?, ?)`);
  const { account } = idNumbers(db);
  const ownerOf = (accountId: string | undefined) =>
    accountId === undefined ? null : account.assign(accountId);
  const addCopies = sql.run<[number, number]>(
    'UPDATE shared_contents SET copies = copies + ? WHERE shared_id = ?',
  );
  const refer = db
    .prepare<[number, Uint8Array], number>(
      'UPDATE shared_contents SET copies = copies + 1 WHERE campaign_seq = ? AND digest = ? RETURNING shared_id',
    )
    .pluck();
  return {
    /** Returns the id of the row with this key, which is inserted if it does not exist. */
    findOrInsert: (
      { campaignSeq, digest, accountId }: SharedContentKey,
      { body, size }: NewContent,
      at: number,
    ): number =>
      find.get(campaignSeq, digest) ??
      Number(insert.run(campaignSeq, digest, at, size, body, ownerOf(accountId)).lastInsertRowid),
    /** Adds to the number of contents that refer to this row; a trigger subtracts deleted ones. */
    addCopies: (sharedId: number, count: number): void => addCopies(count, sharedId),
    /** Adds a content that refers to the row of a template, which is inserted if it does not exist; returns its id. */
    referToTemplated: (
      { digest, accountId }: Omit<SharedContentKey, 'campaignSeq'>,
      { body, size }: NewContent,
      at: number,
    ): number => {
      const known = refer.get(TEMPLATED, digest);
      if (known !== undefined) return known;
      const { lastInsertRowid } = insert.run(TEMPLATED, digest, at, size, body, ownerOf(accountId));
      addCopies(1, Number(lastInsertRowid));
      return Number(lastInsertRowid);
    },
    get: sql.get<[sharedId: number], Omit<ContentRow, 'bytes' | 'shared_id'> & { bytes: Buffer }>(`
      SELECT CAST(body AS BLOB) AS bytes, iif(typeof(body) = 'blob', 'deflate', 'json') AS encoding, size
      FROM shared_contents WHERE shared_id = ?`),
    /** Deletes rows that no content refers to; returns how many, at most `limit`. */
    purge: sql.changes<[createdBefore: number, limit: number]>(`
      DELETE FROM shared_contents WHERE shared_id IN (
        SELECT shared_id FROM shared_contents WHERE copies = 0 AND created_at < ? LIMIT +?)`),
  };
}
