import { invalid, isRefusal, type Refusal, type RefusalDetail, refuse, shortened } from '../core/refusal.ts';
import { type Work, withoutPause } from '../core/slices.ts';
import {
  type ComplianceVariables,
  complianceVariables,
  findingHidden,
  hasRawVariables,
  missingInText,
  type RequiredVariable,
  requiredVariables,
} from '../mail/compliance.ts';
import type { MessageContent } from '../mail/content.ts';
import type { SharedContent, SharedPart } from '../mail/shared-content.ts';
import { fillingShared, joinShared, type SharedTemplate, sharingTemplate } from '../mail/shared-template.ts';
import {
  isServiceVariable,
  MAX_PROBLEMS,
  MAX_SLOTS,
  parseTemplate,
  renderingTemplate,
  type Template,
  type TemplateKind,
  type TemplateProblem,
} from '../mail/template.ts';
import type { AccountRow, PostalAddress } from '../store/accounts.ts';
import type { Tables } from '../store/tables.ts';
import { complianceTexts } from '../templates/compliance-templates.ts';
import type { Wording } from '../templates/source.ts';
import { subjectTemplateFault } from '../templates/text.ts';
import type { HtmlReader } from './html-reader.ts';
import { type ParsedSend, subjectFault } from './request.ts';

/**
 * From template to content: compliance is looked for in the template itself, then every variable is filled
 * in. What differs from copy to copy stays a mark.
 */
export type Rendered = Pick<MessageContent, 'subject' | 'html' | 'text'>;

/** Most that variables may blow a part up to, in characters. */
export const MAX_RENDERED = 8 * 1024 * 1024;
const COMPANY_VARIABLES = ['company_address_html', 'company_address_text', 'company_address'];

/** What decides which compliance variables a wording needs, and what they insert. */
export type WordingSender = Pick<ParsedSend, 'from' | 'fromDomain' | 'groupId' | 'essential'>;

interface Part {
  field: 'subject' | 'html' | 'text';
  kind: TemplateKind;
  template: Template;
}

/** A wording taken apart, with what the service fills in: good for any number of copies. */
export interface PreparedWording {
  parts: Part[];
  service: ComplianceVariables;
  /** Compliance variables that the rendered html must show. */
  required: readonly RequiredVariable[];
}

/** Checks what does not depend on variables: compliance, and the company address where it is used. */
export function prepareWording(
  tables: Tables,
  account: AccountRow,
  send: WordingSender,
  wording: Wording,
  html: HtmlReader,
): PreparedWording | Refusal {
  return withoutPause(preparingWording(tables, account, send, wording, html));
}

/** The same in steps. */
function* preparingWording(
  tables: Tables,
  account: AccountRow,
  send: WordingSender,
  wording: Wording,
  html: HtmlReader,
): Work<PreparedWording | Refusal> {
  const unfit = subjectTemplateFault(wording.subject);
  if (unfit !== null) return invalid('subject', unfit);
  const read = wording.html === '' ? null : yield* html.reading(wording.html);
  if (read?.template.tooLong === true) return tooManySlots('html');
  const text = wording.text === null ? null : yield* html.readingText(wording.text);
  if (text?.tooLong === true) return tooManySlots('text');
  const required = requiredVariables(send);
  const missing = read === null ? missingInText(text ?? { names: [] }) : read.missing;
  const lacking = required.filter((name) => missing.includes(name));
  if (lacking.length > 0) return complianceMissing(lacking, read === null ? 'text' : 'html');
  const parts: Part[] = [
    { field: 'subject', kind: 'subject', template: parseTemplate(wording.subject) },
    ...(read === null ? [] : [{ field: 'html', kind: 'html', template: read.template } as const]),
    ...(text === null ? [] : [{ field: 'text', kind: 'text', template: text } as const]),
  ];
  const company = companyOf(account);
  if (company === null && namesOf(parts).some((name) => COMPANY_VARIABLES.includes(name))) {
    return refuse(
      'COMPANY_ADDRESS_MISSING',
      'The account has no company name and postal address yet: set them with PUT /web-setup/account',
    );
  }
  const service = complianceVariables({
    account: { companyName: company?.name ?? null, companyAddress: company?.address ?? null },
    from: send.from.address,
    templates: complianceTexts(tables, account.account_id, send),
  });
  return { parts, service, required };
}

function tooManySlots(field: string): Refusal {
  return invalid(field, `must use variables at most ${MAX_SLOTS} times`);
}

/** Every name that the wording uses, each once for every part that has it. */
export function namesOf(parts: readonly Part[]): string[] {
  return parts.flatMap(({ template }) => template.names);
}

/** Parses a wording ahead of `prepareWording`, which then finds it with the reader. */
export function* readingWording({ html, text }: Wording, reader: HtmlReader): Work<void> {
  if (html !== '') yield* reader.reading(html);
  if (text !== null) yield* reader.readingText(text);
}

/** `optional`: names that may be missing, and are empty then. */
export function renderWording(
  prepared: PreparedWording,
  variables: Readonly<Record<string, unknown>>,
  optional?: ReadonlySet<string>,
): Rendered | Refusal {
  return withoutPause(renderingWording(prepared, variables, optional));
}

/** The same in steps. */
export function* renderingWording(
  { parts, service, required }: PreparedWording,
  variables: Readonly<Record<string, unknown>>,
  optional?: ReadonlySet<string>,
): Work<Rendered | Refusal> {
  const rendered: Rendered = { subject: '', html: '', text: null };
  const problems: { field: string; problem: TemplateProblem }[] = [];
  for (const { field, kind, template } of parts) {
    const own = kind === 'html' ? service.html : service.text;
    const result = yield* renderingTemplate(template, kind, variables, own, {
      limit: MAX_RENDERED,
      ...(optional === undefined ? {} : { optional }),
    });
    if (typeof result === 'string') rendered[field] = result;
    else problems.push(...result.map((problem) => ({ field, problem })));
  }
  if (problems.length > 0) return variableRefusal(problems, optional !== undefined);
  const unfit = subjectFault(rendered.subject);
  if (unfit !== null) return unfit;
  return (yield* findingHiddenCompliance({ parts, service, required }, variables, optional)) ?? rendered;
}

/** A refusal when the values of raw variables hide what the html must show. */
function* findingHiddenCompliance(
  { parts, service, required }: PreparedWording,
  variables: Readonly<Record<string, unknown>>,
  optional?: ReadonlySet<string>,
): Work<Refusal | null> {
  const html = parts.find(({ field }) => field === 'html')?.template;
  if (html === undefined || !hasRawVariables(html)) return null;
  const options = { limit: MAX_RENDERED, ...(optional === undefined ? {} : { optional }) };
  const found = yield* findingHidden(html, variables, service.html, options);
  const hidden = required.filter((name) => found.includes(name));
  return hidden.length > 0 ? complianceHidden(hidden, html) : null;
}

/** A wording in which everything is filled in that is the same for all recipients. */
export interface SharedWording {
  prepared: PreparedWording;
  parts: { field: Part['field']; first: number; template: SharedTemplate }[];
}

/**
 * Fills in the variables that are the same for all recipients, in steps. `isOwn`: names whose values differ. A refusal:
 * it cannot be rendered for anybody.
 */
export function* sharingWording(
  prepared: PreparedWording,
  variables: Readonly<Record<string, unknown>>,
  isOwn: (name: string) => boolean,
): Work<SharedWording | Refusal> {
  const problems: { field: string; problem: TemplateProblem }[] = [];
  const shared: SharedWording = { prepared, parts: [] };
  let first = 0;
  for (const { field, kind, template } of prepared.parts) {
    const service = kind === 'html' ? prepared.service.html : prepared.service.text;
    const result = yield* sharingTemplate(template, kind, variables, service, { limit: MAX_RENDERED, isOwn });
    if (Array.isArray(result)) problems.push(...result.map((problem) => ({ field, problem })));
    else {
      shared.parts.push({ field, first, template: result });
      first += result.values.length;
    }
  }
  return problems.length > 0 ? variableRefusal(problems, true) : shared;
}

/** One recipient's part of a shared wording. */
export interface OwnWording {
  subject: string;
  /** Of all parts, in their order. */
  values: string[];
}

/** Renders a shared wording for one recipient, whose variables are all of them. */
export function fillWording(
  { prepared, parts }: SharedWording,
  variables: Readonly<Record<string, unknown>>,
  optional: ReadonlySet<string>,
): OwnWording | Refusal {
  const problems: { field: string; problem: TemplateProblem }[] = [];
  const values: string[] = [];
  let subject = '';
  for (const { field, template } of parts) {
    const filled = withoutPause(fillingShared(template, variables, { limit: MAX_RENDERED, optional }));
    if ('problems' in filled) problems.push(...filled.problems.map((problem) => ({ field, problem })));
    else {
      values.push(...filled.values);
      if (field === 'subject') subject = joinShared(template, filled.values);
    }
  }
  if (problems.length > 0) return variableRefusal(problems, true);
  const unfit = subjectFault(subject) ?? withoutPause(findingHiddenCompliance(prepared, variables, optional));
  return unfit ?? { subject, values };
}

/** The parts of a shared wording as they are stored. */
export function sharedParts({ parts }: SharedWording): Pick<SharedContent, 'subject' | 'html' | 'text'> {
  const part = (wanted: Part['field']): SharedPart | null => {
    const found = parts.find(({ field }) => field === wanted);
    return found === undefined
      ? null
      : { first: found.first, holes: found.template.holes, texts: found.template.texts };
  };
  return {
    subject: part('subject') ?? { first: 0, holes: [], texts: [''] },
    html: part('html'),
    text: part('text'),
  };
}

export function* renderingSend(
  tables: Tables,
  account: AccountRow,
  send: WordingSender & Pick<ParsedSend, 'variables'>,
  wording: Wording,
  html: HtmlReader,
): Work<Rendered | Refusal> {
  const prepared = yield* preparingWording(tables, account, send, wording, html);
  return isRefusal(prepared) ? prepared : yield* renderingWording(prepared, send.variables);
}

function companyOf(account: AccountRow): { name: string; address: PostalAddress } | null {
  if (account.company_name === null || account.company_address === null) return null;
  return { name: account.company_name, address: JSON.parse(account.company_address) };
}

function complianceMissing(names: readonly string[], field: 'html' | 'text'): Refusal {
  const details = names.map((name): RefusalDetail => ({ field, message: `must include {{${name}}}`, name }));
  return refuse(
    'COMPLIANCE_TEMPLATE_MISSING',
    `The ${field} must include ${names.map((name) => `{{${name}}}`).join(' and ')}`,
    { details },
  );
}

/** The template shows them, and the values of its raw variables hide them. */
function complianceHidden(names: string[], template: Template): Refusal {
  const raw = template.slots.find((slot) => slot.raw && !isServiceVariable(slot.name));
  const by = `the value of a raw variable such as {{{${shortened(raw?.name ?? '')}}}}`;
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

const PROBLEM_WORDS: Record<TemplateProblem['reason'], string> = {
  missing: 'has no value in templateVariables',
  'not-text': 'is an object or a list in templateVariables; a text, number or boolean is needed',
  'line-break': 'holds a line break, which a subject cannot',
  nul: 'holds the character U+0000',
  'too-long': 'makes the message too large',
};

const NO_FIELD = ', and no contact has a field of that name';

/** Problems that an answer names. */
const MAX_NAMED = 50;

/** Names without a value are one refusal; values that cannot be used are faults of their fields. */
function variableRefusal(
  problems: { field: string; problem: TemplateProblem }[],
  ofContacts: boolean,
): Refusal {
  const unusable = problems.filter(({ problem }) => problem.reason !== 'missing');
  const chosen = unusable.length > 0 ? unusable : problems;
  const details = chosen.slice(0, MAX_NAMED).map(({ field, problem }): RefusalDetail => {
    const unknown = ofContacts && problem.reason === 'missing' ? NO_FIELD : '';
    const name = shortened(problem.name);
    const message = `{{${name}}} in ${field} ${PROBLEM_WORDS[problem.reason]}${unknown}`;
    return {
      field: unusable.length > 0 ? `templateVariables.${name}` : field,
      message,
      name,
    };
  });
  const code = unusable.length > 0 ? 'VALIDATION_ERROR' : 'TEMPLATE_VARIABLE_MISSING';
  const sentence = details.map(({ message }) => message).join('; ');
  const more = chosen.length - details.length;
  // A template is not rendered any further after so many problems.
  const counted = problems.length < MAX_PROBLEMS ? `${more} more` : 'more';
  return refuse(code, more > 0 ? `${sentence}; and ${counted}` : sentence, { details });
}
