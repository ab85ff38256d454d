import { usedBySequences } from '../audience/sequences/entries.ts';
import { iso } from '../core/clock.ts';
import { invalid, isRefusal, type Refusal, refuse } from '../core/refusal.ts';
import { withoutNulls } from '../core/without-nulls.ts';
import { DESIGN_AND_HTML, type Design } from '../mail/blocks/design.ts';
import { renderDesign } from '../mail/blocks/render.ts';
import { missingCompliance, missingInText } from '../mail/compliance.ts';
import type { ForeignSyntax } from '../mail/foreign-syntax.ts';
import type { LiquidPartials } from '../mail/liquid.ts';
import { isServiceVariable, parseTemplate, type Template, type TemplateSyntax } from '../mail/template.ts';
import type { Context } from '../store/context.ts';
import type { Stream } from '../store/domains/domains.ts';
import type { NamedPageFilter, Page } from '../store/rows/page.ts';
import type { MayAdd, Tables } from '../store/tables.ts';
import type {
  TemplateLanguage,
  TemplateRow,
  TemplateType,
  TemplateVersionHead,
  TemplateVersionRow,
} from '../store/templates.ts';
import { compileMjml, readLiquid, type TemplateContent } from './liquid.ts';
import { withPartials } from './partials.ts';

export type { TemplateContent };

import type { TemplateThreads } from './thread/threads.ts';

/*
 * Stored templates that a send can name. A template that lacks compliance variables causes a warning here and a refusal
 * when it is sent.
 *
 * The html of a template with a design is made from it when either is stored; a later version of the renderer does not change
 * stored html.
 */

/** A variable that the client of a template declares: its name, or the name with its type. */
export type TemplateVariable =
  | string
  | { name: string; type?: string | undefined; required?: boolean | undefined };

/** The fields of a template that a caller sets. */
export interface TemplateFields {
  name: string;
  /** Null: for both streams. */
  type: TemplateType | null;
  /** Null: each send contains one. */
  subject: string | null;
  /** '' when the message is text only. Undefined: made from the design. */
  html?: string | undefined;
  /** Null: derived from the html. */
  text: string | null;
  /** Null: the html is written by hand. */
  design: Design | null;
  /** Default: simple. */
  syntax?: TemplateLanguage | undefined;
  /** The html is compiled from it; null: there is no MJML. */
  mjml?: string | null | undefined;
  /** Returned as they were given; a send reads the variables of the content. */
  variables: TemplateVariable[];
}

/** The fields whose changes make a version. */
const CONTENT = [
  'name',
  'type',
  'subject',
  'html',
  'text',
  'design',
  'syntax',
  'mjml',
] as const satisfies (keyof TemplateFields)[];

/**
 * Keeps no state. `create` and `update` refuse a template with neither html nor text (`VALIDATION_ERROR`); an update
 * that changes the content stores the previous one as a version, in the same unit of work.
 */
export function createTemplates(
  { tables, reader, writer, clock, ids }: Pick<Context, 'tables' | 'reader' | 'writer' | 'clock' | 'ids'>,
  mayAdd: MayAdd,
  threads: TemplateThreads,
) {
  /** Compiles MJML; undefined: there is none to compile. */
  async function compiled(
    accountId: string,
    { mjml, design }: Pick<Partial<TemplateFields>, 'mjml' | 'design'>,
  ): Promise<string | undefined | Refusal> {
    if (mjml === undefined || mjml === null) return undefined;
    if (design) return invalid('mjml', 'cannot be given together with design');
    return compileMjml(threads, accountId, mjml);
  }

  /** Refuses content in Liquid that is not valid; else returns the partials that it uses. */
  async function checkLiquid(
    accountId: string,
    { syntax, subject, html, text }: Pick<TemplateRow, 'syntax' | 'subject' | 'html' | 'text'>,
  ): Promise<LiquidPartials | Refusal> {
    if (syntax !== 'liquid') return {};
    const content = withPartials(tables, accountId, { subject: subject ?? '', html, text, liquid: {} });
    if (isRefusal(content)) return content;
    const read = await readLiquid(threads, accountId, content);
    return isRefusal(read) ? read : content.liquid;
  }

  return {
    /** Newest first. */
    list: (filter: NamedPageFilter): Promise<Page<TemplateRow>> =>
      reader.table(filter.accountId, 'templates', 'list', filter),
    get: (accountId: string, templateId: string): TemplateRow | Refusal =>
      findTemplate(tables, accountId, templateId),
    /** Refused with `LIMIT_REACHED` above the limit of the account. */
    create: async (accountId: string, fields: TemplateFields): Promise<StoredTemplate | Refusal> => {
      const { design, syntax = 'simple', mjml = null } = fields;
      const fromMjml = await compiled(accountId, fields);
      if (isRefusal(fromMjml)) return fromMjml;
      const made = design === null ? fromMjml : renderDesign(design);
      const html = made ?? fields.html ?? '';
      if (fields.html !== undefined && fields.html !== html)
        return invalid('html', mjml === null ? DESIGN_AND_HTML : MJML_AND_HTML);
      const storedDesign = design === null ? null : JSON.stringify(design);
      const fault = contentRefusal({ html, text: fields.text, syntax, design: storedDesign });
      if (fault !== null) return fault;
      const partials = await checkLiquid(accountId, { ...fields, syntax, html });
      if (isRefusal(partials)) return partials;
      return writer.run((tx): StoredTemplate | Refusal => {
        const refusal = mayAdd(tx, accountId);
        if (refusal !== null) return refusal;
        const now = clock.now();
        const row = {
          ...fields,
          html,
          design: storedDesign,
          syntax,
          mjml,
          variables: storedVariables(fields.variables),
          template_id: ids.make('template'),
          account_id: accountId,
          created_at: now,
          updated_at: now,
        };
        return { ...row, seq: tx.templates.insert(row), dropped: [], partials };
      }, accountId);
    },
    /** Other html without a design replaces the design, and other html replaces the MJML (`dropped`). */
    update: async (
      accountId: string,
      templateId: string,
      patch: Partial<TemplateFields>,
    ): Promise<StoredTemplate | Refusal> => {
      const before = findTemplate(tables, accountId, templateId);
      if (isRefusal(before)) return before;
      const { mjml, design = null } = patch;
      const fromMjml = await compiled(accountId, { mjml, design });
      if (isRefusal(fromMjml)) return fromMjml;
      const made = design === null ? fromMjml : renderDesign(design);
      const expected = changedTemplate(before, patch, made);
      if (isRefusal(expected)) return expected;
      // A template that changes meanwhile is checked again by each send.
      const partials = await checkLiquid(accountId, expected);
      if (isRefusal(partials)) return partials;
      return writer.run((tx): StoredTemplate | Refusal => {
        const template = findTemplate(tx, accountId, templateId);
        if (isRefusal(template)) return template;
        const changed = changedTemplate(template, patch, made);
        if (isRefusal(changed)) return changed;
        const { dropped, ...row } = { ...changed, updated_at: clock.now() };
        if (CONTENT.some((field) => row[field] !== template[field])) tx.templateVersions.add(template);
        tx.templates.update(row);
        return { ...row, dropped, partials };
      }, accountId);
    },
    remove: (accountId: string, templateId: string): Promise<TemplateRow | Refusal> =>
      writer.run((tx): TemplateRow | Refusal => {
        const template = findTemplate(tx, accountId, templateId);
        if (isRefusal(template)) return template;
        const using = tx.sequences.usingTemplate(accountId, templateId);
        const used = usedBySequences(`Template ${template.name}`, using);
        if (used !== null) return used;
        tx.templates.remove(template.seq);
        return template;
      }, accountId),
    /** What the template was before its last changes, newest first. */
    versions: (accountId: string, templateId: string): TemplateVersionHead[] | Refusal => {
      const template = findTemplate(tables, accountId, templateId);
      return isRefusal(template) ? template : tables.templateVersions.list(template.seq);
    },
    version: (accountId: string, templateId: string, version: number): TemplateVersionRow | Refusal => {
      const template = findTemplate(tables, accountId, templateId);
      if (isRefusal(template)) return template;
      return (
        tables.templateVersions.get(template.seq, version) ??
        refuse('TEMPLATE_NOT_FOUND', `The template ${templateId} has no version ${version}`)
      );
    },
  };
}

/** A template with changed fields. */
interface ChangedTemplate extends TemplateRow {
  /** What the template does not have any more, because its html was replaced. */
  dropped: ('design' | 'mjml')[];
}

export interface StoredTemplate extends ChangedTemplate {
  /** The partials that it uses. */
  partials: LiquidPartials;
}

/** A template with changed fields. `made`: the html of the design or the MJML of the patch; undefined: it has neither. */
function changedTemplate(
  template: TemplateRow,
  { variables, design, html, syntax, mjml, ...fields }: Partial<TemplateFields>,
  made: string | undefined,
): ChangedTemplate | Refusal {
  // A client that changes what it has read repeats the html.
  const isWritten = html !== undefined && html !== template.html && html !== made;
  if (isWritten && made !== undefined) return invalid('html', design ? DESIGN_AND_HTML : MJML_AND_HTML);
  const replacesDesign = isWritten || (made !== undefined && !design);
  const replacesMjml = isWritten || Boolean(design);
  const dropped: ChangedTemplate['dropped'] = [];
  if (design === undefined && replacesDesign && template.design !== null) dropped.push('design');
  if (mjml === undefined && replacesMjml && template.mjml !== null) dropped.push('mjml');
  const changed = {
    ...template,
    ...fields,
    html: made ?? html ?? template.html,
    design: design ? JSON.stringify(design) : design === null || replacesDesign ? null : template.design,
    syntax: syntax ?? template.syntax,
    mjml: mjml === undefined ? (replacesMjml ? null : template.mjml) : mjml,
    ...(variables === undefined ? {} : { variables: storedVariables(variables) }),
    dropped,
  };
  return contentRefusal(changed) ?? changed;
}

const LIQUID_AND_DESIGN = 'must be simple for a template with a design';
const MJML_AND_HTML = 'is compiled from the mjml: omit it';

export type Templates = ReturnType<typeof createTemplates>;

function storedVariables(variables: readonly TemplateVariable[]): string | null {
  return variables.length === 0 ? null : JSON.stringify(variables);
}

/** Refuses a template with neither html nor text, and a design in Liquid: the variables of designs are of the simple syntax. */
function contentRefusal({
  html,
  text,
  syntax,
  design,
}: Pick<TemplateRow, 'html' | 'text' | 'syntax' | 'design'>): Refusal | null {
  if (html === '' && (text === null || text === ''))
    return invalid('html', 'is required, unless text or design is given');
  return design !== null && syntax === 'liquid' ? invalid('syntax', LIQUID_AND_DESIGN) : null;
}

/**
 * Why a subject cannot be stored, as the rest of a sentence: it uses variables that insert links or blocks of html. Null:
 * it can.
 */
export function subjectTemplateFault(subject: string, syntax?: TemplateSyntax): string | null {
  const name = parseTemplate(subject, syntax).names.find(isServiceVariable);
  return name === undefined ? null : `must not contain {{${name}}}, which is for html and text only`;
}

/** Returns the same refusal for an unknown template and for one of another account. */
export function findTemplate(tables: Tables, accountId: string, templateId: string): TemplateRow | Refusal {
  return (
    tables.templates.get(accountId, templateId) ??
    refuse('TEMPLATE_NOT_FOUND', `There is no template ${templateId}`)
  );
}

/** Sentences about missing compliance variables, and about text that looks like a misspelled variable. */
export function templateWarnings({
  subject,
  html,
  text,
  syntax,
  dropped = [],
  partials = {},
}: TemplateRow & Partial<StoredTemplate>): string[] {
  const replaced = dropped.map(
    (field) => `the html was replaced, so the ${field} of the template is deleted; its versions have it`,
  );
  // Whether a send shows them is known when it is rendered.
  if (syntax === 'liquid') {
    const [field, source] = html === '' ? ['text', text ?? ''] : ['html', html];
    const sources = [source, ...Object.values(partials)];
    const lacking = (['company_address', 'unsubscribe'] as const).filter(
      (name) => !sources.some((one) => one.includes(name)),
    );
    return [
      ...replaced,
      ...lacking.map(
        (name) => `${field} does not use the variables ${name}…: a send with this template will be refused`,
      ),
    ];
  }
  const [part, names] =
    html === ''
      ? (['text', missingInText(parseTemplate(text ?? ''))] as const)
      : (['html', missingCompliance(html)] as const);
  const missing = names.map(
    (name) => `${part} does not show {{${name}}}: a send with this template will be refused`,
  );
  const leftovers = Object.entries({ subject, html, text }).flatMap(([field, source]) =>
    bracesWarnings(parseTemplate(source ?? ''), field),
  );
  return [...replaced, ...missing, ...leftovers];
}

/** Sentences about text in braces that is not a variable, and about the syntax of other template languages. */
export function bracesWarnings({ leftovers, foreign }: Template, field: string): string[] {
  return [
    ...foreign.map((found) => foreignSentence(found, field)),
    ...leftovers.map((leftover) => `${leftover} in ${field} is not a variable and is sent unchanged`),
  ];
}

/** What to write in place of the syntax of another template language. */
export function foreignSentence({ text, advice }: ForeignSyntax, field: string): string {
  return `${text} in ${field} is not a variable, but the syntax of another template language: ${advice}`;
}

/** Without the account and the versions, and without the fields that are null: see `TemplateFields`. */
export function presentTemplate(row: TemplateRow) {
  const { name, type, subject, html, text, variables } = row;
  const design = readDesign(row.design);
  return withoutNulls({
    templateId: row.template_id,
    name,
    type,
    subject,
    html,
    text,
    design,
    syntax: row.syntax,
    format: row.mjml === null ? ('html' as const) : ('mjml' as const),
    mjml: row.mjml,
    // Sound: they are validated before they are stored.
    variables: variables === null ? [] : (JSON.parse(variables) as TemplateVariable[]),
    createdAt: iso(row.created_at),
    updatedAt: iso(row.updated_at),
  });
}

/** Reads the stored form. */
export function readDesign(stored: string | null): Design | null {
  // Sound: it is validated before it is stored.
  return stored === null ? null : (JSON.parse(stored) as Design);
}

/** What a send is rendered from: content in the request, or a stored template. */
export type TemplateSource = TemplateContent | TemplateReference;

interface TemplateReference {
  templateId: string;
  /** Replaces the subject of the template; null: the template's is used. */
  subject: string | null;
}

const TYPE_OF_STREAM: Record<Stream, TemplateType> = { tx: 'transactional', mk: 'marketing' };

/**
 * Refuses a template that is unknown, is for the other stream, or has no subject where none is given. Content in Liquid has the
 * partials that it uses.
 */
export function resolveTemplate(
  tables: Tables,
  sender: { account: { account_id: string }; useCase: Stream },
  source: TemplateSource,
): TemplateContent | Refusal {
  const { account_id: accountId } = sender.account;
  if (!('templateId' in source)) return withPartials(tables, accountId, source);
  const template = findTemplate(tables, accountId, source.templateId);
  if (isRefusal(template)) return template;
  if (template.type !== null && template.type !== TYPE_OF_STREAM[sender.useCase]) {
    const message = `is a ${template.type} template; this is a ${TYPE_OF_STREAM[sender.useCase]} send`;
    return invalid('templateId', message);
  }
  const subject = source.subject ?? template.subject;
  if (subject === null) return invalid('subject', 'is required: the template has none');
  const content = { subject, html: template.html, text: template.text };
  return template.syntax === 'liquid' ? withPartials(tables, accountId, { ...content, liquid: {} }) : content;
}
