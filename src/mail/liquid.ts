import {
  CaptureTag,
  Context,
  Drop,
  type Emitter,
  IncludeTag,
  LayoutTag,
  Liquid,
  LiquidError,
  type Template as Node,
  Output,
  RenderTag,
  TypeGuards,
  toValueSync,
  type Variable,
} from 'liquidjs';
import { escapeHtml } from './html/escape.ts';
import { isServiceVariable, MAX_SLOTS, markOf, type TemplateKind, type TemplateProblem } from './template.ts';

/*
 * Liquid templates (liquidjs): parses and renders one part of a message. For threads that may be terminated: a template can
 * take long whatever the limits, in a filter or in the parser.
 *
 * - Values are escaped in HTML, except those of the filter `raw`. What `capture` collects is not escaped again.
 * - Variables of the service insert a mark (`markOf`), which is replaced like those of the simple syntax. A value cannot
 *   contain a mark, because it must not contain NUL.
 * - A variable without a value is a problem, except in conditions, in `assign` and before `default`. Null is no value.
 * - Tags and filters are those of TAGS and FILTERS. Partials are those that are passed, in html only; there are no files. Their
 *   names are literals, so that those of a template are known without its values (`partialNames`).
 *
 * The text at the top level of a template is the same for all recipients; `values` are what differs: one for each tag or
 * output at the top level.
 */

/** The html of partials by name. */
export type LiquidPartials = Readonly<Record<string, string>>;

/** Why a template cannot be parsed or rendered. */
export interface LiquidFault {
  /** The rest of a sentence about the template. */
  message: string;
  /** From 1; 0: unknown. */
  line: number;
  column: number;
  /** The partial that it is in; null: the template. */
  partial: string | null;
  /** It took too long, or too much memory. */
  isLimit: boolean;
}

/** A parsed part. */
export interface LiquidPart {
  kind: TemplateKind;
  liquid: Liquid;
  /** Texts around the nodes: one more than there are nodes. Variables of the service are marks. */
  texts: string[];
  nodes: Node[];
  /** The names of variables that the part and its partials use, without those of the service and its own ones. */
  names: string[];
  /** The variables of the service that it uses. */
  service: string[];
  /** An estimate of its memory. */
  bytes: number;
}

/** Estimated bytes of a part with its engine, of each tag or output, and of each character. */
const MEMORY = { part: 16 * 1024, token: 1024, character: 16 };

const TAGS: ReadonlySet<string> = new Set(
  'assign block break capture case comment continue cycle decrement for if include increment layout raw render tablerow unless #'.split(
    ' ',
  ),
);
const FILTERS: ReadonlySet<string> = new Set(
  [
    'abs append at_least at_most capitalize ceil compact concat date default divided_by downcase escape escape_once',
    'find first floor has join last lstrip map minus modulo newline_to_br plus prepend raw reject remove remove_first remove_last',
    'replace replace_first replace_last reverse round rstrip size slice sort sort_natural split strip strip_html strip_newlines',
    'sum times truncate truncatewords uniq upcase url_decode url_encode where',
  ].flatMap((line) => line.split(' ')),
);

/** Characters of a part, and of its partials together. */
export const MAX_LIQUID_SOURCE = 1024 * 1024;
/** Characters of a rendered part. */
export const MAX_LIQUID_OUTPUT = 2 * 1024 * 1024;
/** Characters and items that filters may create for one rendering. */
const MEMORY_LIMIT = 4 * 1024 * 1024;
/** Default format of the filter `date`. */
const DATE_FORMAT = '%Y-%m-%d';

/** Text that is HTML or a mark, and not escaped. */
class Markup extends Drop {
  readonly #text: string;
  constructor(text: string) {
    super();
    this.#text = text;
  }
  override valueOf(): string {
    return this.#text;
  }
  override toString(): string {
    return this.#text;
  }
}

/** A value that cannot be inserted. */
class ValueFault extends Error {
  readonly reason: TemplateProblem['reason'];
  constructor(reason: TemplateProblem['reason']) {
    super(reason);
    this.reason = reason;
  }
}

/** The parts of the texts that are inserted, until there are too many characters. */
class LimitedEmitter implements Emitter {
  buffer = '';
  write(value: unknown): void {
    const present: unknown = value ?? '';
    this.buffer += String(present);
    if (this.buffer.length > MAX_LIQUID_OUTPUT) throw new ValueFault('too-long');
  }
}

/** Captured text is markup: its outputs were escaped. */
class Capture extends CaptureTag {
  override *render(context: Context): Generator<unknown, void, string> {
    const emitter = new LimitedEmitter();
    yield this.liquid.renderer.renderTemplates(this.templates, context, emitter);
    context.bottom()[this.variable] = new Markup(emitter.buffer);
  }
}

/** Refuses a name of a partial that is not a literal, or unknown. `file`: as the library has parsed it; undefined: `{% layout none %}`. */
function checkName(file: unknown, liquid: Liquid): void {
  if (file === undefined) return;
  if (typeof file !== 'string') throw new Error('requires the name of a partial in quotes');
  if (!liquid.options.fs.existsSync(file))
    throw new Error(`there is no partial "${file}"; partials are for html`);
}

class Render extends RenderTag {
  constructor(...parsed: ConstructorParameters<typeof RenderTag>) {
    super(...parsed);
    checkName(Reflect.get(this, 'file'), this.liquid);
  }
}

class Include extends IncludeTag {
  constructor(...parsed: ConstructorParameters<typeof IncludeTag>) {
    super(...parsed);
    checkName(Reflect.get(this, 'file'), this.liquid);
  }
}

class Layout extends LayoutTag {
  constructor(...parsed: ConstructorParameters<typeof LayoutTag>) {
    super(...parsed);
    checkName(Reflect.get(this, 'file'), this.liquid);
  }
}

/** Names of partials. */
export const PARTIAL_NAME = /^[A-Za-z0-9_-]{1,100}$/;
const NAMED = /\{%-?\s*(?:render|include|layout)\s+(?:"([A-Za-z0-9_-]{1,100})"|'([A-Za-z0-9_-]{1,100})')/g;

/** The partials that html in Liquid names, also in comments; without those that they name. */
export function partialNames(html: string): string[] {
  return [...new Set([...html.matchAll(NAMED)].map(([, double, single]) => double ?? single ?? ''))];
}

/** Parses a part; a fault when it is not valid. */
export function parseLiquid(
  source: string,
  kind: TemplateKind,
  partials: LiquidPartials,
): LiquidPart | LiquidFault {
  const templates: Record<string, string> = Object.create(null);
  let length = source.length;
  let tokens = countTokens(source);
  for (const [name, body] of kind === 'html' ? Object.entries(partials) : []) {
    templates[name] = body;
    length += body.length;
    tokens += countTokens(body);
  }
  if (length > MAX_LIQUID_SOURCE)
    return limitFault(`must have at most ${MAX_LIQUID_SOURCE} characters with its partials`);
  if (tokens > MAX_SLOTS)
    return limitFault(`must have at most ${MAX_SLOTS} tags and outputs with its partials`);
  try {
    const liquid = createEngine(kind, templates);
    const part = readNodes(liquid, kind, liquid.parse(source));
    if (!('nodes' in part)) return part;
    return { ...part, bytes: MEMORY.part + MEMORY.token * tokens + MEMORY.character * length };
  } catch (error) {
    return faultOf(error);
  }
}

function limitFault(message: string): LiquidFault {
  return { message, line: 0, column: 0, partial: null, isLimit: false };
}

/** An upper bound: the parser is slow with a hundred thousand. */
function countTokens(source: string): number {
  let count = 0;
  for (let at = source.indexOf('{'); at >= 0 && count <= MAX_SLOTS; at = source.indexOf('{', at + 1)) {
    const next = source[at + 1];
    if (next !== '{' && next !== '%') continue;
    count++;
    at++;
  }
  return count;
}

function createEngine(kind: TemplateKind, templates: Record<string, string>): Liquid {
  const isHtml = kind === 'html';
  const liquid = new Liquid({
    templates,
    cache: true,
    relativeReference: false,
    strictFilters: true,
    strictVariables: true,
    lenientIf: true,
    ownPropertyOnly: true,
    jsTruthy: true,
    parseLimit: MAX_LIQUID_SOURCE,
    memoryLimit: MEMORY_LIMIT,
    timezoneOffset: 0,
    locale: 'en-US',
    dateFormat: DATE_FORMAT,
    outputEscape: (value: unknown) => (value instanceof Markup ? value.valueOf() : escaped(value)),
  });
  const escaped = (value: unknown) => (isHtml ? escapeHtml(insertable(value)) : insertable(value));
  for (const name of Object.keys(liquid.tags)) if (!TAGS.has(name)) delete liquid.tags[name];
  for (const name of Object.keys(liquid.filters)) if (!FILTERS.has(name)) delete liquid.filters[name];
  liquid.registerTag('capture', Capture);
  liquid.registerTag('render', Render);
  liquid.registerTag('include', Include);
  liquid.registerTag('layout', Layout);
  liquid.registerFilter('raw', {
    raw: true,
    handler: (value: unknown) => (value instanceof Markup ? value.valueOf() : insertable(value)),
  });
  if (isHtml) {
    for (const [name, filter] of Object.entries(MARKUP_FILTERS))
      liquid.registerFilter(name, (value: unknown) =>
        value instanceof Markup ? value : new Markup(filter(textOf(value))),
      );
  }
  return liquid;
}

/** Filters of HTML whose result is not escaped again. */
const MARKUP_FILTERS: Record<string, (text: string) => string> = {
  escape: escapeHtml,
  escape_once: (text) =>
    text.replaceAll(/&(?!(?:[A-Za-z]{1,32}|#\d{1,7}|#x[0-9A-Fa-f]{1,6});)|[<>"']/g, escapeHtml),
  newline_to_br: (text) => escapeHtml(text).replaceAll(/\r?\n/g, '<br>\n'),
};

/** The text of a value; throws when it cannot be inserted. */
function insertable(value: unknown): string {
  if (value === undefined || value === null) throw new ValueFault('missing');
  const plain: unknown = value instanceof Drop ? value.valueOf() : value;
  if (typeof plain === 'object' || typeof plain === 'function') throw new ValueFault('not-text');
  return textOf(plain);
}

function textOf(value: unknown): string {
  const present: unknown = value ?? '';
  const text = String(present);
  if (text.includes('\u0000')) throw new ValueFault('nul');
  return text;
}

function readNodes(
  liquid: Liquid,
  kind: TemplateKind,
  parsed: readonly Node[],
): Omit<LiquidPart, 'bytes'> | LiquidFault {
  const texts: string[] = [];
  const nodes: Node[] = [];
  const service = new Set<string>();
  let text = '';
  for (const node of parsed) {
    const inserted = TypeGuards.isHTMLToken(node.token) ? node.token.getContent() : serviceMark(node);
    if (inserted !== null) {
      text += inserted;
      continue;
    }
    texts.push(text);
    nodes.push(node);
    text = '';
  }
  texts.push(text);
  const { globals, locals } = liquid.analyzeSync([...parsed], { partials: true });
  const shadowing = Object.entries(locals).find(([name]) => isServiceVariable(name));
  if (shadowing !== undefined) {
    const { row = 0, col = 0, file = null } = shadowing[1][0]?.location ?? {};
    const message = `${shadowing[0]} is set by the service and cannot be assigned`;
    return { message, line: row, column: col, partial: file, isLimit: false };
  }
  const names = new Set<string>();
  for (const variable of Object.values(globals).flat()) {
    const name = pathOf(variable);
    const [root = ''] = name.split('.', 1);
    if (isServiceVariable(root)) service.add(root);
    else names.add(name);
  }
  return { kind, liquid, texts, nodes, names: [...names], service: [...service] };
}

/** `a.b` of `a.b[0].c`: what is read by name. */
function pathOf({ segments }: Variable): string {
  const end = segments.findIndex((segment) => typeof segment !== 'string');
  return (end < 0 ? segments : segments.slice(0, end)).join('.');
}

/** The mark of a node that is a variable of the service and nothing else; null: it is another node. */
function serviceMark(node: Node): string | null {
  if (!(node instanceof Output)) return null;
  const name = /^\{\{-?\s*([a-z_]+)\s*-?\}\}$/.exec(node.token.getText())?.[1];
  return name !== undefined && isServiceVariable(name) ? markOf(name) : null;
}

export interface LiquidRenderOptions {
  /** Milliseconds. */
  limitMs: number;
  /** Names that may be missing; their value is then empty. */
  optional: readonly string[];
  /** The names of the service's variables. */
  service: readonly string[];
}

/** Values of a part for one recipient, or why there are none. */
export type LiquidValues = { values: string[] } | { problem: TemplateProblem } | { fault: LiquidFault };

/** Renders a part. `variables` is data without prototypes and functions, as from JSON. */
export function renderLiquid(
  part: LiquidPart,
  variables: Readonly<Record<string, unknown>>,
  { limitMs, optional, service }: LiquidRenderOptions,
): LiquidValues {
  const { liquid, nodes, texts, kind } = part;
  const scope = withoutNulls(variables, 0);
  for (const name of optional) fillOptional(scope, name.split('.'));
  for (const name of service) scope[name] = new Markup(markOf(name));
  // What `render` inserts has the variables of the message, and none that the template assigns.
  const options = { sync: true, globals: scope, renderLimit: limitMs };
  const context = new Context(scope, liquid.options, options, { liquid });
  const values: string[] = [];
  let length = texts.reduce((sum, text) => sum + text.length, 0);
  for (const node of nodes) {
    const emitter = new LimitedEmitter();
    try {
      toValueSync(liquid.renderer.renderTemplates([node], context, emitter));
    } catch (error) {
      const cause = error instanceof LiquidError ? (error.originalError ?? error) : error;
      if (cause instanceof ValueFault)
        return { problem: { name: nameIn(error, node), reason: cause.reason } };
      const missing = missingName(error);
      return missing === null ? { fault: faultOf(error) } : { problem: { name: missing, reason: 'missing' } };
    }
    context.breakCalled = false;
    context.continueCalled = false;
    values.push(emitter.buffer);
    length += emitter.buffer.length;
    if (length > MAX_LIQUID_OUTPUT) return { problem: { name: nameIn(null, node), reason: 'too-long' } };
    if (kind === 'subject' && /[\r\n]/.test(emitter.buffer))
      return { problem: { name: nameIn(null, node), reason: 'line-break' } };
  }
  return { values };
}

/** A copy without prototypes and null: null is no value. */
function withoutNulls(value: Readonly<Record<string, unknown>>, depth: number): Record<string, unknown> {
  const copy: Record<string, unknown> = Object.create(null);
  for (const [name, inner] of Object.entries(value))
    if (inner !== null && inner !== undefined) copy[name] = copyOf(inner, depth + 1);
  return copy;
}

/** Deeper values are refused before (sending/request.ts); properties of events and contacts are flatter. */
const MAX_DEPTH = 64;

function copyOf(value: unknown, depth: number): unknown {
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return value;
  if (Array.isArray(value)) return value.map((item) => copyOf(item, depth + 1));
  return withoutNulls(Object.fromEntries(Object.entries(value)), depth);
}

/** Sets an empty value where a path has none. */
function fillOptional(scope: Record<string, unknown>, path: readonly string[]): void {
  let at = scope;
  for (const [index, name] of path.entries()) {
    const known = at[name];
    if (index === path.length - 1) {
      if (known === undefined) at[name] = '';
      return;
    }
    if (known === undefined) at[name] = Object.create(null);
    const next = at[name];
    if (typeof next !== 'object' || next === null || Array.isArray(next)) return;
    // Sound: an object without prototype.
    at = next as Record<string, unknown>;
  }
}

const MAX_NAME = 80;

/** Names the place of a problem: the expression of an output, or a tag. */
function nameIn(error: unknown, node: Node): string {
  const token = error instanceof LiquidError ? error.token : node.token;
  const text = token
    .getText()
    .replace(/^\{[{%]-?\s*/, '')
    .replace(/-?[}%]\}$/, '')
    .trimEnd();
  return text.length > MAX_NAME ? `${text.slice(0, MAX_NAME)}…` : text;
}

function missingName(error: unknown): string | null {
  const cause = error instanceof LiquidError ? (error.originalError ?? error) : error;
  for (const one of [error, cause]) {
    if (one instanceof Error && 'variableName' in one && typeof one.variableName === 'string')
      return one.variableName;
  }
  if (!(cause instanceof Error)) return null;
  return /^undefined variable: ([^,\n]{1,200})/.exec(cause.message)?.[1] ?? null;
}

const MAX_MESSAGE = 200;

/** The part of an error that is useful to the author. */
function faultOf(error: unknown): LiquidFault {
  if (!(error instanceof LiquidError)) {
    const message = error instanceof RangeError ? 'is nested too deep' : shortMessage(error);
    return { message, line: 0, column: 0, partial: null, isLimit: isLimitMessage(message) };
  }
  const [line = 0, column = 0] = error.token.getPosition();
  const cause = error.originalError;
  const message =
    cause instanceof RangeError
      ? 'is nested too deep, or creates too much text'
      : shortMessage(cause instanceof Error ? cause : error);
  return { message, line, column, partial: error.token.file ?? null, isLimit: isLimitMessage(message) };
}

function isLimitMessage(message: string): boolean {
  return message.endsWith('limit exceeded');
}

/** The message of the library without the position, which is named separately. */
function shortMessage(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  const [first = ''] = text.split('\n', 1);
  const message = first.replace(/(?:, file:[^,]*)?, line:\d+, col:\d+$/, '').replaceAll(/\p{Cc}/gu, ' ');
  return message.length > MAX_MESSAGE ? `${message.slice(0, MAX_MESSAGE)}…` : message;
}
