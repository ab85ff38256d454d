import { LRUCache } from 'lru-cache';
import { inSlices, type Work, withoutPause } from '../../core/concurrency/slices.ts';
import { isRefusal, type Refusal } from '../../core/refusal.ts';
import { hidingVariable } from '../../mail/compliance.ts';
import {
  joinShared,
  type SharedContent,
  type SharedPart,
  type SharedText,
} from '../../mail/shared-content.ts';
import {
  endsAtLineStart,
  fillInSteps,
  isServiceVariable,
  MAX_PROBLEMS,
  renderTemplateInSteps,
  slotKey,
  startsOwnLine,
  type Template,
  type TemplateKind,
  type TemplateProblem,
  type TemplateSlot,
  type Unusable,
} from '../../mail/template.ts';
import { type PackedShared, packShared } from '../encode.ts';
import { subjectRefusal } from '../request.ts';
import {
  type FieldProblem,
  findHiddenComplianceInSteps,
  MAX_RENDERED,
  type PreparedTemplate,
  type Rendered,
  type TemplatePart,
  variableRefusal,
} from './render.ts';

/*
 * Renders a template for many recipients, the copies of a campaign or messages with the same template: inserts the values that
 * all share once, then computes the values of each recipient. `joinShared` joins both to exactly the text that
 * `renderTemplateInSteps` returns for all variables together.
 */

interface SharedTemplate extends SharedText {
  kind: TemplateKind;
  /** The slot of each value; `line-break`: a line break unless the text before it ends with one. */
  values: (TemplateSlot | 'line-break')[];
  /** Characters of all texts together. */
  length: number;
}

interface SharingOptions {
  /** Maximum number of characters of a rendered text. */
  limit: number;
  /** Whether the values of a name differ between recipients. */
  isOwn(name: string): boolean;
}

const SLOTS_PER_STEP = 256;

/** Inserts the shared values. Returns the variables that cannot be inserted, if there are any. */
export function* shareTemplateInSteps(
  template: Template,
  kind: TemplateKind,
  variables: Readonly<Record<string, unknown>>,
  service: Readonly<Record<string, string>>,
  { limit, isOwn }: SharingOptions,
): Work<SharedTemplate | TemplateProblem[]> {
  if (template.tooLong) return [{ name: '', reason: 'too-long' }];
  const shared: SharedTemplate = { kind, texts: [], holes: [], values: [], length: 0 };
  const problems = new Map<string, TemplateProblem>();
  const filled = new Map<string, string | Unusable>();
  const indexes = new Map<string, number>();
  let pieces: string[] = [];
  /** Whether only spaces and tabs follow the last line break; null when it depends on a recipient's values. */
  let isLineStart: boolean | null = true;

  const write = (text: string) => {
    pieces.push(text);
    shared.length += text.length;
    if (kind !== 'text') return;
    const ifNot = endsAtLineStart(text, false);
    if (endsAtLineStart(text, true) === ifNot) isLineStart = ifNot;
  };
  const addPlaceholder = (value: number) => {
    shared.texts.push(pieces.join(''));
    shared.holes.push(value);
    pieces = [];
  };

  write(template.texts[0] ?? '');
  for (const [n, slot] of template.slots.entries()) {
    if (n % SLOTS_PER_STEP === SLOTS_PER_STEP - 1) yield;
    const key = slotKey(slot);
    if (isOwn(slot.name)) {
      const index = indexes.get(key) ?? shared.values.push(slot) - 1;
      indexes.set(key, index);
      addPlaceholder(index);
      isLineStart = null;
    } else {
      const value =
        filled.get(key) ?? (yield* fillInSteps(slot, kind, variables, service, { limit, optional: NONE }));
      filled.set(key, value);
      if (typeof value !== 'string') problems.set(slot.name, { name: slot.name, reason: value.reason });
      else {
        if (startsOwnLine(kind, slot, value)) {
          if (isLineStart === null) addPlaceholder(shared.values.push('line-break') - 1);
          else if (!isLineStart) write('\n');
          isLineStart = true;
        }
        write(value);
      }
    }
    write(template.texts[n + 1] ?? '');
    if (shared.length > limit) return [{ name: slot.name, reason: 'too-long' }];
    if (problems.size === MAX_PROBLEMS) break;
  }
  shared.texts.push(pieces.join(''));
  return problems.size > 0 ? [...problems.values()] : shared;
}

const NONE: ReadonlySet<string> = new Set();

interface FillingOptions {
  limit: number;
  /** Names that may be missing; their value is then empty. */
  optional: ReadonlySet<string>;
}

/** One recipient's values for the placeholders, or the variables that cannot be inserted. */
type FilledTemplate = { values: string[] } | { problems: TemplateProblem[] };

/** Computes the values of one recipient, in steps. */
export function* fillSharedInSteps(
  { kind, texts, holes, values, length }: SharedTemplate,
  variables: Readonly<Record<string, unknown>>,
  { limit, optional }: FillingOptions,
): Work<FilledTemplate> {
  const problems = new Map<string, TemplateProblem>();
  const own: string[] = [];
  for (const [index, slot] of values.entries()) {
    if (index % SLOTS_PER_STEP === SLOTS_PER_STEP - 1) yield;
    const value: string | Unusable =
      slot === 'line-break' ? '' : yield* fillInSteps(slot, kind, variables, {}, { limit, optional });
    own.push(typeof value === 'string' ? value : '');
    if (slot === 'line-break' || typeof value === 'string') continue;
    problems.set(slot.name, { name: slot.name, reason: value.reason });
    if (problems.size === MAX_PROBLEMS) break;
  }
  if (problems.size > 0) return { problems: [...problems.values()] };
  if (values.includes('line-break')) breakLines({ texts, holes, values }, own);
  let total = length;
  for (const hole of holes) {
    total += own[hole]?.length ?? 0;
    const slot = values[hole];
    if (total > limit)
      return { problems: [{ name: typeof slot === 'object' ? slot.name : '', reason: 'too-long' }] };
  }
  return { values: own };
}

/** Sets the `line-break` values of one recipient. */
function breakLines(
  { texts, holes, values }: Pick<SharedTemplate, 'texts' | 'holes' | 'values'>,
  own: string[],
): void {
  let isLineStart = true;
  for (const [index, hole] of holes.entries()) {
    isLineStart = endsAtLineStart(texts[index] ?? '', isLineStart);
    if (values[hole] === 'line-break') {
      if (!isLineStart) own[hole] = '\n';
      isLineStart = true;
    } else isLineStart = endsAtLineStart(own[hole] ?? '', isLineStart);
  }
}

/** A template into which the values that are equal for all recipients were inserted. */
export interface SharedRendering {
  prepared: PreparedTemplate;
  parts: { field: TemplatePart['field']; first: number; template: SharedTemplate }[];
}

/**
 * Inserts the values that are equal for all recipients, in steps. `isOwn`: variables whose values differ. A refusal: the
 * template cannot be rendered for any recipient.
 */
export function* sharePreparedInSteps(
  prepared: PreparedTemplate,
  variables: Readonly<Record<string, unknown>>,
  isOwn: (name: string) => boolean,
): Work<SharedRendering | Refusal> {
  const problems: FieldProblem[] = [];
  const shared: SharedRendering = { prepared, parts: [] };
  let first = 0;
  for (const { field, kind, template } of prepared.parts) {
    const service = kind === 'html' ? prepared.service.html : prepared.service.text;
    const result = yield* shareTemplateInSteps(template, kind, variables, service, {
      limit: MAX_RENDERED,
      isOwn,
    });
    if (Array.isArray(result)) problems.push(...result.map((problem) => ({ field, problem })));
    else {
      shared.parts.push({ field, first, template: result });
      first += result.values.length;
    }
  }
  return problems.length > 0 ? variableRefusal(problems, true) : shared;
}

/** The part of a shared rendering that differs for a recipient. */
export interface CopyRendering {
  subject: string;
  /** Values of the placeholders of all parts, in the order of the parts. */
  values: string[];
}

/** Renders the part of one recipient; `variables` are all variables. */
export function fillCopy(
  { prepared, parts }: SharedRendering,
  variables: Readonly<Record<string, unknown>>,
  optional: ReadonlySet<string>,
): CopyRendering | Refusal {
  const problems: FieldProblem[] = [];
  const values: string[] = [];
  let subject = '';
  for (const { field, template } of parts) {
    const filled = withoutPause(fillSharedInSteps(template, variables, { limit: MAX_RENDERED, optional }));
    if ('problems' in filled) problems.push(...filled.problems.map((problem) => ({ field, problem })));
    else {
      values.push(...filled.values);
      if (field === 'subject') subject = joinShared(template, filled.values);
    }
  }
  if (problems.length > 0) return variableRefusal(problems, true);
  const refusal =
    subjectRefusal(subject) ?? withoutPause(findHiddenComplianceInSteps(prepared, variables, optional));
  return refusal ?? { subject, values };
}

/** The parts in their stored form. */
export function sharedParts({ parts }: SharedRendering): Pick<SharedContent, 'subject' | 'html' | 'text'> {
  const part = (wanted: TemplatePart['field']): SharedPart | null => {
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

/** What is known about a template; both are null for one that was not sent before, or that is not shared. */
interface Repetition {
  /** The shared texts. */
  ready: RepeatedTemplate | null;
  /** Set when the texts can be prepared. */
  candidate: RepeatedCandidate | null;
}

/** The texts of a template, and how they are stored. */
interface RepeatedTemplate extends PackedShared {
  parts: SharedRendering['parts'];
  /** Size of the texts of the HTML in UTF-8. */
  htmlBytes: number;
}

/** A template that was sent before. */
export interface RepeatedCandidate {
  key: string;
  scope: string;
  prepared: PreparedTemplate;
}

/** Characters of the HTML and the text of a shared content. With more, the content of each message is stored completely. */
const MAX_TEXT_CHARACTERS = 2 * 1024 * 1024;
/**
 * Characters that the values of a message add to the texts. With more, its content is stored completely: a value that is inserted
 * a thousand times is stored once with shared texts, and the stored size bounds the memory of the messages that are being sent.
 * Below this limit the JSON of the values is short enough to be compressed on the calling thread (stored-content.ts).
 */
const MAX_INSERTED_CHARACTERS = 24 * 1024;
/** Characters of all texts in memory, with their sources, variables and stored form. */
const MAX_CACHED_CHARACTERS = 16 * 1024 * 1024;
const MAX_ENTRY_CHARACTERS = MAX_CACHED_CHARACTERS / 4;
/** Memory of a variable, in characters: its position, its text and its name. */
const CHARACTERS_OF_SLOT = 256;
/** Templates that were sent once. */
const MAX_SEEN = 1000;

/** Of a template about which nothing is known, or that is not shared. */
export const NOT_REPEATED: Repetition = { ready: null, candidate: null };

/**
 * Templates that an account sends repeatedly, such as the confirmation of an order. From the third message on, the
 * texts of the template are stored once and each message stores only the values of its variables; the delivery workers
 * derive the text part and encode the HTML of such messages once. Begins empty; the templates that were used least
 * recently are dropped.
 */
export function createRepeatedTemplates() {
  const numbers = new WeakMap<object, number>();
  let lastNumber = 0;
  /** Templates that were sent once. */
  const seen = new LRUCache<string, true>({ max: MAX_SEEN });
  const ready = new LRUCache<string, RepeatedTemplate | 'unusable'>({
    maxSize: MAX_CACHED_CHARACTERS,
    sizeCalculation: (one, key) => key.length + (one === 'unusable' ? 0 : charactersOf(one)),
  });
  const preparing = new Set<string>();

  function numberOf(value: object): number {
    const known = numbers.get(value);
    if (known !== undefined) return known;
    numbers.set(value, ++lastNumber);
    return lastNumber;
  }

  /** Identifies everything that the texts depend on. Templates and service values in memory never change. */
  function keyOf({ parts, service }: PreparedTemplate, scope: string): string {
    const templates = parts.flatMap(({ field, template }) =>
      field === 'subject' ? [] : [`${field}${numberOf(template)}`],
    );
    return JSON.stringify([scope, templates, numberOf(service)]);
  }

  return {
    /**
     * Looks up a template, and remembers that it was sent. `scope`: what its texts depend on in addition, see
     * checks.ts.
     */
    find: (prepared: PreparedTemplate, scope: string): Repetition => {
      const html = prepared.parts.find(({ field }) => field === 'html')?.template;
      if (html === undefined || hidingVariable(html) !== null) return NOT_REPEATED;
      if (sumOf(prepared.parts, ({ template }) => textLength(template)) > MAX_TEXT_CHARACTERS)
        return NOT_REPEATED;
      const key = keyOf(prepared, scope);
      const known = ready.get(key);
      if (known !== undefined) return known === 'unusable' ? NOT_REPEATED : { ready: known, candidate: null };
      if (preparing.has(key)) return NOT_REPEATED;
      if (seen.has(key)) return { ready: null, candidate: { key, scope, prepared } };
      seen.set(key, true);
      return NOT_REPEATED;
    },
    /** Prepares a candidate, so that `find` returns its texts. Works in turns of the account. */
    prepare: async ({ key, scope, prepared }: RepeatedCandidate, accountId: string): Promise<void> => {
      if (preparing.has(key)) return;
      preparing.add(key);
      seen.delete(key);
      try {
        const parts = prepared.parts.filter(({ field }) => field !== 'subject');
        const isOwn = (name: string) => !isServiceVariable(name);
        const rendering = await inSlices(sharePreparedInSteps({ ...prepared, parts }, {}, isOwn), accountId);
        // The texts contain the values of the service.
        if (
          isRefusal(rendering) ||
          sumOf(rendering.parts, ({ template }) => template.length) > MAX_TEXT_CHARACTERS
        ) {
          ready.set(key, 'unusable');
          return;
        }
        const { html, text } = sharedParts(rendering);
        const htmlBytes = sumOf(html?.texts ?? [], (one) => Buffer.byteLength(one));
        const packed = await packShared({ html, text }, accountId, scope);
        const repeated = { parts: rendering.parts, htmlBytes, ...packed };
        ready.set(key, charactersOf(repeated) > MAX_ENTRY_CHARACTERS ? 'unusable' : repeated);
      } finally {
        preparing.delete(key);
      }
    },
  };
}

export type RepeatedTemplates = ReturnType<typeof createRepeatedTemplates>;

/** The memory of the texts, their sources, which they are slices of, and their stored form. */
function charactersOf({ parts, packed }: RepeatedTemplate): number {
  const characters = parts.map(({ template: { length, holes, values } }) => {
    const source = values.reduce((end, slot) => (slot === 'line-break' ? end : Math.max(end, slot.end)), 0);
    return length + source + CHARACTERS_OF_SLOT * (holes.length + values.length);
  });
  return characters.reduce((sum, count) => sum + count, packed.body.length);
}

/** Characters around the variables. */
function textLength({ texts }: Template): number {
  return sumOf(texts, ({ length }) => length);
}

function sumOf<Item>(items: readonly Item[], sizeOf: (item: Item) => number): number {
  return items.reduce((sum, item) => sum + sizeOf(item), 0);
}

/**
 * Fills a repeated template, in steps; null: `renderPreparedInSteps` must render the message, because its values are too long to
 * be stored separately, or to describe what cannot be inserted.
 */
export function* renderRepeatedInSteps(
  repeated: RepeatedTemplate,
  { parts, service }: PreparedTemplate,
  variables: Readonly<Record<string, unknown>>,
): Work<Rendered | Refusal | null> {
  const rendered: Rendered = { subject: '', html: '', text: null };
  const values: string[] = [];
  let inserted = 0;
  for (const { field, kind, template } of parts) {
    if (field === 'subject') {
      const result = yield* renderTemplateInSteps(template, kind, variables, service.text, {
        limit: MAX_RENDERED,
      });
      if (typeof result !== 'string') return null;
      rendered.subject = result;
      continue;
    }
    const shared = repeated.parts.find((part) => part.field === field)?.template;
    if (shared === undefined) throw new Error(`the repeated template has no ${field}`);
    const filled = yield* fillSharedInSteps(shared, variables, { limit: MAX_RENDERED, optional: NONE });
    if ('problems' in filled) return null;
    values.push(...filled.values);
    const text = joinShared(shared, filled.values);
    inserted += text.length - shared.length;
    if (inserted > MAX_INSERTED_CHARACTERS) return null;
    rendered[field] = text;
    // `text` is not read: V8 would copy the texts of the template into one string.
    if (field === 'html')
      rendered.htmlBytes =
        repeated.htmlBytes + sumOf(shared.holes, (hole) => Buffer.byteLength(filled.values[hole] ?? ''));
  }
  return subjectRefusal(rendered.subject) ?? { ...rendered, shared: { ...repeated, values } };
}
