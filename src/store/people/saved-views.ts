import type { DataPolicy } from '../data-policy.ts';
import type { Database } from '../database/database.ts';
import { statements } from '../database/statements.ts';

/** Filters of a list of the console that a person saved under a name. */
export interface SavedViewRow {
  view_id: string;
  person_id: string;
  /** Null: of a list about the installation. */
  account_id: string | null;
  page: string;
  name: string;
  /** JSON: the filters, as parameters of the address of the page. */
  query: string;
  created_at: number;
}

export const SAVED_VIEW_POLICY = {
  table: 'saved_views',
  personal: ['person_id', 'name', 'query'],
  erasure: { stays: 'people save what they search for, not what is known about a contact' },
  retention: { until: 'the person or the account is deleted, or the person deletes it' },
} as const satisfies DataPolicy;

/** `saved_views`, deleted with their person or account; those of a person are read by the index `saved_views_by_person`. */
export function savedViewTable(db: Database) {
  const sql = statements(db);
  return {
    insert: sql.run<[row: SavedViewRow]>(`INSERT INTO ${sql.row('saved_views')}`),
    /** All of a person, oldest first. */
    ofPerson: sql.all<[personId: string, limit: number], SavedViewRow>(`
      SELECT * FROM saved_views INDEXED BY saved_views_by_person WHERE person_id = ? ORDER BY view_id LIMIT +?`),
    /** False: the person has no such view. */
    remove: sql.changed<[viewId: string, personId: string]>(
      'DELETE FROM saved_views WHERE view_id = ? AND person_id = ?',
    ),
  };
}
