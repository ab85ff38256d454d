import type { Database } from './database/database.ts';
import { statements } from './database/statements.ts';
import { type NamedPageFilter, type Page, pageOf } from './rows/page.ts';

/** The content of an image. Two images of an account with the same content share it. */
export interface MediaContentRow {
  seq: number;
  account_id: string;
  /** SHA-256. */
  hash: Buffer;
  /** `storing`: its parts are being written. `deleting`: nothing refers to it, and its parts are being deleted. */
  state: 'storing' | 'stored' | 'deleting';
  type: string;
  width: number;
  height: number;
  /** 1: it is not animated. */
  frames: number;
  /** Bytes. */
  size: number;
}

/** An image of an account. */
export interface MediaRow {
  /** The page key. */
  seq: number;
  media_id: string;
  account_id: string;
  content_seq: number;
  /** Its public address ends with it. */
  link: string;
  name: string;
  /** '' for none. */
  alt: string;
  created_at: number;
  updated_at: number;
}

/** An image with what is known of its content. */
export type DescribedMedia = MediaRow &
  Pick<MediaContentRow, 'type' | 'width' | 'height' | 'frames' | 'size'> & {
    /** Differs for different contents, in hexadecimal digits. */
    digest: string;
  };

/** What uses an image. */
export interface MediaUse {
  kind: 'template' | 'campaign' | 'sequence';
  id: string;
  name: string;
}

/** Bytes of a part: a unit of work writes one. */
export const MEDIA_PART_BYTES = 256 * 1024;

/** `media`, `media_contents` and `media_parts`. Lists follow the index `media_by_account`. */
export function mediaTable(db: Database) {
  const sql = statements(db);
  const DESCRIBED = `
    SELECT m.*, c.type, c.width, c.height, c.frames, c.size, lower(hex(substr(c.hash, 1, 16))) AS digest
    FROM media m JOIN media_contents c ON c.seq = m.content_seq`;
  const list = sql.all<[string, number, string, number], DescribedMedia>(`
    ${DESCRIBED} WHERE m.account_id = ? AND m.seq < ? AND instr(lower(m.name), lower(?)) > 0
    ORDER BY m.seq DESC LIMIT +?`);
  const parts = sql.values<[number], Buffer>(`
    SELECT p.bytes FROM media_contents c JOIN media_parts p ON p.content_seq = c.seq
    WHERE c.seq = ? AND c.state = 'stored' ORDER BY p.n`);
  const setState = sql.run<[MediaContentRow['state'], number]>(
    'UPDATE media_contents SET state = ? WHERE seq = ?',
  );
  const uses = sql.all<[{ accountId: string; link: string; limit: number }], MediaUse>(`
    SELECT 'template' AS kind, template_id AS id, name FROM templates
    WHERE account_id = @accountId AND instr(html, @link) > 0
    UNION ALL
    SELECT 'campaign', campaign_id, name FROM campaigns c
    WHERE account_id = @accountId AND (instr(prepared, @link) > 0
      OR EXISTS (SELECT 1 FROM campaign_mails WHERE campaign_seq = c.seq AND instr(mail, @link) > 0))
    UNION ALL
    SELECT 'sequence', sequence_id, name FROM sequences s
    WHERE account_id = @accountId AND deleted_at IS NULL
      AND EXISTS (SELECT 1 FROM sequence_versions WHERE sequence_seq = s.seq AND instr(definition, @link) > 0)
    LIMIT +@limit`);
  return {
    /** Returns its seq. */
    insertContent: sql.insert<[row: Omit<MediaContentRow, 'seq'>]>(
      `INSERT INTO ${sql.row('media_contents')}`,
    ),
    insertPart: sql.run<[contentSeq: number, n: number, bytes: Buffer]>(
      'INSERT INTO media_parts (content_seq, n, bytes) VALUES (?, ?, ?)',
    ),
    setState: (contentSeq: number, state: MediaContentRow['state']): void => setState(state, contentSeq),
    /** The number of a content that is completely stored. */
    storedContent: sql.value<[accountId: string, hash: Buffer], number>(
      "SELECT seq FROM media_contents WHERE account_id = ? AND hash = ? AND state = 'stored'",
    ),
    /** Contents that are being stored or deleted, in the order of their numbers. */
    unfinished: sql.values<[state: 'storing' | 'deleting', limit: number], number>(`
      SELECT seq FROM media_contents WHERE state = ? AND state <> 'stored' ORDER BY seq LIMIT +?`),
    /** Removes parts of a content; returns how many. */
    removeParts: sql.changes<[contentSeq: number, limit: number]>(`
      DELETE FROM media_parts WHERE rowid IN (SELECT rowid FROM media_parts WHERE content_seq = ? LIMIT +?)`),
    removeContent: sql.run<[contentSeq: number]>('DELETE FROM media_contents WHERE seq = ?'),
    /** The bytes of a content; null: it is not stored completely. */
    body: (contentSeq: number): ArrayBuffer | null => {
      const pieces = parts(contentSeq);
      if (pieces.length === 0) return null;
      const bytes = Buffer.alloc(pieces.reduce((sum, piece) => sum + piece.length, 0));
      let at = 0;
      for (const piece of pieces) at += piece.copy(bytes, at);
      return bytes.buffer;
    },
    /** Returns its seq. */
    insert: sql.insert<[row: Omit<MediaRow, 'seq'>]>(`INSERT INTO ${sql.row('media')}`),
    get: sql.get<[accountId: string, mediaId: string], DescribedMedia>(
      `${DESCRIBED} WHERE m.account_id = ? AND m.media_id = ?`,
    ),
    byLink: sql.get<[link: string], DescribedMedia>(`${DESCRIBED} WHERE m.link = ?`),
    /** Writes the columns that an account may change. */
    update: sql.run<[row: Pick<MediaRow, 'seq' | 'name' | 'alt' | 'updated_at'>]>(
      'UPDATE media SET name = @name, alt = @alt, updated_at = @updated_at WHERE seq = @seq',
    ),
    remove: sql.run<[seq: number]>('DELETE FROM media WHERE seq = ?'),
    count: sql.count<[accountId: string]>('SELECT count(*) FROM media WHERE account_id = ?'),
    /** Images with a content. */
    countOfContent: sql.count<[contentSeq: number]>('SELECT count(*) FROM media WHERE content_seq = ?'),
    /** Newest first. */
    list: ({ accountId, beforeSeq, limit, search = '' }: NamedPageFilter): Page<DescribedMedia> =>
      pageOf(list(accountId, beforeSeq ?? Number.MAX_SAFE_INTEGER, search, limit + 1), limit),
    /** Templates, campaigns and sequences of the account that contain the link, at most `limit`. */
    uses: (accountId: string, link: string, limit: number): MediaUse[] => uses({ accountId, link, limit }),
  };
}
