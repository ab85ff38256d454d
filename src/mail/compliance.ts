import { LRUCache } from 'lru-cache';
import { type Work, withoutPause } from '../core/concurrency/slices.ts';
import { recordOf } from '../core/record-of.ts';
import { MARKS } from './content.ts';
import { escapeHtml } from './html/escape.ts';
import { textFromHtml } from './html/text-part.ts';
import { trackVisibility, VISIBILITY_ATTRIBUTES } from './html/visibility.ts';
import { walkHtml, walkHtmlInSteps } from './html/walk.ts';
import {
  isServiceVariable,
  parseTemplate,
  type RenderOptions,
  renderTemplate,
  renderTemplateInSteps,
  type ServiceVariable,
  type SlotPosition,
  type Template,
  type TemplateSlot,
} from './template.ts';

/*
 * The content that laws and large receivers require in a mail: the sender's name and postal address, and a way to
 * unsubscribe. Defines which service variables a caller's HTML must use, and what they insert.
 */

/** A service variable that the HTML of a mail must use. */
export type RequiredVariable = 'company_address_html' | 'unsubscribe_email_html';

const REQUIRED: readonly RequiredVariable[] = ['company_address_html', 'unsubscribe_email_html'];

/** The variables that a message must use; recipients cannot unsubscribe from essential mail. */
export function requiredVariables({ essential }: { essential: boolean }): readonly RequiredVariable[] {
  return essential ? ['company_address_html'] : REQUIRED;
}

/** The compliance templates that an account can override. */
export const COMPLIANCE_KINDS = ['unsubscribe', 'report_abuse', 'company_address'] as const;

export type ComplianceKind = (typeof COMPLIANCE_KINDS)[number];

/**
 * Style of the default templates: readable size, contrast above 7:1 on white, links recognizable without color. Inline
 * elements only, so that they are valid in a paragraph and in a table cell.
 */
const STYLE = 'font-family:Arial,Helvetica,sans-serif;font-size:12px;line-height:1.5;color:#595959;';
const LINK = 'color:#1a4f9c;text-decoration:underline;';

/** The template of each kind. */
export type ComplianceTexts = Readonly<Record<ComplianceKind, string>>;

/** Plain texts of the default templates, in one language. In `sent`, `{recipient}` and `{sender}` are the two addresses. */
export interface FooterTexts {
  sent: string;
  unsubscribe: string;
  unasked: string;
  report: string;
}

/** The default templates with texts of this language (BCP 47). */
export function defaultComplianceTemplates(texts: FooterTexts, language: string): ComplianceTexts {
  const start = `<span lang="${language}" style="${STYLE}">`;
  const sent = plainHtml(texts.sent)
    .replaceAll('&#123;recipient&#125;', '{{recipient_email}}')
    .replaceAll('&#123;sender&#125;', '{{sender_email}}');
  const link = (url: string, text: string) => `<a href="{{${url}}}" style="${LINK}">${plainHtml(text)}</a>`;
  return {
    unsubscribe: `${start}${sent} ${link('unsubscribe_url', texts.unsubscribe)}</span>`,
    report_abuse: `${start}${plainHtml(texts.unasked)} ${link('report_abuse_url', texts.report)}</span>`,
    company_address: `<span style="${STYLE}"><strong>{{company_name}}</strong><br>{{company_address}}</span>`,
  };
}

/** A text as HTML in which no template reads a variable. */
function plainHtml(text: string): string {
  return escapeHtml(text).replaceAll('{', '&#123;').replaceAll('}', '&#125;').replaceAll('\n', '<br>');
}

/**
 * Wraps every snippet, so that it starts on a new line wherever it is inserted, even in a paragraph, which must not
 * contain block elements. The line break is for Outlook for Windows, which does not support `display`.
 */
const OWN_LINE = ['<span style="display:block"><!--[if mso]><br><![endif]-->', '</span>'] as const;

/** The placeholders that compliance templates may use, with the form that other clients of the interface write. */
const PLACEHOLDERS = {
  unsubscribe_url: 'unsubscribeUrl',
  report_abuse_url: 'reportAbuseUrl',
  preferences_url: 'preferencesUrl',
  view_url: 'viewUrl',
  company_name: 'companyName',
  company_address: 'companyAddress',
  sender_email: 'senderEmail',
  recipient_email: 'recipientEmail',
} as const;

type Placeholder = keyof typeof PLACEHOLDERS;

/** The placeholder that a name stands for; null: none. */
function placeholderOf(name: string): Placeholder | null {
  // Sound: the keys of the table are its placeholders.
  const known = Object.keys(PLACEHOLDERS) as Placeholder[];
  return known.find((placeholder) => placeholder === name || PLACEHOLDERS[placeholder] === name) ?? null;
}

/** The service variables that insert a snippet, with their aliases: both insert HTML in HTML, and text in text. */
const INSERTED = [
  ['unsubscribe_email_html', 'unsubscribe_email_text'],
  ['report_abuse_email_html', 'report_abuse_email_text'],
  ['company_address_html', 'company_address_text'],
] as const;

const IN_LANGUAGE = new Set<string>(INSERTED.flat().filter((name) => !name.startsWith('company_')));

/** Whether the value of a variable depends on the language of the recipient. */
export function isInLanguage(name: string): boolean {
  return IN_LANGUAGE.has(name);
}

/** The variables that satisfy a requirement in the text of a message without HTML. */
const REQUIRED_IN_TEXT: Record<RequiredVariable, readonly ServiceVariable[]> = {
  company_address_html: ['company_address_html', 'company_address_text', 'company_address'],
  unsubscribe_email_html: ['unsubscribe_email_html', 'unsubscribe_email_text', 'unsubscribe_url'],
};

/**
 * The required variables that the HTML template does not display. A variable in a comment, an attribute, a style sheet
 * or an element that is not displayed (`hidden`, `display:none`), or with escaped braces, does not count.
 */
export function missingCompliance(html: string): RequiredVariable[] {
  return withoutPause(findMissingComplianceInSteps(html, parseTemplate(html)));
}

/** `missingCompliance` in steps, for HTML that is already parsed. */
export function* findMissingComplianceInSteps(html: string, template: Template): Work<RequiredVariable[]> {
  return yield* findNotDisplayedInSteps(html, template.slots);
}

/**
 * The first variable whose value may hide what is around it: it is inserted unescaped, or into a style. Null: none, so that
 * the template has all that its copies display.
 */
export function hidingVariable(template: Template): TemplateSlot | null {
  const known = hidingVariables.get(template);
  if (known !== undefined) return known;
  const { slots, texts } = template;
  let before = '';
  const found = slots.find(({ raw, name }, index) => {
    // The texts may be megabytes: only what is examined is joined.
    before = `${before}x${(texts[index] ?? '').slice(-MAX_TAG_LENGTH)}`.slice(-MAX_TAG_LENGTH);
    return !isServiceVariable(name) && (raw || IN_STYLE.test(before.slice(before.lastIndexOf('<') + 1)));
  });
  hidingVariables.set(template, found ?? null);
  return found ?? null;
}

const hidingVariables = new WeakMap<Template, TemplateSlot | null>();
/** Characters before a variable in which the begin of its tag is searched. */
const MAX_TAG_LENGTH = 2000;
/** Within the value of an attribute that can hide an element. */
const IN_STYLE = /[\s"'](?:style|hidden|color|bgcolor)\s*=\s*(?:"[^"]*|'[^']*|[^\s"'>]*)$/i;

/**
 * The required variables that the rendered HTML does not display: an unescaped value may open a comment, a style sheet,
 * an attribute or a hidden element without closing it. All of them if the template cannot be rendered.
 */
export function* findHiddenInSteps(
  template: Template,
  variables: Readonly<Record<string, unknown>>,
  service: ComplianceVariables['html'],
  options: RenderOptions,
): Work<RequiredVariable[]> {
  const positions: SlotPosition[] = [];
  // A short text stands in for each snippet: where that is displayed, so is the snippet.
  const probes = recordOf(REQUIRED, () => PROBE);
  const own = { ...service, ...probes };
  const html = yield* renderTemplateInSteps(template, 'html', variables, own, { positions, ...options });
  return typeof html === 'string' ? yield* findNotDisplayedInSteps(html, positions) : [...REQUIRED];
}

const PROBE = 'x';

/** The required variables that have no position in displayed text. */
function* findNotDisplayedInSteps(
  html: string,
  positions: readonly SlotPosition[],
): Work<RequiredVariable[]> {
  const required = positions.filter(({ name }) => (REQUIRED as readonly string[]).includes(name));
  if (required.length === 0) return [...REQUIRED];
  const shown = new Set<string>();
  const visibility = trackVisibility();
  let next = 0;
  const visitor = {
    open: visibility.open,
    close: visibility.close,
    text: (piece: string, start: number) => {
      for (; next < required.length; next++) {
        const position = required[next];
        if (!position || position.start >= start + piece.length) return;
        if (position.start >= start && visibility.isTextShown()) shown.add(position.name);
      }
    },
  };
  yield* walkHtmlInSteps(html, visitor, VISIBILITY_ATTRIBUTES);
  return REQUIRED.filter((name) => !shown.has(name));
}

/** The required variables that the text template of a message without HTML does not use. */
export function missingInText({ names }: Pick<Template, 'names'>): RequiredVariable[] {
  return REQUIRED.filter((name) => !REQUIRED_IN_TEXT[name].some((form) => names.includes(form)));
}

/** The errors in an account's compliance template; empty when it is valid. */
export function complianceTemplateProblems(kind: ComplianceKind, htmlContent: string): string[] {
  const unknown = parseTemplate(htmlContent)
    .names.filter((name) => placeholderOf(name) === null)
    .map(
      (name) =>
        `{{${name}}} is not available in compliance templates. Available are ${Object.keys(PLACEHOLDERS)
          .map((known) => `{{${known}}}`)
          .join(', ')}`,
    );
  const missing = CONTENT_FAULTS[kind](readCompliance(htmlContent));
  return missing === null ? unknown : [...unknown, missing];
}

/** What a reader of a compliance template sees and can follow. */
interface ComplianceContent {
  /** Placeholders in displayed text and in links. */
  used: ReadonlySet<Placeholder | null>;
  /** Displayed text without placeholders. */
  literal: string;
  links: readonly string[];
}

const COMPLIANCE_ATTRIBUTES = new Set(['href', ...VISIBILITY_ATTRIBUTES]);

function readCompliance(htmlContent: string): ComplianceContent {
  const links: string[] = [];
  let text = '';
  const visibility = trackVisibility();
  const visitor = {
    open: (name: string, attributes: ReadonlyMap<string, string>) => {
      const href = attributes.get('href');
      if (href !== undefined) links.push(href.trim());
      visibility.open(name, attributes);
    },
    close: visibility.close,
    text: (piece: string) => {
      if (visibility.isTextShown()) text += piece;
    },
  };
  walkHtml(htmlContent, visitor, COMPLIANCE_ATTRIBUTES);
  const names = parseTemplate([text, ...links].join('\n')).names;
  return { used: new Set(names.map(placeholderOf)), literal: text.replaceAll(/\{\{[^{}]*\}\}/g, ''), links };
}

/** Letters and digits that a postal address has at least. */
const MIN_ADDRESS_CHARACTERS = 10;

/** Why a template does not do what its kind is for; null: it does. */
const CONTENT_FAULTS: Record<ComplianceKind, (content: ComplianceContent) => string | null> = {
  unsubscribe: ({ used }) =>
    used.has('unsubscribe_url')
      ? null
      : '{{unsubscribe_url}} is missing, or is not in displayed text or a link: recipients could not unsubscribe',
  report_abuse: ({ used, links }) =>
    used.has('report_abuse_url') || used.has('sender_email') || links.some((link) => /^mailto:./i.test(link))
      ? null
      : '{{report_abuse_url}} is missing (or {{sender_email}}, or a mailto link), or is not in displayed text or a link',
  company_address: ({ used, literal }) =>
    used.has('company_address') || (literal.match(/[\p{L}\p{N}]/gu)?.length ?? 0) >= MIN_ADDRESS_CHARACTERS
      ? null
      : '{{company_address}} is missing (or a literal postal address), or is not displayed',
};

export interface CompanyAddress {
  line1: string;
  line2?: string | undefined;
  city: string;
  region?: string | undefined;
  postalCode: string;
  country: string;
}

export interface ComplianceInput {
  /** If either is null, the company variables are undefined. */
  account: { companyName: string | null; companyAddress: CompanyAddress | null };
  /** Address of the From field. */
  from: string;
  /** In HTML. */
  templates: ComplianceTexts;
}

export interface ComplianceVariables {
  readonly html: Readonly<Partial<Record<ServiceVariable, string>>>;
  readonly text: Readonly<Partial<Record<ServiceVariable, string>>>;
}

/** Characters of the values in memory that were computed last: messages of one sender have the same. */
const MAX_CACHED_CHARACTERS = 4 * 1024 * 1024;
const computed = new LRUCache<string, ComplianceVariables>({
  maxSize: MAX_CACHED_CHARACTERS,
  sizeCalculation: (_, input) => 4 * input.length,
});

/**
 * The values of the service variables for `renderTemplate`, for HTML and for text, with marks where copies differ. In
 * text the `_html` variables insert the same content as text.
 */
export function complianceVariables({ account, from, templates }: ComplianceInput): ComplianceVariables {
  const { companyName: name, companyAddress } = account;
  const address = companyAddress && addressLine(companyAddress);
  const input = JSON.stringify([from, name, address, ...COMPLIANCE_KINDS.map((kind) => templates[kind])]);
  const known = computed.get(input);
  if (known !== undefined) return known;
  const variables = computeVariables(from, name, address, templates);
  computed.set(input, variables);
  return variables;
}

function computeVariables(
  from: string,
  name: string | null,
  address: string | null,
  templates: ComplianceTexts,
): ComplianceVariables {
  const values: Record<Placeholder, string> = {
    unsubscribe_url: MARKS.unsubscribeUrl,
    report_abuse_url: MARKS.reportAbuseUrl,
    preferences_url: MARKS.preferencesUrl,
    view_url: MARKS.viewUrl,
    recipient_email: MARKS.recipient,
    sender_email: escapeHtml(from),
    company_name: escapeHtml(name ?? ''),
    company_address: escapeHtml(address ?? ''),
  };
  const snippet = (kind: ComplianceKind) => OWN_LINE[0] + insert(templates[kind], values) + OWN_LINE[1];

  const html: Partial<Record<ServiceVariable, string>> = {
    unsubscribe_email_html: snippet('unsubscribe'),
    report_abuse_email_html: snippet('report_abuse'),
    unsubscribe_url: MARKS.unsubscribeUrl,
    report_abuse_url: MARKS.reportAbuseUrl,
    preferences_url: MARKS.preferencesUrl,
    view_url: MARKS.viewUrl,
  };
  const text: Partial<Record<ServiceVariable, string>> = {
    unsubscribe_url: MARKS.unsubscribeUrl,
    report_abuse_url: MARKS.reportAbuseUrl,
    preferences_url: MARKS.preferencesUrl,
    view_url: MARKS.viewUrl,
  };
  const needed = new Set(parseTemplate(templates.company_address).names.map(placeholderOf));
  // A template with a literal address is the address of an account that has none.
  if ((name || !needed.has('company_name')) && (address || !needed.has('company_address')))
    html.company_address_html = snippet('company_address');
  const line =
    name && address
      ? `${name}, ${address}`
      : html.company_address_html === undefined
        ? undefined
        : textFromHtml(html.company_address_html)
            .split('\n')
            .map((part) => part.trim())
            .filter((part) => part !== '')
            .join(', ');
  if (line !== undefined) {
    html.company_address = escapeHtml(line);
    text.company_address = line;
  }
  for (const [variable, alias] of INSERTED) {
    const value = html[variable];
    if (value === undefined) continue;
    html[alias] = value;
    for (const form of [variable, alias]) {
      // Derived on access: few texts use these.
      Object.defineProperty(text, form, { enumerable: true, get: () => textFromHtml(value) });
    }
  }
  return { html, text };
}

/** Unknown names are rejected when a template is saved; here they insert an empty text. */
function insert(source: string, values: Readonly<Record<Placeholder, string>>): string {
  const template = parseTemplate(source);
  const inserted = Object.fromEntries(
    template.names.map((name) => {
      const placeholder = placeholderOf(name);
      return [name, placeholder === null ? '' : values[placeholder]];
    }),
  );
  const rendered = renderTemplate(template, 'html', {}, inserted);
  return typeof rendered === 'string' ? rendered : '';
}

/** The address on one line. */
function addressLine({ line1, line2, city, region, postalCode, country }: CompanyAddress): string {
  const place = [city, [region, postalCode].filter(Boolean).join(' ')].filter(Boolean).join(', ');
  return [line1, line2, place, country].filter(Boolean).join(', ');
}
