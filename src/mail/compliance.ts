import { type Work, withoutPause } from '../core/slices.ts';
import { MARKS } from './content.ts';
import { DISPLAY_ATTRIBUTES, trackDisplay } from './html/display.ts';
import { textFromHtml } from './html/text-part.ts';
import { walkHtml, walkingHtml } from './html/walk.ts';
import {
  escapeHtml,
  isServiceVariable,
  type Place,
  parseTemplate,
  type RenderOptions,
  renderingTemplate,
  renderTemplate,
  type ServiceVariable,
  type Template,
} from './template.ts';

/**
 * What the law and the large receivers want in every mail: who sends it, from where, and how to make it stop.
 * Owns which of the service's variables a caller's html must use, and what they insert. Knows nothing of
 * accounts' rows or of who may be written to.
 */
export type RequiredVariable = 'company_address_html' | 'unsubscribe_email_html';

const REQUIRED: readonly RequiredVariable[] = ['company_address_html', 'unsubscribe_email_html'];

/** What a message must use; essential mail cannot be unsubscribed from. */
export function requiredVariables({ essential }: { essential: boolean }): readonly RequiredVariable[] {
  return essential ? ['company_address_html'] : REQUIRED;
}

/** The kinds of compliance template an account may replace by its own. */
export const COMPLIANCE_KINDS = ['unsubscribe', 'report_abuse', 'company_address'] as const;

export type ComplianceKind = (typeof COMPLIANCE_KINDS)[number];

/**
 * Good on their own: readable at arm's length, contrast above 7:1 on white, links that show as links without
 * colour. Inline elements only, so that they may stand in a paragraph or a table cell alike.
 */
const STYLE = 'font-family:Arial,Helvetica,sans-serif;font-size:12px;line-height:1.5;color:#595959;';
const LINK = 'color:#1a4f9c;text-decoration:underline;';

export const DEFAULT_COMPLIANCE_TEMPLATES: Readonly<Record<ComplianceKind, string>> = {
  unsubscribe:
    `<span style="${STYLE}">This message was sent to {{recipient_email}} by {{sender_email}}. ` +
    `<a href="{{unsubscribe_url}}" style="${LINK}">Unsubscribe</a></span>`,
  report_abuse:
    `<span style="${STYLE}">You did not ask for this message? ` +
    `<a href="{{report_abuse_url}}" style="${LINK}">Report abuse</a></span>`,
  company_address: `<span style="${STYLE}"><strong>{{company_name}}</strong><br>{{company_address}}</span>`,
};

/**
 * Around every snippet, so that it starts on its own line wherever it is inserted: in a paragraph, where no block
 * element may stand, as well as in a table cell. Outlook for Windows does not support `display` and gets a break.
 */
const OWN_LINE = ['<span style="display:block"><!--[if mso]><br><![endif]-->', '</span>'] as const;

/** The placeholders that compliance templates may use. */
const PLACEHOLDERS: readonly string[] = [
  'unsubscribe_url',
  'report_abuse_url',
  'company_name',
  'company_address',
  'sender_email',
  'recipient_email',
];

/** The service's variables that insert a snippet, and their aliases: each gives html in html, and text in text. */
const INSERTED = [
  ['unsubscribe_email_html', 'unsubscribe_email_text'],
  ['report_abuse_email_html', 'report_abuse_email_text'],
  ['company_address_html', 'company_address_text'],
] as const;

/** What satisfies a requirement in the text of a message without html. */
const REQUIRED_IN_TEXT: Record<RequiredVariable, readonly ServiceVariable[]> = {
  company_address_html: ['company_address_html', 'company_address_text', 'company_address'],
  unsubscribe_email_html: ['unsubscribe_email_html', 'unsubscribe_email_text', 'unsubscribe_url'],
};

/** What each kind is there for: a template without it would do nothing. */
const PURPOSE: Record<ComplianceKind, string> = {
  unsubscribe: 'unsubscribe_url',
  report_abuse: 'report_abuse_url',
  company_address: 'company_address',
};

/**
 * The required variables that the html template does not really use: inside a comment, an attribute, a style
 * sheet or an element that is never shown (`hidden`, `display:none`), or with escaped braces, a use does not count.
 */
export function missingCompliance(html: string): RequiredVariable[] {
  return withoutPause(findingCompliance(html, parseTemplate(html)));
}

/** The same in steps, of html that was parsed already. */
export function* findingCompliance(html: string, template: Template): Work<RequiredVariable[]> {
  return yield* findingShown(html, template.slots);
}

/** Whether the html holds a caller's value as it is, which may change what the html around it means. */
export function hasRawVariables({ slots }: Template): boolean {
  return slots.some(({ raw, name }) => raw && !isServiceVariable(name));
}

/**
 * The required variables that no reader of the rendered html sees: a raw value may open a comment, a style sheet,
 * an attribute or an element that is not displayed, and never close it. A template that cannot be rendered shows
 * none.
 */
export function* findingHidden(
  template: Template,
  variables: Readonly<Record<string, unknown>>,
  service: ComplianceVariables['html'],
  options: RenderOptions,
): Work<RequiredVariable[]> {
  const places: Place[] = [];
  // A plain text in place of each snippet: where it is text, the snippet is part of the page.
  const probes = Object.fromEntries(REQUIRED.map((name) => [name, PROBE]));
  const own = { ...service, ...probes };
  const html = yield* renderingTemplate(template, 'html', variables, own, { ...options, places });
  return typeof html === 'string' ? yield* findingShown(html, places) : [...REQUIRED];
}

const PROBE = 'x';

/** Those of the required variables none of whose places is text that a reader sees. */
function* findingShown(html: string, places: readonly Place[]): Work<RequiredVariable[]> {
  const required = places.filter(({ name }) => (REQUIRED as readonly string[]).includes(name));
  if (required.length === 0) return [...REQUIRED];
  const shown = new Set<string>();
  const display = trackDisplay();
  let next = 0;
  const visitor = {
    open: display.open,
    close: display.close,
    text: (piece: string, start: number) => {
      for (; next < required.length; next++) {
        const place = required[next];
        if (!place || place.start >= start + piece.length) return;
        if (place.start >= start && display.isShown()) shown.add(place.name);
      }
    },
  };
  yield* walkingHtml(html, visitor, DISPLAY_ATTRIBUTES);
  return REQUIRED.filter((name) => !shown.has(name));
}

/** The required variables that the text template of a message without html does not use. */
export function missingInText({ names }: Pick<Template, 'names'>): RequiredVariable[] {
  return REQUIRED.filter((name) => !REQUIRED_IN_TEXT[name].some((form) => names.includes(form)));
}

/** What is wrong with an account's own compliance template; empty when it can be used. */
export function complianceTemplateProblems(kind: ComplianceKind, htmlContent: string): string[] {
  let seen = '';
  const visitor = {
    open: (_: string, attributes: ReadonlyMap<string, string>) => {
      seen += attributes.get('href') ?? '';
    },
    text: (piece: string) => {
      seen += piece;
    },
  };
  walkHtml(htmlContent, visitor, new Set(['href']));
  const problems = parseTemplate(htmlContent)
    .names.filter((name) => !PLACEHOLDERS.includes(name))
    .map(
      (name) =>
        `{{${name}}} is unknown here; there are ${PLACEHOLDERS.map((known) => `{{${known}}}`).join(', ')}`,
    );
  if (!parseTemplate(seen).names.includes(PURPOSE[kind])) {
    problems.push(`{{${PURPOSE[kind]}}} is missing, or stands where no reader can see or follow it`);
  }
  return problems;
}

export interface CompanyAddress {
  line1: string;
  line2?: string | undefined;
  city: string;
  region?: string | undefined;
  postalCode: string;
  country: string;
}

export interface ComplianceInput {
  /** Either null: the account has not said yet, and the two company variables stay unknown. */
  account: { companyName: string | null; companyAddress: CompanyAddress | null };
  /** Address of the From field. */
  from: string;
  /** The account's own html templates, where it has any. */
  templates?: Partial<Record<ComplianceKind, string>>;
}

export interface ComplianceVariables {
  html: Partial<Record<ServiceVariable, string>>;
  text: Partial<Record<ServiceVariable, string>>;
}

/**
 * Values of the service's variables for `renderTemplate`, one set for html and one for text, with marks for
 * what is each copy's own. In text the `_html` variables give the same content as text.
 */
export function complianceVariables({ account, from, templates = {} }: ComplianceInput): ComplianceVariables {
  const name = account.companyName;
  const address = account.companyAddress && addressLine(account.companyAddress);
  const placeholders = {
    unsubscribe_url: MARKS.unsubscribeUrl,
    report_abuse_url: MARKS.reportAbuseUrl,
    recipient_email: MARKS.recipient,
    sender_email: escapeHtml(from),
    company_name: escapeHtml(name ?? ''),
    company_address: escapeHtml(address ?? ''),
  };
  const snippet = (kind: ComplianceKind) =>
    OWN_LINE[0] + insert(templates[kind] ?? DEFAULT_COMPLIANCE_TEMPLATES[kind], placeholders) + OWN_LINE[1];

  const html: ComplianceVariables['html'] = {
    unsubscribe_email_html: snippet('unsubscribe'),
    report_abuse_email_html: snippet('report_abuse'),
    unsubscribe_url: MARKS.unsubscribeUrl,
    report_abuse_url: MARKS.reportAbuseUrl,
  };
  const text: ComplianceVariables['text'] = {
    unsubscribe_url: MARKS.unsubscribeUrl,
    report_abuse_url: MARKS.reportAbuseUrl,
  };
  if (name && address) {
    html.company_address_html = snippet('company_address');
    html.company_address = escapeHtml(`${name}, ${address}`);
    text.company_address = `${name}, ${address}`;
  }
  for (const [variable, alias] of INSERTED) {
    const value = html[variable];
    if (value === undefined) continue;
    html[alias] = value;
    for (const name of [variable, alias]) {
      // Few texts use these, and every send passes here: derived when it is asked for.
      Object.defineProperty(text, name, { enumerable: true, get: () => textFromHtml(value) });
    }
  }
  return { html, text };
}

/** Unknown names were refused when the template was saved; should one slip through, it shows as nothing. */
function insert(source: string, placeholders: Record<string, string>): string {
  const template = parseTemplate(source);
  const nothing = Object.fromEntries(template.names.map((name) => [name, '']));
  const rendered = renderTemplate(template, 'html', {}, { ...nothing, ...placeholders });
  return typeof rendered === 'string' ? rendered : '';
}

/** One line, as in a footer. */
function addressLine({ line1, line2, city, region, postalCode, country }: CompanyAddress): string {
  const place = [city, [region, postalCode].filter(Boolean).join(' ')].filter(Boolean).join(', ');
  return [line1, line2, place, country].filter(Boolean).join(', ');
}
