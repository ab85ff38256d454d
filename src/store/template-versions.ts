import type { Database } from './database/database.ts';
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
  const newest = db
    .prepare<[number], number>(
      'SELECT version FROM template_versions WHERE template_seq = ? ORDER BY version DESC LIMIT 1',
    )
    .pluck();
  const insert = db.prepare<TemplateVersionRow>(`
    INSERT INTO template_versions (template_seq, version, name, type, subject, html, text, saved_at)
    VALUES (@template_seq, @version, @name, @type, @subject, @html, @text, @saved_at)`);
  const drop = db.prepare<[number, number]>(
    'DELETE FROM template_versions WHERE template_seq = ? AND version <= ?',
  );
  const list = db.prepare<[number], TemplateVersionHead>(`
    SELECT version, name, subject, saved_at FROM template_versions
    WHERE template_seq = ? ORDER BY version DESC LIMIT ${MAX_VERSIONS}`);
  const get = db.prepare<[number, number], TemplateVersionRow>(
    'SELECT * FROM template_versions WHERE template_seq = ? AND version = ?',
  );
  return {
    /** Keeps the content of a template before a change; drops the oldest version above MAX_VERSIONS. */
    add: ({ seq, name, type, subject, html, text, updated_at }: TemplateRow): void => {
      const version = (newest.get(seq) ?? 0) + 1;
      insert.run({ template_seq: seq, version, name, type, subject, html, text, saved_at: updated_at });
      drop.run(seq, version - MAX_VERSIONS);
    },
    /** Newest first. */
    list: (templateSeq: number): TemplateVersionHead[] => list.all(templateSeq),
    get: (templateSeq: number, version: number): TemplateVersionRow | null =>
      get.get(templateSeq, version) ?? null,
  };
}
