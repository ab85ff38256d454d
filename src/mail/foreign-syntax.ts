import type { Work } from '../core/concurrency/slices.ts';

/*
 * Recognizes the syntax of other template languages (Liquid, Jinja, Twig, Handlebars, Mailjet, Mailchimp and others), which
 * would be sent as text. Names the equivalent in ours where the intention is certain.
 */

/** Text of another template language, shortened, and what to write in its place: the rest of a sentence. */
export interface ForeignSyntax {
  text: string;
  advice: string;
}

/** Texts that are named of one template. */
export const MAX_FOREIGN = 20;
const MAX_SHOWN = 80;
/** Characters of an expression in braces that is read. */
const MAX_EXPRESSION = 300;

const NO_FILTERS =
  'values are inserted as given: write the variable without a filter, and give its final value';
const NO_LOGIC = 'templates have no conditions, loops or functions: give the finished text as a variable';
const NO_TAGS = `${NO_LOGIC} ("&#123;%" in html shows the characters)`;

/** Filters whose names are unlikely default values: they need no argument to be recognized. */
const FILTERS: ReadonlySet<string> = new Set(
  [
    'upper lower upcase downcase uppercase lowercase ucfirst lcfirst capitalize capitalize_all capfirst title titlecase titleize',
    'camelcase camelize underscore dasherize humanize handleize slugify slug parameterize pluralize singularize',
    'urlencode url_encode urlize urldecode url_decode url_escape url_param_escape iriencode uri_escape cgi_escape encode_uri',
    'encodeuricomponent escape escape_once escapejs force_escape autoescape html_escape xml_escape unescape safe raw e',
    'striptags strip_tags strip_html strip_newlines nl2br newline_to_br linebreaks linebreaksbr linebreaks_br',
    'trim ltrim rtrim strip lstrip rstrip truncate truncatechars truncatewords wordwrap wordcount',
    'json tojson to_json json_encode jsonencode to_s to_i dump inspect',
    'md5 sha1 sha256 hmac_sha256 base64_encode base64_decode b64encode b64decode base64',
    'date date_format datetime datetimeformat dateformat format_date strftime time_tag timeago',
    'floatformat intcomma number_format format_number number_with_delimiter filesizeformat money money_with_currency money_without_currency money_without_trailing_zeros',
    'round ceil floor abs length reverse sort uniq compact default_if_none t trans translate',
  ].flatMap((line) => line.split(' ')),
);
/** Recognized with an argument only: their names can be default values. */
const FILTERS_WITH_ARGUMENT: ReadonlySet<string> = new Set(
  'append prepend replace replace_first remove remove_first split join slice sort_by map where first last size plus minus times divided_by modulo at_least at_most number currency format string list sum time concat cut add lookup'.split(
    ' ',
  ),
);
const DEFAULTS: ReadonlySet<string> = new Set([
  'default',
  'default_if_none',
  'd',
  'fallback',
  'ifempty',
  'if_empty',
]);

const NAME = /^[A-Za-z_][A-Za-z0-9_.]*$/;
const QUOTED = /^(?:"([^"{}|\r\n]*)"|'([^'{}|\r\n]*)')$/;

/** Advice about the part of a variable after `|`; null: it is a default of our own syntax. */
export function foreignFallback(name: string, fallback: string): string | null {
  const text = decoded(fallback).trim();
  if (text.startsWith('|')) return defaultForm(name, text.slice(1));
  const filters = splitFilters(text);
  const [first = ''] = filters;
  const own = filterArgument(first);
  if (own !== null && DEFAULTS.has(own.name))
    return filters.length === 1 ? defaultForm(name, own.argument) : withDefault(name);
  return filters.some(isFilter) ? NO_FILTERS : null;
}

/** Advice about text in double braces that is not a variable; null: it is not of a known language. */
export function foreignExpression(inside: string): string | null {
  const text = decoded(inside)
    .trim()
    .replace(/^[-~](?=\s|[A-Za-z#/])/, '')
    .replace(/(?<=\s|[A-Za-z0-9_)"'])[-~]$/, '')
    .trim();
  if (/^[#/^>!]/.test(text)) return NO_LOGIC;
  const [expression = '', ...filters] = splitFilters(text);
  const named =
    /^([A-Za-z_][A-Za-z0-9_.]*)\s*(?:\?\?|\?:|\bor\b|,)\s*(?:(?:fallback|default)\s*=\s*)?(.*)$/s.exec(
      expression,
    );
  if (named !== null && QUOTED.test(named[2]?.trim() ?? ''))
    return defaultForm(named[1] ?? '', named[2] ?? '');
  const attribute = /^([A-Za-z_][A-Za-z0-9_.]*)\s+(?:fallback|default)\s*=\s*(.*)$/s.exec(expression);
  if (attribute !== null) return defaultForm(attribute[1] ?? '', attribute[2] ?? '');
  const inserted = /^insert\s+([A-Za-z_][A-Za-z0-9_.]*)(?:\s+["']default=([^"']*)["'])?$/.exec(expression);
  if (inserted !== null)
    return inserted[2] === undefined
      ? plainForm(inserted[1])
      : defaultForm(inserted[1] ?? '', `"${inserted[2]}"`);
  const typed = /^(?:var|data|ctx):([A-Za-z_][A-Za-z0-9_.]*)(?::(.*))?$/s.exec(expression);
  if (typed !== null)
    return typed[2] === undefined ? plainForm(typed[1]) : defaultForm(typed[1] ?? '', typed[2]);
  const prefixed = /^[.$&@]\s*([A-Za-z_][A-Za-z0-9_.]*)$/.exec(expression);
  if (prefixed !== null && filters.length === 0) return plainForm(prefixed[1]);
  const name = /^(?:\$\{\s*)?([A-Za-z_][A-Za-z0-9_.]*)(?:\s*\})?$/.exec(expression.trim())?.[1];
  if (name !== undefined && filters.length > 0) {
    const advice = foreignFallback(name, filters.join('|'));
    if (advice !== null) return advice;
  }
  if (/^\$\{[^{}]*\}$/.test(expression.trim())) return plainForm(name);
  if (filters.some((filter) => isFilter(filter) || isDefault(filter))) return NO_FILTERS;
  if (
    /\|\||&&|\?\?|[=!<>]=|\s\?\s|(?:"[^"]*"|'[^']*')|\w\[|^[A-Za-z_][A-Za-z0-9_.]*\(|\s(?:or|and|if|unless)\s/.test(
      text,
    )
  )
    return NO_LOGIC;
  return null;
}

/** How other languages begin a tag outside of double braces: the characters to search for, and the whole of it. */
const TAGS: { start: string; whole: RegExp; advice(name: string): string }[] = [
  { start: '{%', whole: /\{%[-+~]?\s{0,20}[A-Za-z][^%]{0,300}%\}/y, advice: () => NO_TAGS },
  {
    start: '<%',
    whole: /<%[-=~]?\s{0,20}([A-Za-z_@][A-Za-z0-9_.]{0,60})[^%]{0,300}%>/y,
    advice: (name) => (name.startsWith('@') ? plainForm(name.slice(1)) : plainForm(name)),
  },
  {
    start: '*|',
    whole: /\*\|([A-Z][A-Z0-9_]{0,60})(?::[^|]{0,60})?\|\*/y,
    advice: (name) => (/^(?:IF|ELSE|ELSEIF|END|IFNOT|INTERESTED)$/.test(name) ? NO_LOGIC : plainForm(name)),
  },
  { start: '%recipient', whole: /%recipient\.([A-Za-z_][A-Za-z0-9_.]{0,60})%/y, advice: plainForm },
  { start: '%%', whole: /%%([A-Za-z_][A-Za-z0-9_]{0,60})%%/y, advice: plainForm },
];
const STARTS_PER_STEP = 1024;

/** Finds tags that are not in double braces, up to MAX_FOREIGN texts in all. */
export function* findForeignTagsInSteps(source: string, found: ForeignSyntax[]): Work<void> {
  for (const { start, whole, advice } of TAGS) {
    let starts = 0;
    for (
      let at = source.indexOf(start);
      at !== -1 && found.length < MAX_FOREIGN;
      at = source.indexOf(start, at + 1)
    ) {
      if (++starts % STARTS_PER_STEP === 0) yield;
      whole.lastIndex = at;
      const match = whole.exec(source);
      if (match === null) continue;
      addForeign(found, match[0], advice(match[1] ?? ''));
      at += match[0].length - 1;
    }
  }
}

/** Sticky: text in double braces, from the first brace on, with the braces of `{{${name}}}`. */
const BRACES = /\{\{\{?((?:\s{0,20}\$\{[^{}]{0,80}\})?[^{}]{0,300})\}\}/y;

/** Adds text in double braces at `start`, which is not a variable, if it is of another language. */
export function addForeignBraces(found: ForeignSyntax[], source: string, start: number): boolean {
  BRACES.lastIndex = start;
  const match = BRACES.exec(source);
  if (match === null) return false;
  const advice = foreignExpression(match[1] ?? '');
  if (advice === null) return false;
  addForeign(found, match[0], advice);
  return true;
}

/** Adds a text, unless it is known or there are MAX_FOREIGN. */
export function addForeign(found: ForeignSyntax[], text: string, advice: string): void {
  const line = text.replaceAll(/\s+/g, ' ');
  // A copy: a slice would keep the whole source in memory.
  const shown = Buffer.from(line.length > MAX_SHOWN ? `${line.slice(0, MAX_SHOWN)}…` : line).toString();
  if (found.length < MAX_FOREIGN && !found.some((other) => other.text === shown))
    found.push({ text: shown, advice });
}

function plainForm(name = ''): string {
  return `write {{${name}}}`;
}

function withDefault(name: string): string {
  return `write {{${name}|text}}, with the text that replaces a missing value`;
}

/** `value`: a literal of another language. */
function defaultForm(name: string, value: string): string {
  const quoted = QUOTED.exec(value.trim());
  const text = (quoted?.[1] ?? quoted?.[2] ?? '').trim();
  if (!NAME.test(name) || quoted === null || text === '') return withDefault(name);
  // Quotes were decoded for this; in our syntax the text is inserted as it is written.
  return `write {{${name}|${text}}}`;
}

/** `default: 'x'`, `default('x')`, `default="x"`: the name and the first argument; null: not of this form. */
function filterArgument(filter: string): { name: string; argument: string } | null {
  const match = /^\s*([A-Za-z_][A-Za-z0-9_]*)\s*(?::|=|\()(.*)$/s.exec(filter);
  if (match === null) return null;
  const rest = (match[2] ?? '').trim();
  // Django and Jinja have further arguments: default('x', true).
  const argument = /^(?:"[^"]*"|'[^']*')/.exec(rest)?.[0] ?? rest;
  return { name: match[1] ?? '', argument };
}

function isDefault(filter: string): boolean {
  const own = filterArgument(filter);
  return own !== null && DEFAULTS.has(own.name);
}

function isFilter(filter: string): boolean {
  const own = filterArgument(filter);
  if (own === null) return FILTERS.has(filter.trim());
  if (FILTERS.has(own.name) || FILTERS_WITH_ARGUMENT.has(own.name) || DEFAULTS.has(own.name))
    return !own.argument.startsWith('//');
  return /^["']/.test(own.argument) || /^\s*[a-z_]\w*\(\s*\)\s*$/.test(filter);
}

/** The parts between `|` that are not in quotes. */
function splitFilters(text: string): string[] {
  const parts: string[] = [''];
  let quote = '';
  for (const char of text) {
    if (quote === '' && char === '|') parts.push('');
    else parts[parts.length - 1] += char;
    if (quote === '' && (char === '"' || char === "'")) quote = char;
    else if (char === quote) quote = '';
  }
  return parts;
}

/** Quotes and operators as editors of html write them. */
function decoded(text: string): string {
  return text
    .slice(0, MAX_EXPRESSION)
    .replaceAll(
      /&(?:quot|#34|#x22|ldquo|rdquo|bdquo|#8220|#8221|#8222);|[\u201c\u201d\u201e\u00ab\u00bb]/gi,
      '"',
    )
    .replaceAll(/&(?:apos|#0?39|#x27|lsquo|rsquo|sbquo|#8216|#8217|#8218);|[\u2018\u2019\u201a]/gi, "'")
    .replaceAll(/&(?:nbsp|#160|#xa0);|\u00a0/gi, ' ')
    .replaceAll(/&(?:gt|#62);/gi, '>')
    .replaceAll(/&(?:lt|#60);/gi, '<')
    .replaceAll(/&(?:amp|#38);/gi, '&');
}
