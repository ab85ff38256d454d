import { invalid, type Refusal } from './refusal.ts';

/** A string without its quotes. */
export interface LongString {
  range: Range;
  known: KnownString | null;
}

/** A string, and the bytes between the quotes that stand for it. */
export interface KnownString {
  literal: Buffer;
  value: string;
  /** To be called when a valid body had the string. */
  used(): void;
}

/** Returns a known string that equals the chunk from `start` on, as far as both reach; null: there is none. */
export type FindString = (chunk: Buffer, start: number) => KnownString | null;

/** Offsets into the body: of the first byte, and of the byte after the last one. */
export interface Range {
  start: number;
  end: number;
}

/** A list in the outermost object, and its maximum number of elements. */
export interface JsonList {
  name: string;
  max: number;
  /** The body is the list itself; it is read like an object with nothing but this list. */
  isBody?: boolean;
}

/** Levels of nesting in a body. */
export const MAX_DEPTH = 64;
/** Objects, lists, strings, numbers and literals of a body, or of one element of its list. */
export const MAX_VALUES = 10_000;
/** Names in one object. */
export const MAX_NAMES = 2000;
/** Bytes of a body outside the elements of its list. */
const MAX_OUTSIDE_BYTES = 256 * 1024;
/** Minimum of bytes of a string that `longStrings` returns. */
export const MIN_LONG_BYTES = 4096;
const MAX_LONG_STRINGS = 4;
/** A longer name in the outermost object is not that of the list. */
const MAX_LIST_NAME_BYTES = 256;

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_LIST = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** Kinds of bytes outside strings: 0 part of a number or literal, 1 white space, 2 structure. */
const KIND = new Uint8Array(256);
for (const blank of [0x20, 0x09, 0x0a, 0x0d]) KIND[blank] = 1;
for (const mark of [QUOTE, COMMA, COLON, OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT]) KIND[mark] = 2;

/**
 * Counts the values of a JSON body while its bytes arrive, so that a body of many small values is refused before it is
 * parsed; the same for one record of an import. It does not validate: `JSON.parse` rejects what is not JSON. With
 * `list` it also finds the beginning and the end of each element of that list, so that the elements can be parsed one
 * at a time; the limits then apply to each element and to the rest of the body. With `find` it recognizes strings that are
 * known.
 *
 * A scan of one body, without a copy of its bytes: memory grows with the number of elements of `list` only. Chunks may
 * end anywhere, also inside a character. `find` is not used with `list`.
 */
export function createJsonScan({ list, find }: { list?: JsonList | undefined; find?: FindString } = {}) {
  /** Offset of the current chunk in the body. */
  let base = 0;
  let inString = false;
  let escaped = false;
  let inScalar = false;
  let depth = 0;
  let values = 0;
  /** Names in each of the open containers. */
  const names = new Uint32Array(MAX_DEPTH + 1);
  let ranges: Range[] | null = null;
  /** Whether the list is open; its elements are two levels deep. */
  let inList = false;
  let elementStart = -1;
  /** Bytes of the elements that have ended. */
  let inElements = 0;
  /** Number of values outside the list, stored while an element is counted. */
  let valuesOutside = 0;
  /** The last string one level deep, which may be the list's name; null while it is not recorded. */
  let name: number[] | null = null;
  let isListNext = false;
  const recordsStrings = find !== undefined && list === undefined;
  const longStrings: LongString[] = [];
  /** Where the last string one level deep began, and whether it is a value there. */
  let stringStart = 0;
  let isOuterValue = false;
  /** The known string that equals the current one so far, and the number of its bytes that were compared. */
  let candidate: KnownString | null = null;
  let compared = 0;

  /** Takes the chunks of the body in order; returns a refusal as soon as a limit is exceeded. */
  function push(chunk: Buffer): Refusal | null {
    // The position of the next quote and backslash from `at` on. Searched for again only after it was passed, so each byte
    // is searched once for each.
    let quoteAt = -1;
    let backslashAt = -1;
    for (let at = followCandidate(chunk); at < chunk.length; at++) {
      if (inString && !escaped && name === null) {
        if (quoteAt < at) quoteAt = positionOf(chunk, QUOTE, at);
        if (backslashAt < at) backslashAt = positionOf(chunk, BACKSLASH, at);
        at = Math.min(quoteAt, backslashAt);
        if (at === chunk.length) break;
      }
      const byte = chunk[at] ?? 0;
      if (inString) {
        if (escaped) escaped = false;
        else if (byte === BACKSLASH) escaped = true;
        else if (byte === QUOTE) {
          inString = false;
          if (recordsStrings && depth === 1) endOuterString(base + at);
        }
        if (inString && name !== null && name.length < MAX_LIST_NAME_BYTES) name.push(byte);
        continue;
      }
      const kind = KIND[byte];
      if (kind === 1) {
        inScalar = false;
        continue;
      }
      if (kind === 2) {
        const refusal = structure(byte, base + at);
        if (refusal !== null) return refusal;
        if (inString && recordsStrings && depth === 1) at += beginOuterString(chunk, at + 1);
      } else if (!inScalar) {
        inScalar = true;
        const refusal = begin(base + at);
        if (refusal !== null) return refusal;
      }
    }
    base += chunk.length;
    if (list === undefined) return null;
    const outside = (elementStart === -1 ? base : elementStart) - inElements;
    return outside > MAX_OUTSIDE_BYTES
      ? invalid('body', `must have at most ${MAX_OUTSIDE_BYTES} bytes outside ${list.name}`)
      : null;
  }

  /** Begins a name or a value of the outermost object; returns the number of its bytes that a known string has, too. */
  function beginOuterString(chunk: Buffer, start: number): number {
    stringStart = base + start;
    candidate = isOuterValue ? (find?.(chunk, start) ?? null) : null;
    compared = candidate === null ? 0 : Math.min(candidate.literal.length, chunk.length - start);
    return compared;
  }

  /** Compares the next chunk with the candidate; returns where the scan continues. */
  function followCandidate(chunk: Buffer): number {
    if (!inString || candidate === null || compared === candidate.literal.length) return 0;
    const { literal } = candidate;
    const length = Math.min(literal.length - compared, chunk.length);
    if (literal.compare(chunk, 0, length, compared, compared + length) === 0) {
      compared += length;
      return length;
    }
    // The string is another one, which has the same bytes before this chunk.
    candidate = null;
    escaped = endsWithEscape(literal, compared);
    return 0;
  }

  function endOuterString(end: number): void {
    const length = end - stringStart;
    const known = candidate?.literal.length === length ? candidate : null;
    candidate = null;
    if (isOuterValue && length >= MIN_LONG_BYTES && longStrings.length < MAX_LONG_STRINGS)
      longStrings.push({ range: { start: stringStart, end }, known });
  }

  /** Counts a value, or a name, that begins at this offset. */
  function begin(offset: number): Refusal | null {
    if (inList && depth === 2 && elementStart === -1) {
      elementStart = offset;
      valuesOutside = values;
      values = 0;
      if (list !== undefined && ranges !== null && ranges.length >= list.max) {
        return invalid(list.name, `must have at most ${list.max} entries`);
      }
    }
    return ++values > MAX_VALUES ? tooManyValues() : null;
  }

  function tooManyValues(): Refusal {
    const message = `must have at most ${MAX_VALUES} values`;
    return elementStart === -1 ? invalid('body', message) : invalid(elementName(), message);
  }

  function elementName(): string {
    return `${list?.name ?? 'body'}[${ranges?.length ?? 0}]`;
  }

  function structure(byte: number, offset: number): Refusal | null {
    inScalar = false;
    switch (byte) {
      case QUOTE:
        inString = true;
        name = list !== undefined && depth === 1 ? [] : null;
        return begin(offset);
      case OPEN_OBJECT:
      case OPEN_LIST:
        return open(byte, offset);
      case CLOSE_OBJECT:
      case CLOSE_LIST:
        if (inList && depth === 2) {
          endElement(offset);
          inList = false;
        }
        depth = Math.max(0, depth - 1);
        return null;
      case COMMA:
        if (inList && depth === 2) endElement(offset);
        isListNext = false;
        if (depth === 1) isOuterValue = false;
        return null;
      default:
        return colon();
    }
  }

  function open(byte: number, offset: number): Refusal | null {
    const refusal = begin(offset);
    if (refusal !== null) return refusal;
    if (depth === MAX_DEPTH) return invalid('body', `must not be nested more than ${MAX_DEPTH} levels deep`);
    depth++;
    names[depth] = 0;
    if (isListNext && depth === 2 && byte === OPEN_LIST) {
      if (ranges !== null) return invalid(list?.name ?? 'body', 'is given more than once');
      inList = true;
      ranges = [];
      elementStart = -1;
    }
    isListNext = false;
    return null;
  }

  function colon(): Refusal | null {
    // The name before the colon is not a value.
    values--;
    isListNext = name !== null && depth === 1 && textOf(name) === list?.name;
    name = null;
    if (depth === 1) isOuterValue = true;
    const count = (names[depth] ?? 0) + 1;
    names[depth] = count;
    if (count <= MAX_NAMES) return null;
    const place = elementStart === -1 ? 'body' : elementName();
    return invalid(place, `must not have an object with more than ${MAX_NAMES} names`);
  }

  function endElement(offset: number): void {
    if (elementStart === -1) return;
    ranges?.push({ start: elementStart, end: offset });
    inElements += offset - elementStart;
    elementStart = -1;
    values = valuesOutside;
  }

  return {
    push,
    /** Byte ranges of the list's elements; null when the body has no such list. */
    elements: (): Range[] | null => ranges,
    /** With `find`: long strings among the values of the outermost object, in their order, at most four. */
    longStrings: (): readonly LongString[] => longStrings,
  };
}

/** The first position from `from` on; the length when there is none. */
function positionOf(bytes: Uint8Array, byte: number, from: number): number {
  const at = bytes.indexOf(byte, from);
  return at === -1 ? bytes.length : at;
}

/** Whether the first `length` bytes of a literal end with a backslash that escapes the next byte. */
function endsWithEscape(literal: Buffer, length: number): boolean {
  let backslashes = 0;
  while (literal[length - 1 - backslashes] === BACKSLASH) backslashes++;
  return backslashes % 2 === 1;
}

/** Decodes a name as JSON.parse does; null: it is not valid. */
function textOf(bytes: number[]): string | null {
  try {
    const text: unknown = JSON.parse(`"${Buffer.from(bytes).toString('utf8')}"`);
    return typeof text === 'string' ? text : null;
  } catch {
    // Not a JSON string: parsing the body reports it.
    return null;
  }
}
