import { iso } from '../core/clock.ts';
import { invalid, isRefusal, type Refusal, refuse } from '../core/refusal.ts';
import { withoutNulls } from '../core/without-nulls.ts';
import { COMPLIANCE_KINDS, type ComplianceKind, complianceTemplateProblems } from '../mail/compliance.ts';
import type { ComplianceTemplateFilter, ComplianceTemplateRow } from '../store/compliance-templates.ts';
import type { Context } from '../store/context.ts';
import type { Page } from '../store/rows/page.ts';
import type { MayAdd, Tables } from '../store/tables.ts';

/*
 * Templates of what the three compliance variables insert: that of the subscription group, else the default of the From
 * domain, else the default of the account, else the built-in one. Each type has at most one default for a domain and
 * one for the account: the last one that was made the default. Deleting a template removes it from its groups.
 */

/** The fields of a compliance template that a caller sets. */
export interface ComplianceFields {
  name: string;
  type: ComplianceKind;
  /** A-labels; null: for all From domains without a default. */
  domain: string | null;
  htmlContent: string;
}

/**
 * Keeps no state. Refuses an unknown template or that of another account (`TEMPLATE_NOT_FOUND`), content with an
 * unknown variable or without the required one (`VALIDATION_ERROR`), and what `mayAdd` refuses.
 */
export function createComplianceTemplates(
  { tables, reader, writer, clock, ids }: Pick<Context, 'tables' | 'reader' | 'writer' | 'clock' | 'ids'>,
  mayAdd: MayAdd,
) {
  /** In a unit of work: `row` replaces the default of its type and domain, if it is one. */
  function replaceDefault(tx: Tables, row: Omit<ComplianceTemplateRow, 'seq'>): void {
    if (row.is_default === 0) return;
    const before = tx.complianceTemplates.defaultOf(row.account_id, row.type, row.domain);
    if (before !== null && before.template_id !== row.template_id)
      tx.complianceTemplates.update({ ...before, is_default: 0, updated_at: clock.now() });
  }

  return {
    /** Newest first. */
    list: (filter: ComplianceTemplateFilter): Promise<Page<ComplianceTemplateRow>> =>
      reader.table(filter.accountId, 'complianceTemplates', 'list', filter),
    get: (accountId: string, templateId: string): ComplianceTemplateRow | Refusal =>
      findComplianceTemplate(tables, accountId, templateId),
    /** Without `isDefault` the template becomes the default when there is none. */
    create: async (
      accountId: string,
      { name, type, domain, htmlContent, isDefault }: ComplianceFields & { isDefault?: boolean },
    ): Promise<ComplianceTemplateRow | Refusal> =>
      contentRefusal(type, htmlContent) ??
      writer.run((tx): ComplianceTemplateRow | Refusal => {
        const refusal = mayAdd(tx, accountId);
        if (refusal !== null) return refusal;
        const now = clock.now();
        const chosen = isDefault ?? tx.complianceTemplates.defaultOf(accountId, type, domain) === null;
        const row = {
          template_id: ids.make('ctemplate'),
          account_id: accountId,
          name,
          type,
          domain,
          is_default: chosen ? (1 as const) : (0 as const),
          html_content: htmlContent,
          created_at: now,
          updated_at: now,
        };
        replaceDefault(tx, row);
        return { ...row, seq: tx.complianceTemplates.insert(row) };
      }, accountId),
    /** A default that gets another type or domain becomes the default there. */
    update: (
      accountId: string,
      templateId: string,
      { htmlContent, isDefault, ...fields }: Partial<ComplianceFields> & { isDefault?: boolean },
    ): Promise<ComplianceTemplateRow | Refusal> =>
      writer.run((tx): ComplianceTemplateRow | Refusal => {
        const template = findComplianceTemplate(tx, accountId, templateId);
        if (isRefusal(template)) return template;
        const changed: ComplianceTemplateRow = {
          ...template,
          ...fields,
          html_content: htmlContent ?? template.html_content,
          is_default: (isDefault ?? template.is_default === 1) ? 1 : 0,
          updated_at: clock.now(),
        };
        const refusal = contentRefusal(changed.type, changed.html_content);
        if (refusal !== null) return refusal;
        replaceDefault(tx, changed);
        tx.complianceTemplates.update(changed);
        return changed;
      }, accountId),
    remove: (accountId: string, templateId: string): Promise<ComplianceTemplateRow | Refusal> =>
      writer.run((tx): ComplianceTemplateRow | Refusal => {
        const template = findComplianceTemplate(tx, accountId, templateId);
        if (isRefusal(template)) return template;
        tx.complianceTemplates.remove(template.seq);
        tx.subscriptionGroups.clearTemplate(accountId, templateId);
        return template;
      }, accountId),
  };
}

export type ComplianceTemplates = ReturnType<typeof createComplianceTemplates>;

function findComplianceTemplate(
  tables: Tables,
  accountId: string,
  templateId: string,
): ComplianceTemplateRow | Refusal {
  return (
    tables.complianceTemplates.get(accountId, templateId) ??
    refuse('TEMPLATE_NOT_FOUND', `There is no compliance template ${templateId}`)
  );
}

function contentRefusal(type: ComplianceKind, htmlContent: string): Refusal | null {
  const problems = complianceTemplateProblems(type, htmlContent);
  if (problems.length === 0) return null;
  const details = problems.map((message) => ({ field: 'htmlContent', message }));
  return refuse('VALIDATION_ERROR', `htmlContent: ${problems.join('; ')}`, { details });
}

/** The templates that a request names for a subscription group; null: none. */
export type GroupTemplates = Partial<
  Record<'unsubscribeTemplateId' | 'reportAbuseTemplateId' | 'companyAddressTemplateId', string | null>
>;

const GROUP_FIELDS = {
  unsubscribe: 'unsubscribeTemplateId',
  report_abuse: 'reportAbuseTemplateId',
  company_address: 'companyAddressTemplateId',
} as const satisfies Record<ComplianceKind, keyof GroupTemplates>;

/** Refuses templates that the account does not have, or that have another type than the field requires. */
export function groupTemplatesRefusal(
  templates: Pick<ComplianceTemplates, 'get'>,
  accountId: string,
  named: GroupTemplates,
): Refusal | null {
  for (const type of COMPLIANCE_KINDS) {
    const field = GROUP_FIELDS[type];
    const templateId = named[field] ?? null;
    if (templateId === null) continue;
    const template = templates.get(accountId, templateId);
    if (isRefusal(template))
      return refuse(template.code, template.message, { details: [{ field, message: template.message }] });
    if (template.type !== type)
      return invalid(field, `${templateId} is a template of type ${template.type}; type ${type} is required`);
  }
  return null;
}

/** The account's templates for mail from this domain and to this group; the other types have the default one (footer.ts). */
export function ownComplianceTemplates(
  tables: Tables,
  accountId: string,
  mail: { fromDomain: string; groupId: string | null },
): Partial<Record<ComplianceKind, string>> {
  const texts: Partial<Record<ComplianceKind, string>> = {};
  const defaults = tables.complianceTemplates.defaultsFor(accountId, mail.fromDomain);
  for (const { type, domain, html_content } of defaults) {
    if (domain !== null || texts[type] === undefined) texts[type] = html_content;
  }
  const group = mail.groupId === null ? null : tables.subscriptionGroups.get(accountId, mail.groupId);
  if (group === null) return texts;
  for (const type of COMPLIANCE_KINDS) {
    const templateId = group[`${type}_template_id`];
    const named = templateId === null ? null : tables.complianceTemplates.get(accountId, templateId);
    // The type of the template can have changed since the group was updated.
    if (named?.type === type) texts[type] = named.html_content;
  }
  return texts;
}

/** Without the account. */
export function presentComplianceTemplate(row: ComplianceTemplateRow) {
  return withoutNulls({
    templateId: row.template_id,
    name: row.name,
    type: row.type,
    domain: row.domain,
    isDefault: row.is_default === 1,
    // Templates cannot be deactivated: clients of the interface read whether one is used from either field.
    isActive: true as const,
    status: 'active' as const,
    htmlContent: row.html_content,
    createdAt: iso(row.created_at),
    updatedAt: iso(row.updated_at),
  });
}
