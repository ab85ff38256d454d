import { isUtf8 } from 'node:buffer';
import { eventLoopTurns, inSlices, type Work } from '../../core/concurrency/slices.ts';
import type { Range } from '../../core/json-scan.ts';
import { type Refusal, refuse } from '../../core/refusal.ts';
import { decodeUtf8 } from '../../core/utf8.ts';

/** Parses JSON bodies: as a whole, or without the elements of a list, which are parsed one at a time. */

/** `value` is undefined when the body is empty. */
export interface JsonBody {
  value: unknown;
}

/** Bodies up to this size are parsed in the turn in which their chunks were joined. */
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
  return first !== undefined && chunks.length === 1 ? first : inSlices(joining(chunks), accountId);
}

function* joining(chunks: readonly Buffer[]): Work<Buffer> {
  const bytes = Buffer.allocUnsafe(chunks.reduce((sum, { length }) => sum + length, 0));
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

/** Parses the body without the elements of its list, and checks the elements one after the other. */
export async function parseJsonList(
  bytes: Buffer,
  name: string,
  ranges: readonly Range[],
  accountId: string,
): Promise<JsonBody | Refusal> {
  const body = await parseJson(withoutElements(bytes, ranges), accountId);
  if (!('value' in body) || !isObject(body.value)) return body;
  const list = body.value[name];
  // The name can occur again with another value, which then replaces the list.
  if (!Array.isArray(list) || list.length !== ranges.length) return body;
  const broken = await inSlices(checkElements(bytes, name, ranges), accountId);
  if (broken !== null) return broken;
  const elements = ranges.map(({ start, end }) => new JsonElement(bytes.subarray(start, end)));
  return { value: { ...body.value, [name]: elements } };
}

/** The body with a number in place of each element: valid if and only if the body is valid apart from its elements. */
function withoutElements(bytes: Buffer, ranges: readonly Range[]): Buffer {
  const pieces: Buffer[] = [];
  let at = 0;
  for (const { start, end } of ranges) {
    pieces.push(bytes.subarray(at, start), Buffer.from('0'));
    at = end;
  }
  pieces.push(bytes.subarray(at));
  return Buffer.concat(pieces);
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
