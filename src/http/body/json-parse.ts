import { isUtf8 } from 'node:buffer';
import { randomBytes } from 'node:crypto';
import { eventLoopTurns, inSlices, type Work } from '../../core/concurrency/slices.ts';
import type { KnownString, LongString, Range } from '../../core/json-scan.ts';
import { type Refusal, refuse } from '../../core/refusal.ts';
import { decodeUtf8 } from '../../core/utf8.ts';
import type { RepeatedStrings } from './repeated-strings.ts';

/* Parses JSON bodies: as a whole, or without the elements of a list, which are parsed one at a time. */

/** `value` is undefined when the body is empty. */
export interface JsonBody {
  value: unknown;
}

/** Bodies and strings up to this size are parsed in the turn in which their chunks were joined. */
const SMALL_BYTES = 64 * 1024;
/** Bytes of one element of a list; a larger one is not parsed, and refused separately. */
const MAX_ELEMENT_BYTES = 4 * 1024 * 1024;

/** One element of a list: checked JSON, stored as bytes until its value is read. */
export class JsonElement {
  readonly #bytes: Buffer;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get byteLength(): number {
    return this.#bytes.length;
  }

  /** Parses the value; each call returns a new one. */
  read(): JsonBody | Refusal {
    if (isTooLarge(this.#bytes)) {
      return refuse('PAYLOAD_TOO_LARGE', `The message exceeds the limit of ${MAX_ELEMENT_BYTES} bytes`);
    }
    return { value: JSON.parse(decodeUtf8(this.#bytes)) };
  }
}

const CHUNKS_PER_STEP = 16;

/** Joins the chunks of a body, in slices, because copying megabytes takes long. */
export async function joined(chunks: readonly Buffer[], accountId: string): Promise<Buffer> {
  const [first] = chunks;
  if (first !== undefined && chunks.length === 1) return first;
  const length = chunks.reduce((sum, chunk) => sum + chunk.length, 0);
  return length <= SMALL_BYTES ? Buffer.concat(chunks, length) : inSlices(joining(chunks, length), accountId);
}

function* joining(chunks: readonly Buffer[], length: number): Work<Buffer> {
  const bytes = Buffer.allocUnsafe(length);
  let at = 0;
  for (const [index, chunk] of chunks.entries()) {
    at += chunk.copy(bytes, at);
    if (index % CHUNKS_PER_STEP === CHUNKS_PER_STEP - 1) yield;
  }
  return bytes;
}

/** Parses a whole body, whose size and number of values are limited already. */
export async function parseJson(bytes: Buffer, accountId: string): Promise<JsonBody | Refusal> {
  if (bytes.length === 0) return { value: undefined };
  if (bytes.length > SMALL_BYTES) await eventLoopTurns.next(accountId);
  return parse(bytes, '');
}

/** Stands for known strings while a body is parsed. No body contains it, because it is random. */
const PLACEHOLDER = randomBytes(16).toString('hex');

/**
 * Parses a whole body like `parseJson`, without its known strings, which are inserted afterwards. `repeated` then learns the
 * other long strings.
 */
export async function parseJsonWithStrings(
  chunks: readonly Buffer[],
  strings: readonly LongString[],
  repeated: RepeatedStrings,
  accountId: string,
): Promise<JsonBody | Refusal> {
  const found = strings.flatMap(({ range, known }) => (known === null ? [] : [{ ...range, ...known }]));
  let source = chunks;
  let body: JsonBody | Refusal | null =
    found.length === 0 ? null : await parseAround(chunks, found, accountId);
  if (body === null) {
    // Also a body that is not valid: the position of the error is that in the whole body.
    const whole = await joined(chunks, accountId);
    source = [whole];
    body = await parseJson(whole, accountId);
  }
  if (!('value' in body)) return body;
  for (const { range, known } of strings) {
    if (known !== null) {
      known.used();
      continue;
    }
    const literal = await joined(slice(source, range), accountId);
    if (!repeated.sent(accountId, literal)) continue;
    if (literal.length > SMALL_BYTES) await eventLoopTurns.next(accountId);
    repeated.learn(accountId, literal);
  }
  return body;
}

/** Parses a body without its known strings; null: it is not valid, or no object. */
async function parseAround(
  chunks: readonly Buffer[],
  known: readonly (Range & KnownString)[],
  accountId: string,
): Promise<JsonBody | null> {
  const short = replaced(chunks, known, placeholder);
  const body = await parseJson(await joined(short, accountId), accountId);
  if (!('value' in body) || !isObject(body.value)) return null;
  for (const [name, value] of Object.entries(body.value)) {
    if (typeof value !== 'string' || !value.startsWith(PLACEHOLDER)) continue;
    const found = known.find((_, index) => value === placeholder(index));
    if (found !== undefined) body.value[name] = found.value;
  }
  return body;
}

function placeholder(index: number): string {
  return `${PLACEHOLDER}${index}`;
}

/** Parses the body without the elements of its list, and checks the elements one after the other. */
export async function parseJsonList(
  bytes: Buffer,
  name: string,
  ranges: readonly Range[],
  accountId: string,
): Promise<JsonBody | Refusal> {
  // With a number in place of each element it is valid if and only if the body is valid apart from its elements.
  const outside = Buffer.concat(replaced([bytes], ranges, () => '0'));
  const body = await parseJson(outside, accountId);
  if (!('value' in body) || !isObject(body.value)) return body;
  const list = body.value[name];
  // The name can occur again with another value, which then replaces the list.
  if (!Array.isArray(list) || list.length !== ranges.length) return body;
  const broken = await inSlices(checkElements(bytes, name, ranges), accountId);
  if (broken !== null) return broken;
  const elements = ranges.map(({ start, end }) => new JsonElement(bytes.subarray(start, end)));
  return { value: { ...body.value, [name]: elements } };
}

/** The bytes of the chunks with another text in place of each range. */
function replaced(
  chunks: readonly Buffer[],
  ranges: readonly Range[],
  textOf: (index: number) => string,
): Buffer[] {
  const pieces: Buffer[] = [];
  let start = 0;
  for (const [index, range] of ranges.entries()) {
    pieces.push(...slice(chunks, { start, end: range.start }), Buffer.from(textOf(index)));
    start = range.end;
  }
  pieces.push(...slice(chunks, { start, end: Number.POSITIVE_INFINITY }));
  return pieces;
}

/** The parts of chunks that belong to a range. */
function slice(chunks: readonly Buffer[], { start, end }: Range): Buffer[] {
  const parts: Buffer[] = [];
  let at = 0;
  for (const chunk of chunks) {
    const part = chunk.subarray(Math.max(0, start - at), Math.max(0, end - at));
    if (part.length > 0) parts.push(part);
    at += chunk.length;
  }
  return parts;
}

function* checkElements(bytes: Buffer, name: string, ranges: readonly Range[]): Work<Refusal | null> {
  for (const [index, { start, end }] of ranges.entries()) {
    const element = bytes.subarray(start, end);
    if (isTooLarge(element)) continue;
    const parsed = parse(element, ` in ${name}[${index}]`);
    if (!('value' in parsed)) return parsed;
    yield;
  }
  return null;
}

function isTooLarge(element: Buffer): boolean {
  return element.length > MAX_ELEMENT_BYTES;
}

/** Parses JSON. `place` names the element; '' is the whole body, which may begin with a byte order mark. */
function parse(bytes: Buffer, place: string): JsonBody | Refusal {
  if (!isUtf8(bytes)) return refuse('INVALID_JSON', `The body is not valid UTF-8${place}`);
  const text = decodeUtf8(bytes);
  try {
    return { value: JSON.parse(place === '' ? text.replace(/^\uFEFF/, '') : text) };
  } catch (error) {
    // The message of the parser quotes the body; the response contains only the position.
    return refuse('INVALID_JSON', `The body is not valid JSON${place}${positionIn(error)}`);
  }
}

function positionIn(error: unknown): string {
  const position = error instanceof Error ? /at position (\d+)/.exec(error.message)?.[1] : undefined;
  return position === undefined ? '' : ` at character ${position}`;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
