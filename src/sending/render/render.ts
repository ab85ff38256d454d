import { type Work, withoutPause } from '../../core/concurrency/slices.ts';
import {
  invalid,
  isRefusal,
  type Refusal,
  type RefusalDetail,
  refuse,
  shortened,
} from '../../core/refusal.ts';
import {
  type ComplianceVariables,
  complianceVariables,
  findHiddenInSteps,
  hidingVariable,
  isInLanguage,
  missingInText,
  type RequiredVariable,
  requiredVariables,
} from '../../mail/compliance.ts';
import type { MessageContent } from '../../mail/content.ts';
import {
  MAX_PROBLEMS,
  MAX_SLOTS,
  renderTemplateInSteps,
  type Template,
  type TemplateKind,
  type TemplateProblem,
} from '../../mail/template.ts';
import type { AccountRow, PostalAddress } from '../../store/accounts.ts';
import type { Tables } from '../../store/tables.ts';
import { complianceTexts } from '../../templates/footer.ts';
import {
  bracesWarnings,
  foreignSentence,
  subjectTemplateFault,
  type TemplateContent,
} from '../../templates/templates.ts';
import type { PackedShared } from '../encode.ts';
import { type ParsedSend, subjectRefusal } from '../request.ts';
import type { HtmlReader } from './html-reader.ts';

/*
 * Renders templates: checks compliance in the template, then inserts the variables. What differs between copies is a
 * mark (mail/content.ts).
 */

/** The rendered parts of a message. */
export interface Rendered extends Pick<MessageContent, 'subject' | 'html' | 'text'> {
  /** Size of `html` in UTF-8; without it, `html` must be read. */
  htmlBytes?: number;
  /** The texts as they are stored: those of a repeated template, and the values of this message. */
  shared?: PackedShared & { values: string[] };
}

/** Characters of a rendered part. */
export const MAX_RENDERED = 8 * 1024 * 1024;
const COMPANY_VARIABLES = ['company_address_html', 'company_address_text', 'company_address'];

/** The fields of a send that determine which compliance variables a template needs and what they insert. */
export type TemplateContext = Pick<ParsedSend, 'from' | 'fromDomain' | 'groupId' | 'essential'>;

export interface TemplatePart {
  field: 'subject' | 'html' | 'text';
  kind: TemplateKind;
  template: Template;
}

/** A parsed template with the values of the service's variables, for any number of copies. */
export interface PreparedTemplate {
  parts: TemplatePart[];
  service: ComplianceVariables;
  /** Compliance variables that the rendered HTML must show. */
  required: readonly RequiredVariable[];
  /** In place of parts, of a template in Liquid: the variables of the service that it inserts. */
  inserted?: readonly string[];
}

/** Parses a template and checks compliance, and the company address where it is used. */
export function prepareTemplate(
  tables: Tables,
  account: AccountRow,
  send: TemplateContext,
  content: TemplateContent,
  htmlReader: HtmlReader,
): PreparedTemplate | Refusal {
  return withoutPause(prepareTemplateInSteps(tables, account, send, content, htmlReader));
}

/** `prepareTemplate` in steps. */
export function* prepareTemplateInSteps(
  tables: Tables,
  account: AccountRow,
  send: TemplateContext,
  content: TemplateContent,
  htmlReader: HtmlReader,
): Work<PreparedTemplate | Refusal> {
  const fault = subjectTemplateFault(content.subject, htmlReader.syntax === 'marks' ? 'marks' : 'variables');
  if (fault !== null) return invalid('subject', fault);
  const read = content.html === '' ? null : yield* htmlReader.reading(content.html);
  if (read?.template.tooLong === true) return tooManySlots('html');
  const text = content.text === null ? null : yield* htmlReader.readingText(content.text);
  if (text?.tooLong === true) return tooManySlots('text');
  const required = requiredVariables(send);
  const missing = read === null ? missingInText(text ?? { names: [] }) : read.missing;
  const lacking = required.filter((name) => missing.includes(name));
  if (lacking.length > 0) return complianceMissing(lacking, read === null ? 'text' : 'html');
  const parts: TemplatePart[] = [
    { field: 'subject', kind: 'subject', template: htmlReader.readSubject(content.subject) },
    ...(read === null ? [] : [{ field: 'html', kind: 'html', template: read.template } as const]),
    ...(text === null ? [] : [{ field: 'text', kind: 'text', template: text } as const]),
  ];
  const service = serviceOf(tables, account, send, content, namesOf(parts));
  return isRefusal(service) ? service : { parts, service, required };
}

/** The values of the service's variables in no language; refused if `names` has one without a value. */
export function serviceOf(
  tables: Tables,
  account: AccountRow,
  send: TemplateContext,
  content: Pick<TemplateContent, 'html'>,
  names: readonly string[],
): ComplianceVariables | Refusal {
  const service = serviceIn(tables, account, send, content, null);
  return names.some((name) => COMPANY_VARIABLES.includes(name) && !(name in service.html))
    ? refuse(
        'COMPANY_ADDRESS_MISSING',
        'The account has no company name and postal address yet: set them with PUT /web-setup/account',
      )
    : service;
}

/** The values of the service's variables in mail to a person with this language (a tag; null: unknown). */
function serviceIn(
  tables: Tables,
  account: AccountRow,
  { from, fromDomain, groupId }: Pick<TemplateContext, 'from' | 'fromDomain' | 'groupId'>,
  { html }: Pick<TemplateContent, 'html'>,
  language: string | null,
): ComplianceVariables {
  const company = companyOf(account);
  const mail = { fromDomain, groupId, html };
  return complianceVariables({
    account: { companyName: company?.name ?? null, companyAddress: company?.address ?? null },
    from: from.address,
    templates: complianceTexts(tables, account.account_id, mail, language),
  });
}

/** The prepared template for a person with this language (a tag; null: unknown): the same if nothing in it depends on it. */
export function prepareIn(
  tables: Tables,
  account: AccountRow,
  send: Pick<TemplateContext, 'from' | 'fromDomain' | 'groupId'>,
  content: Pick<TemplateContent, 'html'>,
  prepared: PreparedTemplate,
  language: string | null,
): PreparedTemplate {
  if (language === null || !hasFooter(prepared)) return prepared;
  const service = serviceIn(tables, account, send, content, language);
  return service === prepared.service ? prepared : { ...prepared, service };
}

/** Whether the template inserts texts that have a language. */
export function hasFooter({ parts, inserted = [] }: Pick<PreparedTemplate, 'parts' | 'inserted'>): boolean {
  return inserted.some(isInLanguage) || parts.some(({ template }) => template.names.some(isInLanguage));
}

function tooManySlots(field: string): Refusal {
  return invalid(field, `must use variables at most ${MAX_SLOTS} times`);
}

/** The variables of all parts; one that several parts use is repeated. */
export function namesOf(parts: readonly TemplatePart[]): string[] {
  return parts.flatMap(({ template }) => template.names);
}

/** Parses a template in steps ahead of `prepareTemplate`, which then finds it in the cache of the reader. */
export function* parseContentInSteps({ html, text }: TemplateContent, reader: HtmlReader): Work<void> {
  if (html !== '') yield* reader.reading(html, true);
  if (text !== null) yield* reader.readingText(text, true);
}

/** Renders a prepared template, in steps. */
export function* renderPreparedInSteps(
  { parts, service, required }: PreparedTemplate,
  variables: Readonly<Record<string, unknown>>,
  optional?: ReadonlySet<string>,
): Work<Rendered | Refusal> {
  const rendered: Rendered = { subject: '', html: '', text: null };
  const problems: FieldProblem[] = [];
  for (const { field, kind, template } of parts) {
    const own = kind === 'html' ? service.html : service.text;
    const result = yield* renderTemplateInSteps(template, kind, variables, own, {
      limit: MAX_RENDERED,
      ...(optional === undefined ? {} : { optional }),
    });
    if (typeof result === 'string') rendered[field] = result;
    else problems.push(...result.map((problem) => ({ field, problem })));
  }
  if (problems.length > 0) return variableRefusal(problems, optional !== undefined);
  const refusal = subjectRefusal(rendered.subject);
  if (refusal !== null) return refusal;
  return (yield* findHiddenComplianceInSteps({ parts, service, required }, variables, optional)) ?? rendered;
}

/** Refuses when values of variables hide required parts of the html. */
export function* findHiddenComplianceInSteps(
  { parts, service, required }: PreparedTemplate,
  variables: Readonly<Record<string, unknown>>,
  optional?: ReadonlySet<string>,
): Work<Refusal | null> {
  const html = parts.find(({ field }) => field === 'html')?.template;
  if (html === undefined || hidingVariable(html) === null) return null;
  const options = { limit: MAX_RENDERED, ...(optional === undefined ? {} : { optional }) };
  const found = yield* findHiddenInSteps(html, variables, service.html, options);
  const hidden = required.filter((name) => found.includes(name));
  return hidden.length > 0 ? complianceHidden(hidden, html) : null;
}

function companyOf(account: AccountRow): { name: string; address: PostalAddress } | null {
  if (account.company_name === null || account.company_address === null) return null;
  return { name: account.company_name, address: JSON.parse(account.company_address) };
}

export function complianceMissing(names: readonly string[], field: 'html' | 'text'): Refusal {
  const details = names.map((name): RefusalDetail => ({ field, message: `must include {{${name}}}`, name }));
  return refuse(
    'COMPLIANCE_TEMPLATE_MISSING',
    `The ${field} must include ${names.map((name) => `{{${name}}}`).join(' and ')}`,
    { details },
  );
}

/** The template contains the variables, but values of other variables hide them. */
function complianceHidden(names: string[], template: Template): Refusal {
  const slot = hidingVariable(template);
  const name = shortened(slot?.name ?? '');
  const by =
    slot?.raw === false
      ? `the value of a variable in a style such as {{${name}}}`
      : `the value of a raw variable such as {{{${name}}}}`;
  const details = names.map(
    (name): RefusalDetail => ({ field: 'html', message: `{{${name}}} is hidden by ${by}`, name }),
  );
  const list = names.map((name) => `{{${name}}}`).join(' and ');
  return refuse(
    'COMPLIANCE_TEMPLATE_MISSING',
    `The rendered html does not show ${list}: ${by} hides it, by an open comment, tag or element`,
    { details },
  );
}

/** Leftovers that a response names: a template in another language can be full of them. */
const MAX_LEFTOVER_WARNINGS = 20;

/** Sentences about text in braces that looks like a variable and is not one. */
export function leftoverWarnings(parts: readonly TemplatePart[]): string[] {
  return parts
    .flatMap(({ field, template }) => bracesWarnings(template, field))
    .slice(0, MAX_LEFTOVER_WARNINGS);
}

/** Refuses the syntax of other template languages, for mail that is sent to many. */
export function foreignSyntaxRefusal(parts: readonly TemplatePart[]): Refusal | null {
  const details = parts.flatMap(({ field, template }) =>
    template.foreign.map(
      (found): RefusalDetail => ({ field, message: foreignSentence(found, field), name: found.text }),
    ),
  );
  const [first] = details;
  if (first === undefined) return null;
  const more = details.length > 1 ? ` (and ${details.length - 1} more)` : '';
  return refuse('TEMPLATE_SYNTAX', `${first.message}${more}`, { details });
}

const NAME_RULE =
  'is not a variable: a name consists of A-Z, a-z, 0-9, "_" and ".", and does not begin with a digit or "."';

/** Refuses text in braces that is not a variable, if `isMeant` recognizes its name as that of a value. */
export function misnamedRefusal(
  parts: readonly TemplatePart[],
  isMeant: (name: string) => boolean,
): Refusal | null {
  const details = parts.flatMap(({ field, template }) =>
    template.leftovers.flatMap((leftover): RefusalDetail[] => {
      const name = namesIn(leftover).find(isMeant);
      return name === undefined
        ? []
        : [{ field, message: `${leftover} in ${field} ${NAME_RULE}`, name: shortened(name) }];
    }),
  );
  const [first] = details;
  if (first === undefined) return null;
  const more = details.length > 1 ? ` (and ${details.length - 1} more)` : '';
  return refuse('TEMPLATE_VARIABLE_MISSING', `${first.message}${more}`, { details });
}

/** What the sender of `{{first-name|friend}}` can have meant: what is before the default, or all of it. */
function namesIn(leftover: string): string[] {
  const inside = leftover.slice(2, -2);
  const [beforeDefault = ''] = inside.split('|', 1);
  return [beforeDefault.trim(), inside.trim()];
}

const PROBLEM_TEXTS: Record<TemplateProblem['reason'], string> = {
  missing: 'has no value in templateVariables',
  'not-text': 'is an object or an array in templateVariables; it must be a string, a number or a boolean',
  'line-break': 'contains a line break, which a subject cannot have',
  nul: 'contains the character U+0000',
  'too-long': 'makes the message too large',
};

const NO_FIELD = ', and no contact has a field of that name';

/** Problems that a response lists. */
const MAX_NAMED = 50;

/** A value that cannot be inserted of a variable in a part. */
export interface FieldProblem {
  field: string;
  problem: TemplateProblem;
}

/** Missing values are one kind of refusal; values that cannot be inserted are invalid fields. */
export function variableRefusal(problems: readonly FieldProblem[], ofContacts: boolean): Refusal {
  const unusable = problems.filter(({ problem }) => problem.reason !== 'missing');
  const chosen = unusable.length > 0 ? unusable : problems;
  const details = chosen.slice(0, MAX_NAMED).map(({ field, problem }): RefusalDetail => {
    const unknown = ofContacts && problem.reason === 'missing' ? NO_FIELD : '';
    const name = shortened(problem.name);
    const message = `{{${name}}} in ${field} ${PROBLEM_TEXTS[problem.reason]}${unknown}`;
    return {
      field: unusable.length > 0 ? `templateVariables.${name}` : field,
      message,
      name,
    };
  });
  const code = unusable.length > 0 ? 'VALIDATION_ERROR' : 'TEMPLATE_VARIABLE_MISSING';
  const sentence = details.map(({ message }) => message).join('; ');
  const more = chosen.length - details.length;
  // Rendering stops after MAX_PROBLEMS.
  const counted = problems.length < MAX_PROBLEMS ? `${more} more` : 'more';
  return refuse(code, more > 0 ? `${sentence}; and ${counted}` : sentence, { details });
}
