import type { Database } from '../database/database.ts';
import { statements } from '../database/statements.ts';

/** What the last check of a domain found for each of its records, as JSON. */
export function domainCheckTable(db: Database) {
  const sql = statements(db);
  return {
    put: sql.run<[domainId: string, results: string]>(`
      INSERT INTO domain_checks (domain_id, results) VALUES (?, ?)
      ON CONFLICT DO UPDATE SET results = excluded.results`),
    /** Null before the first check. */
    get: sql.value<[domainId: string], string>('SELECT results FROM domain_checks WHERE domain_id = ?'),
  };
}
