import { type Clock, iso } from '../core/clock.ts';
import type { Ids } from '../core/ids.ts';
import { invalid, isRefusal, type Refusal, refuse } from '../core/refusal.ts';
import { missingCompliance, missingInText } from '../mail/compliance.ts';
import { parseTemplate } from '../mail/template.ts';
import { createLocalReader, type Reader } from '../store/readers/reads.ts';
import type { Page, PageFilter } from '../store/rows/page.ts';
import type { MayAdd, Tables } from '../store/tables.ts';
import type { TemplateRow, TemplateType } from '../store/templates.ts';
import type { Writer } from '../store/writer.ts';

/**
 * Templates: mails that are kept here and named by a send. What they hold has been checked for its form; what
 * it lacks for a send (compliance, variables) is refused there, and only warned of here.
 */
export interface TemplateFields {
  name: string;
  /** Null: for both streams. */
  type: TemplateType | null;
  /** Null: every send gives its own. */
  subject: string | null;
  /** '' when its mail is text only. */
  html: string;
  /** Null: derived from the html. */
  text: string | null;
}

export interface Templates {
  /** Newest first. */
  list(filter: PageFilter): Promise<Page<TemplateRow>>;
  get(accountId: string, templateId: string): TemplateRow | Refusal;
  /** Refuses one more than the account may have (`LIMIT_REACHED`). */
  create(accountId: string, fields: TemplateFields): Promise<TemplateRow | Refusal>;
  /** Changes the fields that are given. */
  update(
    accountId: string,
    templateId: string,
    fields: Partial<TemplateFields>,
  ): Promise<TemplateRow | Refusal>;
  remove(accountId: string, templateId: string): Promise<TemplateRow | Refusal>;
}

export function createTemplates(house: {
  tables: Tables;
  /** Where lists are read; default: this thread. */
  reader?: Reader;
  writer: Writer;
  clock: Clock;
  ids: Ids;
  /** The limit on the number of an account's templates. */
  mayAdd: MayAdd;
}): Templates {
  const { tables, writer, clock, ids, mayAdd } = house;
  const reader = house.reader ?? createLocalReader(tables);
  return {
    list: (filter) => reader.table(filter.accountId, 'templates', 'list', filter),
    get: (accountId, templateId) => findTemplate(tables, accountId, templateId),
    create: (accountId, fields) =>
      writer.run((all): TemplateRow | Refusal => {
        const full = mayAdd(all, accountId);
        if (full !== null) return full;
        const now = clock.now();
        const row = {
          ...fields,
          template_id: ids.make('template'),
          account_id: accountId,
          created_at: now,
          updated_at: now,
        };
        return { ...row, seq: all.templates.insert(row) };
      }),
    update: (accountId, templateId, fields) =>
      writer.run((all): TemplateRow | Refusal => {
        const template = findTemplate(all, accountId, templateId);
        if (isRefusal(template)) return template;
        const changed = { ...template, ...fields, updated_at: clock.now() };
        const empty = contentFault(changed);
        if (empty !== null) return empty;
        all.templates.update(changed);
        return changed;
      }),
    remove: (accountId, templateId) =>
      writer.run((all): TemplateRow | Refusal => {
        const template = findTemplate(all, accountId, templateId);
        if (!isRefusal(template)) all.templates.remove(template.seq);
        return template;
      }),
  };
}

/** A template is of html, of text, or of both. */
export function contentFault({ html, text }: Pick<TemplateFields, 'html' | 'text'>): Refusal | null {
  return html === '' && (text === null || text === '')
    ? invalid('html', 'is required, unless text is given')
    : null;
}

/** The same refusal for an unknown template and for another account's. */
export function findTemplate(tables: Tables, accountId: string, templateId: string): TemplateRow | Refusal {
  return (
    tables.templates.get(accountId, templateId) ??
    refuse('TEMPLATE_NOT_FOUND', `there is no template ${templateId}`)
  );
}

/** In words, what a send with this template would be refused for, and what looks like a slip. */
export function templateWarnings({ subject, html, text }: TemplateRow): string[] {
  const [part, lacking] =
    html === ''
      ? (['text', missingInText(parseTemplate(text ?? ''))] as const)
      : (['html', missingCompliance(html)] as const);
  const missing = lacking.map(
    (name) => `${part} does not show {{${name}}}: a send with this template will be refused`,
  );
  const slips = Object.entries({ subject, html, text }).flatMap(([field, source]) =>
    parseTemplate(source ?? '').leftovers.map(
      (leftover) => `${leftover} in ${field} is no variable and stays as it is`,
    ),
  );
  return [...missing, ...slips];
}

export interface ShownTemplate {
  templateId: string;
  name: string;
  type: TemplateType | null;
  subject: string | null;
  html: string;
  text: string | null;
  createdAt: string;
  updatedAt: string;
}

/** A template as callers see it. */
export function shownTemplate(row: TemplateRow): ShownTemplate {
  const { name, type, subject, html, text } = row;
  return {
    templateId: row.template_id,
    name,
    type,
    subject,
    html,
    text,
    createdAt: iso(row.created_at),
    updatedAt: iso(row.updated_at),
  };
}
