import { invalid, isRefusal, type Refusal, type RefusalDetail, refuse } from '../core/refusal.ts';
import { type ComplianceVariables, complianceVariables } from '../mail/compliance.ts';
import type { MessageContent } from '../mail/content.ts';
import {
  parseTemplate,
  renderTemplate,
  type Template,
  type TemplateKind,
  type TemplateProblem,
} from '../mail/template.ts';
import type { AccountRow, PostalAddress } from '../store/accounts.ts';
import type { Tables } from '../store/tables.ts';
import { complianceTexts } from './compliance-templates.ts';
import type { ReadHtml } from './html-reader.ts';
import { type ParsedSend, subjectFault } from './request.ts';
import { subjectTemplateFault } from './text.ts';
import type { Wording } from './wording.ts';

/**
 * From template to content: compliance is looked for in the template itself, then every variable is filled
 * in. What differs from copy to copy stays a mark.
 */
export type Rendered = Pick<MessageContent, 'subject' | 'html' | 'text'>;

/** Most that variables may blow a part up to, in characters. */
const MAX_RENDERED = 8 * 1024 * 1024;
const COMPANY_VARIABLES = ['company_address_html', 'company_address'];

interface Part {
  field: 'subject' | 'html' | 'text';
  kind: TemplateKind;
  template: Template;
}

/** A wording taken apart, with what the service fills in: good for any number of copies. */
export interface PreparedWording {
  parts: Part[];
  service: ComplianceVariables;
}

/** Checks what does not depend on variables: compliance, and the company address where it is used. */
export function prepareWording(
  tables: Tables,
  account: AccountRow,
  send: Pick<ParsedSend, 'from' | 'fromDomain' | 'groupId'>,
  wording: Wording,
  readHtml: (html: string) => ReadHtml,
): PreparedWording | Refusal {
  const unfit = subjectTemplateFault(wording.subject);
  if (unfit !== null) return invalid('subject', unfit);
  const { missing, template } = readHtml(wording.html);
  if (missing.length > 0) return complianceMissing(missing);
  const parts: Part[] = [
    { field: 'subject', kind: 'subject', template: parseTemplate(wording.subject) },
    { field: 'html', kind: 'html', template },
    ...(wording.text === null
      ? []
      : [{ field: 'text', kind: 'text', template: parseTemplate(wording.text) } as const]),
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
  return { parts, service };
}

/** Every name that the wording uses, each once for every part that has it. */
export function namesOf(parts: readonly Part[]): string[] {
  return parts.flatMap(({ template }) => template.names);
}

/** `optional`: names that may be missing, and are empty then. */
export function renderWording(
  { parts, service }: PreparedWording,
  variables: Readonly<Record<string, unknown>>,
  optional?: ReadonlySet<string>,
): Rendered | Refusal {
  const rendered: Rendered = { subject: '', html: '', text: null };
  const problems: { field: string; problem: TemplateProblem }[] = [];
  for (const { field, kind, template } of parts) {
    const own = kind === 'html' ? service.html : service.text;
    const result = renderTemplate(template, kind, variables, own, {
      limit: MAX_RENDERED,
      ...(optional === undefined ? {} : { optional }),
    });
    if (typeof result === 'string') rendered[field] = result;
    // One by one: a hundred thousand names are more than a call takes arguments.
    else for (const problem of result) problems.push({ field, problem });
  }
  if (problems.length > 0) return variableRefusal(problems, optional !== undefined);
  return subjectFault(rendered.subject) ?? rendered;
}

export function renderSend(
  tables: Tables,
  account: AccountRow,
  send: Pick<ParsedSend, 'from' | 'fromDomain' | 'groupId' | 'variables'>,
  wording: Wording,
  readHtml: (html: string) => ReadHtml,
): Rendered | Refusal {
  const prepared = prepareWording(tables, account, send, wording, readHtml);
  return isRefusal(prepared) ? prepared : renderWording(prepared, send.variables);
}

function companyOf(account: AccountRow): { name: string; address: PostalAddress } | null {
  if (account.company_name === null || account.company_address === null) return null;
  return { name: account.company_name, address: JSON.parse(account.company_address) };
}

function complianceMissing(names: string[]): Refusal {
  const details = names.map(
    (name): RefusalDetail => ({ field: 'html', message: `must include {{${name}}}`, name }),
  );
  return refuse(
    'COMPLIANCE_TEMPLATE_MISSING',
    `The html must include ${names.map((name) => `{{${name}}}`).join(' and ')}`,
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
const MOST_TOLD = 100;

/** Names without a value are one refusal; values that cannot be used are faults of their fields. */
function variableRefusal(
  problems: { field: string; problem: TemplateProblem }[],
  ofContacts: boolean,
): Refusal {
  const unusable = problems.filter(({ problem }) => problem.reason !== 'missing');
  const chosen = unusable.length > 0 ? unusable : problems;
  const details = chosen.slice(0, MOST_TOLD).map(({ field, problem }): RefusalDetail => {
    const unknown = ofContacts && problem.reason === 'missing' ? NO_FIELD : '';
    const message = `{{${problem.name}}} in ${field} ${PROBLEM_WORDS[problem.reason]}${unknown}`;
    return {
      field: unusable.length > 0 ? `templateVariables.${problem.name}` : field,
      message,
      name: problem.name,
    };
  });
  const code = unusable.length > 0 ? 'VALIDATION_ERROR' : 'TEMPLATE_VARIABLE_MISSING';
  const sentence = details.map(({ message }) => message).join('; ');
  const more = chosen.length - details.length;
  return refuse(code, more > 0 ? `${sentence}; and ${more} more` : sentence, { details });
}
