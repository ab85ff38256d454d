import { cachedLookup } from './cached-rows.ts';
import { type Database, preparedByText } from './database/database.ts';
import { columnsSet, statements } from './database/statements.ts';
import { type Page, type PageFilter, pageOf } from './rows/page.ts';

/* Texts that an account sets for the compliance variables. Each type has at most one default for a domain. */

export type ComplianceType = 'unsubscribe' | 'report_abuse' | 'company_address';

export interface ComplianceTemplateRow {
  /** The page key. */
  seq: number;
  template_id: string;
  account_id: string;
  name: string;
  type: ComplianceType;
  /** A-labels; null: for every From domain that has no default. */
  domain: string | null;
  is_default: 0 | 1;
  html_content: string;
  created_at: number;
  updated_at: number;
}

export interface ComplianceTemplateFilter extends PageFilter {
  type?: ComplianceType;
  domain?: string;
}

type DefaultTemplate = Pick<ComplianceTemplateRow, 'type' | 'domain' | 'html_content'>;

/**
 * `compliance_templates`; `defaultsFor` is cached until a write. The unique index `compliance_templates_default` makes
 * a write throw that would create a second default of a type and domain.
 */
export function complianceTemplateTable(db: Database) {
  const sql = statements(db);
  // Uses the expression of the index compliance_templates_default.
  const defaultOf = sql.get<[string, string, string], ComplianceTemplateRow>(`
    SELECT * FROM compliance_templates WHERE account_id = ? AND type = ? AND coalesce(domain, '') = ? AND is_default = 1`);
  const defaultsFor = sql.all<[string, string], DefaultTemplate>(`
    SELECT type, domain, html_content FROM compliance_templates
    WHERE account_id = ? AND is_default = 1 AND coalesce(domain, '') IN ('', ?)`);
  const defaultsOf = cachedLookup(db, (accountId: string, domain: string) => defaultsFor(accountId, domain));
  const listed = preparedByText<ComplianceTemplateFilter, ComplianceTemplateRow>(db);
  return {
    /** Returns its seq. */
    insert: sql.insert<[row: Omit<ComplianceTemplateRow, 'seq'>]>(
      `INSERT INTO ${sql.row('compliance_templates')}`,
    ),
    update: sql.run<[row: ComplianceTemplateRow]>(`
      UPDATE compliance_templates SET ${columnsSet('name, type, domain, is_default, html_content, updated_at')}
      WHERE seq = @seq`),
    get: sql.get<[accountId: string, templateId: string], ComplianceTemplateRow>(
      'SELECT * FROM compliance_templates WHERE account_id = ? AND template_id = ?',
    ),
    /** Newest first. */
    list: (filter: ComplianceTemplateFilter): Page<ComplianceTemplateRow> => {
      const where = ['account_id = @accountId'];
      if (filter.beforeSeq !== null) where.push('seq < @beforeSeq');
      if (filter.type !== undefined) where.push('type = @type');
      if (filter.domain !== undefined) where.push('domain = @domain');
      const rows = listed(
        `SELECT * FROM compliance_templates WHERE ${where.join(' AND ')} ORDER BY seq DESC LIMIT +@limit + 1`,
      ).all(filter);
      return pageOf(rows, filter.limit);
    },
    /** The default of exactly this type and domain; a null domain is not a wildcard. */
    defaultOf: (
      accountId: string,
      type: ComplianceType,
      domain: string | null,
    ): ComplianceTemplateRow | null => defaultOf(accountId, type, domain ?? ''),
    /** The defaults of a From domain and those for every domain of the account. */
    defaultsFor: (accountId: string, domain: string): readonly DefaultTemplate[] =>
      defaultsOf(accountId, domain),
    remove: sql.run<[seq: number]>('DELETE FROM compliance_templates WHERE seq = ?'),
  };
}
