/**
 * Templates: `{{name}}` in a subject, html or text is replaced by a value. No code, no loops. Owns the syntax,
 * the escaping and the service's own names; knows nothing of where values come from. Linear in the source's
 * length whatever it holds, and never reaches an object's prototype.
 *
 * - `{{name}}`, `{{ name }}`: the value; in html escaped. `{{{name}}}`: the value as it is.
 * - `{{name|default}}`: the default, blanks around it dropped, stands in for a value that is missing, null or
 *   empty, and is escaped like one. It may hold neither brace nor line break.
 * - `\{{` writes two literal braces, so `\{{name}}` shows `{{name}}`.
 * - `a.b` walks objects.
 * - Whatever else stands in braces stays as it is (style sheets and other template languages have theirs); what
 *   looks like a slip is listed in `leftovers`, so that a caller can be warned of `{{first name}}`.
 */
export type TemplateKind = 'html' | 'text' | 'subject';

/** Names that only the service fills in; their values go in raw. */
export const SERVICE_VARIABLES = [
  'company_address_html',
  'unsubscribe_email_html',
  'report_abuse_email_html',
  'unsubscribe_url',
  'report_abuse_url',
  'company_address',
] as const;

export type ServiceVariable = (typeof SERVICE_VARIABLES)[number];

export interface Slot {
  name: string;
  /** Written with three braces. */
  raw: boolean;
  /** Null when none is given. */
  fallback: string | null;
  /** Offsets of its first brace and behind its last one in the source. */
  start: number;
  end: number;
}

export interface Template {
  /** Literal texts around the slots: always one more than there are slots. */
  texts: string[];
  slots: Slot[];
  /** The names used, each once, in order of first use. */
  names: string[];
  /** The first few `{{…}}` that are no slots. */
  leftovers: string[];
}

/**
 * missing: no such variable, or null. not-text: an object or a list. line-break: in a subject. nul: U+0000,
 * which nothing may hold (it would forge a mark of content.ts). too-long: the text grew over the limit.
 */
export interface TemplateProblem {
  name: string;
  reason: 'missing' | 'not-text' | 'line-break' | 'nul' | 'too-long';
}

/** Sticky: name and default behind the opening braces. */
const INSIDE = /[ \t\r\n]*([A-Za-z_][A-Za-z0-9_.]*)[ \t\r\n]*(?:\|([^{}\r\n]*))?/y;
const LEFTOVER = /\{\{[ \t]*[^{}\s][^{}\r\n]{0,80}\}\}/y;
const MAX_LEFTOVERS = 20;

/** Takes a template apart once; the result can be rendered many times. Never fails. */
export function parseTemplate(source: string): Template {
  const texts: string[] = [];
  const slots: Slot[] = [];
  const leftovers: string[] = [];
  let literal = '';
  let from = 0;
  let at = source.indexOf('{{');
  while (at !== -1) {
    if (at > from && source[at - 1] === '\\') {
      literal += `${source.slice(from, at - 1)}{{`;
      from = at + 2;
      at = source.indexOf('{{', from);
      continue;
    }
    const slot = readSlot(source, at);
    if (slot) {
      texts.push(literal + source.slice(from, at));
      slots.push(slot);
      literal = '';
      from = slot.end;
      at = source.indexOf('{{', from);
      continue;
    }
    if (leftovers.length < MAX_LEFTOVERS) {
      const leftover = matchAt(LEFTOVER, source, at);
      if (leftover) leftovers.push(leftover[0]);
    }
    at = source.indexOf('{{', at + 1);
  }
  texts.push(literal + source.slice(from));
  return { texts, slots, names: [...new Set(slots.map((slot) => slot.name))], leftovers };
}

/** The slot whose first brace is at `start`, if there is one. */
function readSlot(source: string, start: number): Slot | null {
  const raw = source[start + 2] === '{';
  const inside = matchAt(INSIDE, source, start + (raw ? 3 : 2));
  if (!inside) return null;
  const [all, name = '', fallback] = inside;
  const closing = raw ? '}}}' : '}}';
  const close = inside.index + all.length;
  if (!source.startsWith(closing, close)) return null;
  return { name, raw, fallback: fallback?.trim() ?? null, start, end: close + closing.length };
}

function matchAt(sticky: RegExp, text: string, at: number): RegExpExecArray | null {
  sticky.lastIndex = at;
  return sticky.exec(text);
}

export interface RenderOptions {
  /** A text of more characters is not finished: a long value may be named a thousand times. */
  limit?: number;
  /** Names that may be missing: they are empty then. */
  optional?: ReadonlySet<string>;
}

/**
 * Fills a template in. `variables` is the caller's JSON object. `service` holds the service's own values for this
 * kind of text, with marks (content.ts) where copies differ: they win and go in raw. A reserved name that
 * `service` lacks is missing, whatever the caller has. Returns the text, or every variable that is in the way.
 */
export function renderTemplate(
  template: Template,
  kind: TemplateKind,
  variables: Readonly<Record<string, unknown>>,
  service: Readonly<Record<string, string>> = {},
  { limit = Number.POSITIVE_INFINITY, optional = NONE }: RenderOptions = {},
): string | TemplateProblem[] {
  const problems = new Map<string, TemplateProblem>();
  let text = template.texts[0] ?? '';
  for (const [index, slot] of template.slots.entries()) {
    const filled = fill(slot, kind, variables, service, optional);
    if (typeof filled === 'string') text += filled;
    else problems.set(slot.name, { name: slot.name, reason: filled.reason });
    text += template.texts[index + 1] ?? '';
    if (text.length > limit) return [{ name: slot.name, reason: 'too-long' }];
  }
  return problems.size > 0 ? [...problems.values()] : text;
}

type Unusable = Pick<TemplateProblem, 'reason'>;

const NONE: ReadonlySet<string> = new Set();

const MISSING: Unusable = { reason: 'missing' };
const NOT_TEXT: Unusable = { reason: 'not-text' };
const LINE_BREAK: Unusable = { reason: 'line-break' };
const NUL: Unusable = { reason: 'nul' };

function fill(
  slot: Slot,
  kind: TemplateKind,
  variables: Readonly<Record<string, unknown>>,
  service: Readonly<Record<string, string>>,
  optional: ReadonlySet<string>,
): string | Unusable {
  const ours = Object.hasOwn(service, slot.name) ? service[slot.name] : undefined;
  if (ours !== undefined && ours !== '') return ours;
  const escaping = kind === 'html' && !slot.raw;
  const found =
    ours ?? (isServiceVariable(slot.name) ? MISSING : valueOf(lookUp(variables, slot.name), kind));
  const value = found === MISSING && optional.has(slot.name) ? '' : found;
  const shown = value === MISSING || value === '' ? (slot.fallback ?? value) : value;
  return typeof shown === 'string' && escaping ? escapeHtml(shown) : shown;
}

/** True for a name that callers may not supply. */
export function isServiceVariable(name: string): name is ServiceVariable {
  return (SERVICE_VARIABLES as readonly string[]).includes(name);
}

/** Own properties of plain objects only: `constructor` and `__proto__` are as unknown as any other name. */
function lookUp(variables: Readonly<Record<string, unknown>>, name: string): unknown {
  let value: unknown = variables;
  for (const step of name.split('.')) {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
    if (!Object.hasOwn(value, step)) return undefined;
    value = (value as Record<string, unknown>)[step];
  }
  return value;
}

function valueOf(value: unknown, kind: TemplateKind): string | Unusable {
  if (value === undefined || value === null) return MISSING;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (typeof value !== 'string') return NOT_TEXT;
  if (value.includes('\u0000')) return NUL;
  return kind === 'subject' && /[\r\n]/.test(value) ? LINE_BREAK : value;
}

const ESCAPES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** For element content and quoted attribute values. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (char) => ESCAPES[char] ?? char);
}
