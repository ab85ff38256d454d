import type { Database } from './database/database.ts';
import type { NamedPageFilter, Page } from './rows/page.ts';

/* Templates of messages. A lookup by account never returns a template of another account. */

export type TemplateType = 'transactional' | 'marketing';

export interface TemplateRow {
  /** The page key. */
  seq: number;
  template_id: string;
  account_id: string;
  name: string;
  /** Null: for both streams. */
  type: TemplateType | null;
  subject: string | null;
  html: string;
  text: string | null;
  /** The variables that the client declares, as JSON; null: none. */
  variables: string | null;
  created_at: number;
  updated_at: number;
}

/** A page ends after this many characters: templates are large, and a page is one response. */
const MAX_PAGE_CHARS = 4 * 1024 * 1024;

/**
 * `templates`. Pages follow the index `templates_by_account` and read row by row, so that a page of large templates
 * ends early.
 */
export function templateTable(db: Database) {
  const insert = db.prepare<Omit<TemplateRow, 'seq'>>(`
    INSERT INTO templates (template_id, account_id, name, type, subject, html, text, variables, created_at, updated_at)
    VALUES (
      @template_id, @account_id, @name, @type, @subject, @html, @text, @variables, @created_at, @updated_at
    )`);
  const update = db.prepare<TemplateRow>(`
    UPDATE templates SET name = @name, type = @type, subject = @subject, html = @html, text = @text, variables = @variables,
      updated_at = @updated_at
    WHERE seq = @seq`);
  const get = db.prepare<[string, string], TemplateRow>(
    'SELECT * FROM templates WHERE account_id = ? AND template_id = ?',
  );
  const newestBefore = db.prepare<[string, number, string], TemplateRow>(`
    SELECT * FROM templates WHERE account_id = ? AND seq < ? AND instr(lower(name), lower(?)) > 0
    ORDER BY seq DESC LIMIT 1`);
  const remove = db.prepare<[number]>('DELETE FROM templates WHERE seq = ?');
  return {
    /** Returns its seq. */
    insert: (row: Omit<TemplateRow, 'seq'>): number => Number(insert.run(row).lastInsertRowid),
    update: (row: TemplateRow): void => {
      update.run(row);
    },
    get: (accountId: string, templateId: string): TemplateRow | null =>
      get.get(accountId, templateId) ?? null,
    /** Newest first. A page ends after `limit` rows or MAX_PAGE_CHARS characters, whichever comes first. */
    list: ({ accountId, beforeSeq, limit, search = '' }: NamedPageFilter): Page<TemplateRow> => {
      const rows: TemplateRow[] = [];
      let chars = 0;
      let row = newestBefore.get(accountId, beforeSeq ?? Number.MAX_SAFE_INTEGER, search);
      while (row !== undefined) {
        if (rows.length >= limit || chars >= MAX_PAGE_CHARS) return { rows, more: true };
        rows.push(row);
        chars += row.html.length + (row.text?.length ?? 0);
        row = newestBefore.get(accountId, row.seq, search);
      }
      return { rows, more: false };
    },
    remove: (seq: number): void => {
      remove.run(seq);
    },
  };
}
