import type { Database } from './database/database.ts';
import { columnsSet, statements } from './database/statements.ts';
import type { NamedPageFilter, Page } from './rows/page.ts';

/* Templates of messages. A lookup by account never returns a template of another account. */

export type TemplateType = 'transactional' | 'marketing';

/** How variables are written: `{{name}}`, or Liquid. */
export type TemplateLanguage = 'simple' | 'liquid';

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
  /** What the html is made from, as JSON (mail/blocks/design.ts); null: the html is written by hand. */
  design: string | null;
  /** Of subject, html and text. */
  syntax: TemplateLanguage;
  /** What the html was compiled from; null: there is no MJML. */
  mjml: string | null;
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
  const sql = statements(db);
  const newestBefore = db.prepare<[string, number, string], TemplateRow>(`
    SELECT * FROM templates WHERE account_id = ? AND seq < ? AND instr(lower(name), lower(?)) > 0
    ORDER BY seq DESC LIMIT 1`);
  return {
    /** Returns its seq. */
    insert: sql.insert<[row: Omit<TemplateRow, 'seq'>]>(`INSERT INTO ${sql.row('templates')}`),
    update: sql.run<[row: TemplateRow]>(`
      UPDATE templates SET ${columnsSet('name, type, subject, html, text, variables, design, syntax, mjml, updated_at')}
      WHERE seq = @seq`),
    get: sql.get<[accountId: string, templateId: string], TemplateRow>(
      'SELECT * FROM templates WHERE account_id = ? AND template_id = ?',
    ),
    /** Ids of templates with exactly this name, two at most. */
    idsByName: sql.all<[accountId: string, name: string], Pick<TemplateRow, 'template_id'>>(
      'SELECT template_id FROM templates WHERE account_id = ? AND name = ? LIMIT 2',
    ),
    /** Newest first. A page ends after `limit` rows or MAX_PAGE_CHARS characters, whichever comes first. */
    list: ({ accountId, beforeSeq, limit, search = '' }: NamedPageFilter): Page<TemplateRow> => {
      const rows: TemplateRow[] = [];
      let chars = 0;
      let row = newestBefore.get(accountId, beforeSeq ?? Number.MAX_SAFE_INTEGER, search);
      while (row !== undefined) {
        if (rows.length >= limit || chars >= MAX_PAGE_CHARS) return { rows, more: true };
        rows.push(row);
        chars +=
          row.html.length + (row.text?.length ?? 0) + (row.design?.length ?? 0) + (row.mjml?.length ?? 0);
        row = newestBefore.get(accountId, row.seq, search);
      }
      return { rows, more: false };
    },
    remove: sql.run<[seq: number]>('DELETE FROM templates WHERE seq = ?'),
  };
}

/** A content that a template had before a change. */
export interface TemplateVersionRow
  extends Pick<TemplateRow, 'name' | 'type' | 'subject' | 'html' | 'text' | 'design' | 'syntax' | 'mjml'> {
  template_seq: number;
  /** Version number: from 1, rising. */
  version: number;
  /** When it became the content of the template. */
  saved_at: number;
}

export type TemplateVersionHead = Pick<TemplateVersionRow, 'version' | 'name' | 'subject' | 'saved_at'>;

/** Versions of a template that are kept, the newest. */
export const MAX_VERSIONS = 10;

/** `template_versions`, by template and version number, deleted with the template. */
export function templateVersionTable(db: Database) {
  const sql = statements(db);
  const newest = sql.count<[number]>(
    'SELECT version FROM template_versions WHERE template_seq = ? ORDER BY version DESC LIMIT 1',
  );
  const insert = sql.run<[TemplateVersionRow]>(`INSERT INTO ${sql.row('template_versions')}`);
  const drop = sql.run<[number, number]>(
    'DELETE FROM template_versions WHERE template_seq = ? AND version <= ?',
  );
  return {
    /** Keeps the content of a template before a change; drops the oldest version above MAX_VERSIONS. */
    add: ({ seq, name, type, subject, html, text, design, syntax, mjml, updated_at }: TemplateRow): void => {
      const version = newest(seq) + 1;
      const content = { name, type, subject, html, text, design, syntax, mjml };
      insert({ template_seq: seq, version, ...content, saved_at: updated_at });
      drop(seq, version - MAX_VERSIONS);
    },
    /** Newest first. */
    list: sql.all<[templateSeq: number], TemplateVersionHead>(`
      SELECT version, name, subject, saved_at FROM template_versions
      WHERE template_seq = ? ORDER BY version DESC LIMIT ${MAX_VERSIONS}`),
    get: sql.get<[templateSeq: number, version: number], TemplateVersionRow>(
      'SELECT * FROM template_versions WHERE template_seq = ? AND version = ?',
    ),
  };
}
