import { foreignFallback } from '../mail/foreign-syntax.ts';
import { isServiceVariable } from '../mail/template.ts';

/*
 * What templates of other languages are converted to: parts, which are written in our simple syntax if all of them are
 * variables, else in Liquid. What has no exact equivalent is a fault, and the template is not converted.
 */

/** A piece of a converted template. */
export type Part =
  | { text: string }
  | {
      /** A path such as `user.name`. */
      value: string;
      raw: boolean;
      /** Replaces a value that is missing or empty. */
      fallback: string | null;
      /** Whether white space before and after it is removed. */
      trim: readonly [left: boolean, right: boolean];
    }
  /** A tag of Liquid. */
  | { tag: string };

/** What cannot be converted, and why. */
export interface ConversionFault {
  /** From 1. */
  line: number;
  construct: string;
  reason: string;
}

export interface Converted {
  parts: Part[];
  faults: ConversionFault[];
}

const MAX_FAULTS = 20;
const MAX_CONSTRUCT = 80;

/** Collects the parts of a source and what is wrong with it. */
export function createParts(source: string) {
  const parts: Part[] = [];
  const faults: ConversionFault[] = [];
  return {
    fault: (offset: number, construct: string, reason: string): void => {
      const shown = construct.slice(0, MAX_CONSTRUCT).replaceAll(/\s+/g, ' ').trim();
      if (faults.length < MAX_FAULTS) faults.push({ line: lineAt(source, offset), construct: shown, reason });
    },
    text: (text: string): void => {
      const last = parts.at(-1);
      if (text === '') return;
      if (last !== undefined && 'text' in last) last.text += text;
      else parts.push({ text });
    },
    value: (
      value: string,
      { raw = false, fallback = null, trim = NO_TRIM }: Partial<Omit<ValuePart, 'value'>> = {},
    ): void => void parts.push({ value, raw, fallback, trim }),
    tag: (tag: string): void => void parts.push({ tag }),
    converted: (): Converted => ({ parts, faults }),
  };
}

function lineAt(source: string, offset: number): number {
  let line = 1;
  for (let at = source.indexOf('\n'); at !== -1 && at < offset; at = source.indexOf('\n', at + 1)) line++;
  return line;
}

export type Parts = ReturnType<typeof createParts>;
type ValuePart = Extract<Part, { value: string }>;
const NO_TRIM = [false, false] as const;

/** The syntax of the first language whose form has all parts. */
export function syntaxOf(parts: readonly Part[]): 'simple' | 'liquid' {
  return parts.every((part) => 'text' in part || ('value' in part && simpleForm(part) !== null))
    ? 'simple'
    : 'liquid';
}

/** Writes parts in a syntax that has all of them. */
export function writeParts(parts: readonly Part[], syntax: 'simple' | 'liquid'): string {
  return parts
    .map((part) => {
      if ('text' in part) return part.text;
      if ('tag' in part) return part.tag;
      return (syntax === 'simple' ? simpleForm(part) : null) ?? liquidForm(part);
    })
    .join('');
}

const SIMPLE_NAME = /^[A-Za-z_][A-Za-z0-9_.]*$/;

function simpleForm({ value, raw, fallback, trim: [left, right] }: ValuePart): string | null {
  if (left || right || !SIMPLE_NAME.test(value)) return null;
  const isPlain =
    fallback === null ||
    (fallback !== '' &&
      fallback === fallback.trim() &&
      !/[{}\r\n]/.test(fallback) &&
      foreignFallback(value, fallback) === null);
  if (!isPlain) return null;
  const inside = fallback === null ? value : `${value}|${fallback}`;
  return raw && !isServiceVariable(value) ? `{{{${inside}}}}` : `{{${inside}}}`;
}

function liquidForm({ value, raw, fallback, trim: [left, right] }: ValuePart): string {
  const filters = [
    ...(fallback === null ? [] : [` | default: ${JSON.stringify(fallback)}`]),
    ...(raw && !isServiceVariable(value) ? [' | raw'] : []),
  ];
  return `{{${left ? '-' : ''} ${value}${filters.join('')} ${right ? '-' : ''}}}`;
}

/** Names that Liquid reads as something else. */
const RESERVED: ReadonlySet<string> = new Set(
  'true false nil null empty blank forloop tablerowloop and or not contains'.split(' '),
);
const SEGMENT = /^[A-Za-z_][A-Za-z0-9_-]*$/;
const NUMBER = /^\d{1,4}$/;

/** The path of these segments in Liquid; null: it has none. */
export function liquidPath(segments: readonly string[]): string | null {
  const [root = '', ...rest] = segments;
  if (!SEGMENT.test(root) || root.endsWith('-') || RESERVED.has(root)) return null;
  let path = root;
  for (const segment of rest) {
    if (NUMBER.test(segment)) path += `[${segment}]`;
    else if (SEGMENT.test(segment) && !segment.endsWith('-')) path += `.${segment}`;
    else return null;
  }
  return path;
}

/** A name for the variable of a loop that the template does not use. */
export function createLoopNames(source: string): (depth: number) => string {
  const used = new Set(source.match(/[A-Za-z_][A-Za-z0-9_]*/g) ?? []);
  return (depth) => {
    for (let n = depth; ; n++) {
      const name = n === 0 ? 'item' : `item_${n + 1}`;
      if (used.has(name)) continue;
      used.add(name);
      return name;
    }
  };
}

/** Text that Liquid would read as a tag, or that hides the braces of a variable: it has no equivalent. */
export function checkText(parts: Parts, offset: number, text: string, isBeforeBraces: boolean): void {
  const at = text.indexOf('{%');
  if (at !== -1) parts.fault(offset + at, text.slice(at, at + 20), 'is a tag of Liquid: remove it');
  if (isBeforeBraces && text.endsWith('\\'))
    parts.fault(offset + text.length - 1, '\\{{', 'braces that are shown as text have no equivalent');
}
