import type { Database } from '../database/database.ts';
import { statements } from '../database/statements.ts';
import { type NamedPageFilter, type Page, pageOf } from '../rows/page.ts';

export interface SegmentRow {
  /** The page key. */
  seq: number;
  segment_id: string;
  account_id: string;
  /** Unique in the account. */
  name: string;
  /** JSON of the audience module. */
  filter: string;
  created_at: number;
  updated_at: number;
}

/** `segments`, of which pages follow the index `segments_by_account`. */
export function segmentTable(db: Database) {
  const sql = statements(db);
  const list = sql.all<[string, number, string, number], SegmentRow>(`
    SELECT * FROM segments WHERE account_id = ? AND seq < ? AND instr(lower(name), lower(?)) > 0
    ORDER BY seq DESC LIMIT +?`);
  return {
    /** Returns its seq. */
    insert: sql.insert<[row: Omit<SegmentRow, 'seq'>]>(`INSERT INTO ${sql.row('segments')}`),
    update: sql.run<[row: SegmentRow]>(
      'UPDATE segments SET name = @name, filter = @filter, updated_at = @updated_at WHERE seq = @seq',
    ),
    get: sql.get<[accountId: string, segmentId: string], SegmentRow>(
      'SELECT * FROM segments WHERE account_id = ? AND segment_id = ?',
    ),
    byName: sql.get<[accountId: string, name: string], SegmentRow>(
      'SELECT * FROM segments WHERE account_id = ? AND name = ?',
    ),
    count: sql.count<[accountId: string]>('SELECT count(*) FROM segments WHERE account_id = ?'),
    /** Newest first. */
    list: ({ accountId, beforeSeq, limit, search = '' }: NamedPageFilter): Page<SegmentRow> =>
      pageOf(list(accountId, beforeSeq ?? Number.MAX_SAFE_INTEGER, search, limit + 1), limit),
    remove: sql.run<[seq: number]>('DELETE FROM segments WHERE seq = ?'),
  };
}
