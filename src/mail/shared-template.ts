import type { Work } from '../core/concurrency/slices.ts';
import {
  endsAtLineStart,
  fillInSteps,
  MAX_PROBLEMS,
  slotKey,
  startsOwnLine,
  type Template,
  type TemplateKind,
  type TemplateProblem,
  type TemplateSlot,
  type Unusable,
} from './template.ts';

/*
 * Renders a template for many recipients: `shareTemplateInSteps` inserts the values that all recipients share, and
 * `fillSharedInSteps` computes each recipient's values for the remaining placeholders. `joinShared` joins both to exactly the text
 * that `renderTemplateInSteps` returns for all variables together.
 */

/** A text with placeholders for the values of a recipient. */
export interface SharedText {
  /** Texts around the placeholders: one more than there are placeholders. */
  texts: string[];
  /** The index of the value of each placeholder. The name of the field is stored in the database. */
  holes: number[];
}

export interface SharedTemplate extends SharedText {
  kind: TemplateKind;
  /** The slot of each value; `line-break`: a line break unless the text before it ends with one. */
  values: (TemplateSlot | 'line-break')[];
  /** Characters of all texts together. */
  length: number;
}

export interface SharingOptions {
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

export interface FillingOptions {
  limit: number;
  /** Names that may be missing; their value is then empty. */
  optional: ReadonlySet<string>;
}

/** One recipient's values for the placeholders, or the variables that cannot be inserted. */
export type FilledTemplate = { values: string[] } | { problems: TemplateProblem[] };

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

/**
 * The rendered text. `first`: the index of the text's first value among `values`. Concatenated instead of joined: V8 copies
 * the texts only when the result is read, and composed copies of a campaign do not need it.
 */
export function joinShared({ texts, holes }: SharedText, values: readonly string[], first = 0): string {
  let out = texts[0] ?? '';
  for (const [index, hole] of holes.entries()) out += (values[first + hole] ?? '') + (texts[index + 1] ?? '');
  return out;
}
