import { type Clock, iso } from '../core/clock.ts';
import type { Ids } from '../core/ids.ts';
import { invalid, isRefusal, type Refusal, refuse } from '../core/refusal.ts';
import { COMPLIANCE_KINDS, type ComplianceKind, complianceTemplateProblems } from '../mail/compliance.ts';
import type { ComplianceTemplateFilter, ComplianceTemplateRow } from '../store/compliance-templates.ts';
import { createLocalReader, type Reader } from '../store/readers/reads.ts';
import type { Page } from '../store/rows/page.ts';
import type { MayAdd, Tables } from '../store/tables.ts';
import type { Writer } from '../store/writer.ts';

/**
 * What the three compliance variables insert in an account's mail: what the subscription group names, else the
 * default of the From domain, else the account's default, else the built-in one. Of each type there is at most
 * one default for a domain (or for the account): the last one made so. A template that is deleted is named by
 * no group any more.
 */
export interface ComplianceFields {
  name: string;
  type: ComplianceKind;
  /** A-labels; null: for every From domain that has no default of its own. */
  domain: string | null;
  htmlContent: string;
}

export interface ComplianceTemplates {
  /** Newest first. */
  list(filter: ComplianceTemplateFilter): Promise<Page<ComplianceTemplateRow>>;
  get(accountId: string, templateId: string): ComplianceTemplateRow | Refusal;
  /** Where `isDefault` is not said, it becomes the default when there is none yet. */
  create(
    accountId: string,
    fields: ComplianceFields & { isDefault?: boolean },
  ): Promise<ComplianceTemplateRow | Refusal>;
  /** Changes the fields that are given. A default that moves to another type or domain is the default there. */
  update(
    accountId: string,
    templateId: string,
    fields: Partial<ComplianceFields> & { isDefault?: boolean },
  ): Promise<ComplianceTemplateRow | Refusal>;
  remove(accountId: string, templateId: string): Promise<ComplianceTemplateRow | Refusal>;
}

export function createComplianceTemplates(house: {
  tables: Tables;
  /** Where lists are read; default: this thread. */
  reader?: Reader;
  writer: Writer;
  clock: Clock;
  ids: Ids;
  /** The limit on the number of an account's templates, which these count as. */
  mayAdd: MayAdd;
}): ComplianceTemplates {
  const { tables, writer, clock, ids, mayAdd } = house;
  const reader = house.reader ?? createLocalReader(tables);

  /** In a unit of work: another template no longer is what this one becomes. */
  function displace(all: Tables, row: Omit<ComplianceTemplateRow, 'seq'>): void {
    if (row.is_default === 0) return;
    const before = all.complianceTemplates.defaultOf(row.account_id, row.type, row.domain);
    if (before !== null && before.template_id !== row.template_id)
      all.complianceTemplates.update({ ...before, is_default: 0, updated_at: clock.now() });
  }

  return {
    list: (filter) => reader.table(filter.accountId, 'complianceTemplates', 'list', filter),
    get: (accountId, templateId) => findComplianceTemplate(tables, accountId, templateId),
    create: async (accountId, { name, type, domain, htmlContent, isDefault }) =>
      contentRefusal(type, htmlContent) ??
      writer.run((all): ComplianceTemplateRow | Refusal => {
        const full = mayAdd(all, accountId);
        if (full !== null) return full;
        const now = clock.now();
        const chosen = isDefault ?? all.complianceTemplates.defaultOf(accountId, type, domain) === null;
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
        displace(all, row);
        return { ...row, seq: all.complianceTemplates.insert(row) };
      }),
    update: (accountId, templateId, { htmlContent, isDefault, ...fields }) =>
      writer.run((all): ComplianceTemplateRow | Refusal => {
        const template = findComplianceTemplate(all, accountId, templateId);
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
        displace(all, changed);
        all.complianceTemplates.update(changed);
        return changed;
      }),
    remove: (accountId, templateId) =>
      writer.run((all): ComplianceTemplateRow | Refusal => {
        const template = findComplianceTemplate(all, accountId, templateId);
        if (isRefusal(template)) return template;
        all.complianceTemplates.remove(template.seq);
        all.subscriptionGroups.forgetTemplate(accountId, templateId);
        return template;
      }),
  };
}

function findComplianceTemplate(
  tables: Tables,
  accountId: string,
  templateId: string,
): ComplianceTemplateRow | Refusal {
  return (
    tables.complianceTemplates.get(accountId, templateId) ??
    refuse('TEMPLATE_NOT_FOUND', `there is no compliance template ${templateId}`)
  );
}

function contentRefusal(type: ComplianceKind, htmlContent: string): Refusal | null {
  const problems = complianceTemplateProblems(type, htmlContent);
  if (problems.length === 0) return null;
  const details = problems.map((message) => ({ field: 'htmlContent', message }));
  return refuse('VALIDATION_ERROR', `htmlContent: ${problems.join('; ')}`, { details });
}

/** The template ids that a subscription group has; each may be left out, or null for none. */
export type GroupTemplates = Partial<
  Record<'unsubscribeTemplateId' | 'reportAbuseTemplateId' | 'companyAddressTemplateId', string | null>
>;

const GROUP_FIELDS = {
  unsubscribe: 'unsubscribeTemplateId',
  report_abuse: 'reportAbuseTemplateId',
  company_address: 'companyAddressTemplateId',
} as const satisfies Record<ComplianceKind, keyof GroupTemplates>;

/** Whether a group may name these: templates of the account, each of the type that its field is for. */
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
      return invalid(field, `${templateId} is a template of type ${template.type}; one of ${type} is needed`);
  }
  return null;
}

/**
 * The account's own texts for mail from this domain, to this group where one is named; a type that is not here
 * has the built-in one.
 */
export function complianceTexts(
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
    // It may have become one of another type since.
    if (named?.type === type) texts[type] = named.html_content;
  }
  return texts;
}

export interface ShownComplianceTemplate {
  templateId: string;
  name: string;
  type: ComplianceKind;
  domain: string | null;
  isDefault: boolean;
  htmlContent: string;
  createdAt: string;
  updatedAt: string;
}

/** A compliance template as callers see it. */
export function shownComplianceTemplate(row: ComplianceTemplateRow): ShownComplianceTemplate {
  return {
    templateId: row.template_id,
    name: row.name,
    type: row.type,
    domain: row.domain,
    isDefault: row.is_default === 1,
    htmlContent: row.html_content,
    createdAt: iso(row.created_at),
    updatedAt: iso(row.updated_at),
  };
}
