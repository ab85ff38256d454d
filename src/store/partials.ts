import type { Database } from './database/database.ts';
import { statements } from './database/statements.ts';
import { type NamedPageFilter, type Page, pageOf } from './rows/page.ts';

export interface PartialRow {
  /** The page key. */
  seq: number;
  partial_id: string;
  account_id: string;
  /** Unique in the account. */
  name: string;
  html: string;
  created_at: number;
  updated_at: number;
}

/** A partial in a list. */
export type PartialHead = Omit<PartialRow, 'html'> & { bytes: number };

/** What can use a partial: it has the name of the partial somewhere in its html. */
export interface PartialUser {
  kind: 'template' | 'sequence' | 'partial';
  id: string;
  name: string;
  html: string;
}

interface UsersFilter {
  accountId: string;
  name: string;
  skip: number;
  limit: number;
}

/** `partials`, of which pages follow the index `partials_by_account`. */
export function partialTable(db: Database) {
  const sql = statements(db);
  const list = sql.all<[string, number, string, number], PartialHead>(`
    SELECT seq, partial_id, account_id, name, octet_length(html) AS bytes, created_at, updated_at FROM partials
    WHERE account_id = ? AND seq < ? AND instr(lower(name), lower(?)) > 0
    ORDER BY seq DESC LIMIT +?`);
  const users = sql.all<[UsersFilter], PartialUser>(`
    SELECT 'template' AS kind, template_id AS id, name, html FROM templates
    WHERE account_id = @accountId AND syntax = 'liquid' AND instr(html, @name) > 0
    UNION ALL
    SELECT 'partial', partial_id, name, html FROM partials WHERE account_id = @accountId AND instr(html, @name) > 0
    UNION ALL
    SELECT 'sequence', s.sequence_id, s.name, step.value ->> '$.send.html'
    FROM sequences s CROSS JOIN sequence_versions v ON v.sequence_seq = s.seq, json_each(v.definition, '$.steps') step
    WHERE s.account_id = @accountId AND s.status <> 'draft' AND s.deleted_at IS NULL
      AND step.value ->> '$.send.syntax' = 'liquid' AND instr(step.value ->> '$.send.html', @name) > 0
    LIMIT +@limit OFFSET +@skip`);
  return {
    /** Returns its seq. */
    insert: sql.insert<[row: Omit<PartialRow, 'seq'>]>(`INSERT INTO ${sql.row('partials')}`),
    update: sql.run<[row: PartialRow]>(
      'UPDATE partials SET name = @name, html = @html, updated_at = @updated_at WHERE seq = @seq',
    ),
    get: sql.get<[accountId: string, partialId: string], PartialRow>(
      'SELECT * FROM partials WHERE account_id = ? AND partial_id = ?',
    ),
    byName: sql.get<[accountId: string, name: string], PartialRow>(
      'SELECT * FROM partials WHERE account_id = ? AND name = ?',
    ),
    count: sql.count<[accountId: string]>('SELECT count(*) FROM partials WHERE account_id = ?'),
    /** Newest first. */
    list: ({ accountId, beforeSeq, limit, search = '' }: NamedPageFilter): Page<PartialHead> =>
      pageOf(list(accountId, beforeSeq ?? Number.MAX_SAFE_INTEGER, search, limit + 1), limit),
    /** In a fixed order while nothing changes. */
    users,
    remove: sql.run<[seq: number]>('DELETE FROM partials WHERE seq = ?'),
  };
}
