import { type Work, withoutPause } from '../core/concurrency/slices.ts';
import {
  addForeign,
  addForeignBraces,
  type ForeignSyntax,
  findForeignTagsInSteps,
  foreignFallback,
  MAX_FOREIGN,
} from './foreign-syntax.ts';
import { escapeHtmlInSteps } from './html/escape.ts';

/*
 * Templates: `{{name}}` in a subject, HTML or text is replaced by a value. No code, no loops. Defines the syntax, the
 * escaping and the service variables. Linear in the length of the source, whatever its content, and never reads the
 * prototype of an object.
 *
 * - `{{name}}`, `{{ name }}`: the value, escaped in HTML. `{{{name}}}`: the value unescaped.
 * - `{{name|default}}`: the trimmed default replaces a value that is missing, null or empty, and is escaped like a value.
 *   It must not contain braces or line breaks.
 * - `\{{` inserts two literal braces: `\{{name}}` inserts `{{name}}`.
 * - `a.b` reads properties of objects.
 * - Other text in braces is not changed (style sheets and other template languages use braces). Probable mistakes, such
 *   as `{{first name}}`, are listed in `leftovers`: for a warning, or a refusal if there is a value of that name. What is
 *   the syntax of another template language (foreign-syntax.ts) is listed in `foreign`.
 */

/** Where a template is used, which determines its escaping. */
export type TemplateKind = 'html' | 'text' | 'subject';

/** Variables that only the service sets; their values are inserted unescaped. */
export const SERVICE_VARIABLES = [
  'company_address_html',
  'unsubscribe_email_html',
  'report_abuse_email_html',
  'company_address_text',
  'unsubscribe_email_text',
  'report_abuse_email_text',
  'unsubscribe_url',
  'report_abuse_url',
  'preferences_url',
  'view_url',
  'company_address',
] as const;

export type ServiceVariable = (typeof SERVICE_VARIABLES)[number];

export interface TemplateSlot {
  name: string;
  /** Written with three braces: the value is inserted unescaped. */
  raw: boolean;
  /** The default, null for none. */
  fallback: string | null;
  /** Offsets in the source: of its first brace, and after its last one. */
  start: number;
  end: number;
}

export interface Template {
  /** Literal texts around the slots: one more than there are slots. */
  texts: string[];
  slots: TemplateSlot[];
  /** The names used, without duplicates, in order of first use. */
  names: string[];
  /** The first `{{…}}` that are not slots, without duplicates. They do not keep the source in memory. */
  leftovers: string[];
  /** The first texts of other template languages, which are not in `leftovers`. Text in braces among them is sent unchanged. */
  foreign: ForeignSyntax[];
  /** There are more than MAX_SLOTS slots: the other fields are empty, and the template cannot be rendered. */
  tooLong: boolean;
}

/**
 * missing: no such variable, or null. not-text: an object or an array. line-break: in a subject. nul: U+0000, which is
 * not allowed (it would forge a mark of content.ts). too-long: the text exceeds the limit.
 */
export interface TemplateProblem {
  name: string;
  reason: 'missing' | 'not-text' | 'line-break' | 'nul' | 'too-long';
}

/** Sticky: name and default after the opening braces. */
const INSIDE = /[ \t\r\n]*([A-Za-z_][A-Za-z0-9_.]*)[ \t\r\n]*(?:\|([^{}\r\n]*))?/y;
const LEFTOVER = /\{\{[ \t]*[^{}\s][^{}\r\n]{0,80}\}\}/y;
const MAX_LEFTOVERS = 20;
/** Uses of variables in one template. */
export const MAX_SLOTS = 10_000;
/** Pairs of braces that are read between two yields. */
const PAIRS_PER_STEP = 256;
const OPEN_BRACE = 0x7b;

/**
 * What double braces mean. variables: those of the sender and of the service. service: of the service alone; all others, and
 * backslashes before braces, are text. marks: nothing; the variables of the service are marks (`markOf`), as Liquid
 * inserts them.
 */
export type TemplateSyntax = 'variables' | 'service' | 'marks';

/** What stands for a variable of the service in a text that Liquid rendered. NUL is not allowed in text of callers. */
export function markOf(name: string): string {
  return `\u0000${name}\u0000`;
}

// oxlint-disable-next-line no-control-regex -- NUL, which texts of callers cannot contain, encloses the name.
const MARK = /\u0000([a-z_]{1,40})\u0000/g;

/** A template whose slots are the marks of a text. */
function parseMarks(source: string): Template {
  const texts: string[] = [];
  const slots: TemplateSlot[] = [];
  let from = 0;
  for (const { 0: mark, 1: name = '', index } of source.matchAll(MARK)) {
    if (slots.length === MAX_SLOTS)
      return { texts: [], slots: [], names: [], leftovers: [], foreign: [], tooLong: true };
    texts.push(source.slice(from, index));
    from = index + mark.length;
    slots.push({ name, raw: false, fallback: null, start: index, end: from });
  }
  texts.push(source.slice(from));
  const names = [...new Set(slots.map((slot) => slot.name))];
  return { texts, slots, names, leftovers: [], foreign: [], tooLong: false };
}

/** Parses a template; the result can be rendered many times. Never throws. */
export function parseTemplate(source: string, syntax?: TemplateSyntax): Template {
  return withoutPause(parseTemplateInSteps(source, syntax));
}

/** `parseTemplate` in steps. */
export function* parseTemplateInSteps(source: string, syntax: TemplateSyntax = 'variables'): Work<Template> {
  if (syntax === 'marks') return parseMarks(source);
  const texts: string[] = [];
  const slots: TemplateSlot[] = [];
  const leftovers: string[] = [];
  const foreign: ForeignSyntax[] = [];
  /** The text since the last slot: what was joined, and pieces of the rest. */
  let earlier = '';
  let literal: string[] = [];
  let from = 0;
  let at = source.indexOf('{{');
  for (let pairs = 1; at !== -1; pairs++) {
    if (pairs % PAIRS_PER_STEP === 0) {
      // Joining a million pieces at the end would take long.
      earlier += literal.join('');
      literal = [];
      yield;
    }
    if (syntax === 'variables' && at > from && source[at - 1] === '\\') {
      literal.push(source.slice(from, at - 1), '{{');
      from = at + 2;
      at = source.indexOf('{{', from);
      continue;
    }
    const slot = readSlot(source, at);
    if (slot && (syntax === 'variables' || isServiceVariable(slot.name))) {
      if (slots.length === MAX_SLOTS)
        return { texts: [], slots: [], names: [], leftovers, foreign, tooLong: true };
      literal.push(source.slice(from, at));
      texts.push(earlier + literal.join(''));
      slots.push(slot);
      if (slot.fallback !== null && foreign.length < MAX_FOREIGN) {
        const advice = foreignFallback(slot.name, slot.fallback);
        if (advice !== null) addForeign(foreign, source.slice(slot.start, slot.end), advice);
      }
      earlier = '';
      literal = [];
      from = slot.end;
      at = source.indexOf('{{', from);
      continue;
    }
    const isForeign =
      syntax === 'variables' && foreign.length < MAX_FOREIGN && addForeignBraces(foreign, source, at);
    if (!isForeign && leftovers.length < MAX_LEFTOVERS) {
      const leftover = matchAt(LEFTOVER, source, at)?.[0];
      if (leftover !== undefined && !leftovers.includes(leftover)) leftovers.push(copyOf(leftover));
    }
    at = source.indexOf('{{', Math.max(at + 1, endOfBraces(source, at) - 3));
  }
  literal.push(source.slice(from));
  texts.push(earlier + literal.join(''));
  const names = [...new Set(slots.map((slot) => slot.name))];
  if (syntax === 'variables') yield* findForeignTagsInSteps(source, foreign);
  return { texts, slots, names, leftovers, foreign, tooLong: false };
}

/** A copy that shares no memory with the source: a slice keeps all of it. */
export function copyOf(slice: string): string {
  return Buffer.from(slice, 'utf16le').toString('utf16le');
}

/** The offset after a run of opening braces: a slot begins with the last three or the last two of them. */
function endOfBraces(source: string, start: number): number {
  let at = start;
  while (source.charCodeAt(at) === OPEN_BRACE) at++;
  return at;
}

/** The slot whose first brace is at `start`, null for none. */
function readSlot(source: string, start: number): TemplateSlot | null {
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
  /** Maximum number of characters: a template may use a long value a thousand times. */
  limit?: number;
  /** Names that may be missing; their value is then empty. */
  optional?: ReadonlySet<string>;
  /** Receives the positions of the service variables in the rendered text. */
  positions?: SlotPosition[];
}

/** The position of a value in a rendered text. */
export interface SlotPosition {
  name: string;
  start: number;
}

/**
 * Renders a template. `variables`: the caller's JSON object. `service`: the values of service variables for this kind of
 * text, with marks (content.ts) where copies differ; they take precedence and are inserted unescaped. A service variable
 * without value is missing, even if the caller has one of that name. Returns the text, or the variables that cannot be
 * inserted, at most MAX_PROBLEMS.
 */
export function renderTemplate(
  template: Template,
  kind: TemplateKind,
  variables: Readonly<Record<string, unknown>>,
  service: Readonly<Record<string, string>> = {},
  options: RenderOptions = {},
): string | TemplateProblem[] {
  return withoutPause(renderTemplateInSteps(template, kind, variables, service, options));
}

/** Rendering stops after this number of problems. */
export const MAX_PROBLEMS = 100;
const SLOTS_PER_STEP = 256;
/** More characters are joined in a separate step. */
const LONG_TEXT = 256 * 1024;

/** `renderTemplate` in steps. */
export function* renderTemplateInSteps(
  template: Template,
  kind: TemplateKind,
  variables: Readonly<Record<string, unknown>>,
  service: Readonly<Record<string, string>> = {},
  { limit = Number.POSITIVE_INFINITY, optional = NONE, positions }: RenderOptions = {},
): Work<string | TemplateProblem[]> {
  if (template.tooLong) return [{ name: '', reason: 'too-long' }];
  const problems = new Map<string, TemplateProblem>();
  /** Values as they are inserted, by slot: a long value may be used thousands of times. */
  const filled = new Map<string, string | Unusable>();
  const pieces = [template.texts[0] ?? ''];
  /** Whether only spaces and tabs follow the last line break. */
  let isLineStart = endsAtLineStart(pieces[0] ?? '', true);
  let length = pieces[0]?.length ?? 0;
  for (const [index, slot] of template.slots.entries()) {
    if (index % SLOTS_PER_STEP === SLOTS_PER_STEP - 1) yield;
    const key = slotKey(slot);
    let value = filled.get(key);
    if (value === undefined) {
      value = yield* fillInSteps(slot, kind, variables, service, { limit: limit - length, optional });
      filled.set(key, value);
    }
    if (positions !== undefined && isServiceVariable(slot.name))
      positions.push({ name: slot.name, start: length });
    const text = template.texts[index + 1] ?? '';
    if (typeof value === 'string') {
      if (!isLineStart && startsOwnLine(kind, slot, value)) {
        pieces.push('\n');
        length++;
      }
      pieces.push(value, text);
      if (kind === 'text') isLineStart = endsAtLineStart(text, endsAtLineStart(value, isLineStart));
    } else if (value === TOO_LONG) return [{ name: slot.name, reason: 'too-long' }];
    else problems.set(slot.name, { name: slot.name, reason: value.reason });
    length += text.length + (typeof value === 'string' ? value.length : 0);
    if (length > limit) return [{ name: slot.name, reason: 'too-long' }];
    if (problems.size === MAX_PROBLEMS) break;
  }
  if (problems.size > 0) return [...problems.values()];
  if (length <= LONG_TEXT) return pieces.join('');
  yield;
  const joined = pieces.join('');
  yield;
  return joined;
}

/** Equal for slots with the same value. */
export function slotKey({ raw, name, fallback }: TemplateSlot): string {
  return `${raw ? '{' : ''}${name}${fallback === null ? '' : `|${fallback}`}`;
}

/** Compliance snippets: in text each starts on a new line. In HTML their own element does. */
const OWN_LINE = /^(?:company_address|unsubscribe_email|report_abuse_email)_(?:html|text)$/;

/** Whether a value starts on a new line: then a line break is inserted before it, unless it is at a line start. */
export function startsOwnLine(kind: TemplateKind, slot: Pick<TemplateSlot, 'name'>, value: string): boolean {
  return kind === 'text' && value !== '' && OWN_LINE.test(slot.name);
}

/** Whether only spaces and tabs follow the last line break of `text`; `before`: whether that holds before `text`. */
export function endsAtLineStart(text: string, before: boolean): boolean {
  let at = text.length - 1;
  while (at >= 0 && (text[at] === ' ' || text[at] === '\t')) at--;
  return at < 0 ? before : text[at] === '\n' || text[at] === '\r';
}

/** Why a value cannot be inserted. */
export type Unusable = Pick<TemplateProblem, 'reason'>;

const NONE: ReadonlySet<string> = new Set();

const MISSING: Unusable = { reason: 'missing' };
const NOT_TEXT: Unusable = { reason: 'not-text' };
const LINE_BREAK: Unusable = { reason: 'line-break' };
const NUL: Unusable = { reason: 'nul' };
const TOO_LONG: Unusable = { reason: 'too-long' };

/** Returns the text to insert for a slot, in steps. `limit`: a longer value is a problem, and is not escaped. */
export function* fillInSteps(
  slot: TemplateSlot,
  kind: TemplateKind,
  variables: Readonly<Record<string, unknown>>,
  service: Readonly<Record<string, string>>,
  { limit, optional }: { limit: number; optional: ReadonlySet<string> },
): Work<string | Unusable> {
  const serviceValue = Object.hasOwn(service, slot.name) ? service[slot.name] : undefined;
  if (serviceValue !== undefined && serviceValue !== '') return serviceValue;
  const escaping = kind === 'html' && !slot.raw;
  const found =
    serviceValue ?? (isServiceVariable(slot.name) ? MISSING : toText(readPath(variables, slot.name), kind));
  const value = found === MISSING && optional.has(slot.name) ? '' : found;
  const shown = value === MISSING || value === '' ? (slot.fallback ?? value) : value;
  if (typeof shown !== 'string') return shown;
  if (shown.length > limit) return TOO_LONG;
  return escaping ? ((yield* escapeHtmlInSteps(shown, limit)) ?? TOO_LONG) : shown;
}

/** Whether callers cannot set a variable of this name. */
export function isServiceVariable(name: string): name is ServiceVariable {
  return (SERVICE_VARIABLES as readonly string[]).includes(name);
}

/** Names in a path: more than the nesting limit of variables allows. */
const MAX_PATH_LENGTH = 65;

/** Reads own properties only: `function Object() { [native code] }` and `[object Object]` are undefined like any other unknown name. */
function readPath(variables: Readonly<Record<string, unknown>>, name: string): unknown {
  let value: unknown = variables;
  for (const step of name.split('.', MAX_PATH_LENGTH)) {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
    if (!Object.hasOwn(value, step)) return undefined;
    value = (value as Record<string, unknown>)[step];
  }
  return value;
}

function toText(value: unknown, kind: TemplateKind): string | Unusable {
  if (value === undefined || value === null) return MISSING;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (typeof value !== 'string') return NOT_TEXT;
  if (value.includes('\u0000')) return NUL;
  return kind === 'subject' && /[\r\n]/.test(value) ? LINE_BREAK : value;
}
