import type { Database } from './database/database.ts';
import { statements } from './database/statements.ts';
import type { TemplateRow } from './templates.ts';

/** A content that a template had before a change. */
export interface TemplateVersionRow extends Pick<TemplateRow, 'name' | 'type' | 'subject' | 'html' | 'text'> {
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
    add: ({ seq, name, type, subject, html, text, updated_at }: TemplateRow): void => {
      const version = newest(seq) + 1;
      insert({ template_seq: seq, version, name, type, subject, html, text, saved_at: updated_at });
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
