import type { Database } from '../database/database.ts';

/** What the last check of a domain found for each of its records, as JSON. */
export function domainCheckTable(db: Database) {
  const put = db.prepare<[string, string]>(`
    INSERT INTO domain_checks (domain_id, results) VALUES (?, ?)
    ON CONFLICT DO UPDATE SET results = excluded.results`);
  const get = db.prepare<[string], string>('SELECT results FROM domain_checks WHERE domain_id = ?').pluck();
  return {
    put: (domainId: string, results: string): void => {
      put.run(domainId, results);
    },
    /** Null before the first check. */
    get: (domainId: string): string | null => get.get(domainId) ?? null,
  };
}
