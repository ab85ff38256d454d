import { isRefusal, type Refusal, refuse } from '../core/refusal.ts';
import { inSlices, type Work } from '../core/slices.ts';
import type { MessageContent } from '../mail/content.ts';
import {
  type LongContent,
  type PackedContent,
  packLongContent,
  packUnlessLong,
  plainContent,
} from '../mail/stored-content.ts';

/** Characters of all contents of a request as JSON, which are written in one unit of work. */
export const MAX_STORED_CHARACTERS = 16 * 1024 * 1024;
/**
 * Characters of one string that are encoded between two yields: 0.1 ms for usual HTML, 4 ms for the worst text. Encoding in
 * several steps copies the text twice.
 */
const CHARACTERS_PER_STEP = 128 * 1024;

/** Encodes the contents of an account's send for storage; refused when they are too large together. */
export async function encodeContents(
  contents: readonly MessageContent[],
  accountId: string,
): Promise<PackedContent[] | Refusal> {
  const pack = isWorthDeflating(contents) ? packUnlessLong : plainContent;
  const packed = await inSlices(encodingContents(contents, pack), accountId);
  if (isRefusal(packed)) return packed;
  const all: PackedContent[] = [];
  for (const content of packed) all.push(await packLongContent(content));
  return all;
}

/** Attachments are usually compressed already: deflating them takes long and saves little more than base64 costs. */
function isWorthDeflating([content]: readonly MessageContent[]): boolean {
  if (content === undefined) return false;
  const { html, text, attachments, alternatives = [] } = content;
  const encoded = [...attachments, ...alternatives].reduce((sum, part) => sum + part.content.length, 0);
  return encoded <= html.length + (text?.length ?? 0);
}

/** In steps. */
function* encodingContents(
  contents: readonly MessageContent[],
  pack: (json: string) => PackedContent | LongContent,
): Work<(PackedContent | LongContent)[] | Refusal> {
  // Long strings are often equal in all contents.
  const encodingHtml = rememberingLast();
  const encodingText = rememberingLast();
  const packed: (PackedContent | LongContent)[] = [];
  let size = 0;
  for (const content of contents) {
    const { html, text, ...rest } = content;
    let body: string;
    if (html.length + (text?.length ?? 0) <= CHARACTERS_PER_STEP) body = JSON.stringify(content);
    else {
      const long = `"html":${yield* encodingHtml(html)},"text":${text === null ? 'null' : yield* encodingText(text)}`;
      body = `${JSON.stringify(rest).slice(0, -1)},${long}}`;
    }
    size += body.length;
    if (size > MAX_STORED_CHARACTERS) {
      const message = `The message is too large: all its copies together can have at most ${MAX_STORED_CHARACTERS} characters`;
      return refuse('PAYLOAD_TOO_LARGE', message);
    }
    // A long body is packed in a separate step.
    if (body.length > CHARACTERS_PER_STEP) yield;
    packed.push(pack(body));
    yield;
  }
  return packed;
}

/** `encodingString` that keeps its last result. Not a map of all: it would read each string to find it. */
function rememberingLast(): (text: string) => Work<string> {
  let last = { text: '', json: '""' };
  return function* (text) {
    if (last.text !== text) last = { text, json: yield* encodingString(text) };
    return last.json;
  };
}

/** JSON of a string, in steps. */
export function* encodingString(text: string): Work<string> {
  if (text.length <= CHARACTERS_PER_STEP) return JSON.stringify(text);
  const pieces: string[] = [];
  for (let at = 0; at < text.length; ) {
    let end = at + CHARACTERS_PER_STEP;
    // Surrogate pairs are not split: JSON escapes a single surrogate.
    if (isHighSurrogate(text.charCodeAt(end - 1))) end++;
    pieces.push(JSON.stringify(text.slice(at, end)).slice(1, -1));
    at = end;
    yield;
  }
  return `"${pieces.join('')}"`;
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}
