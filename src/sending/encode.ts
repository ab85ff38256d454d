import { createHash } from 'node:crypto';
import { inSlices, type Order, type Work } from '../core/concurrency/slices.ts';
import { isRefusal, type Refusal, refuse } from '../core/refusal.ts';
import type { MessageContent } from '../mail/content.ts';
import type { SharedContent, SharedTexts, TemplatedContent } from '../mail/shared-content.ts';
import {
  type LongContent,
  MAX_DEFLATED_INLINE,
  type PackedContent,
  packContent,
  packLongContent,
  plainContent,
  writeDocumentInSteps,
} from '../mail/stored-content.ts';

/** Characters of the texts and files of all contents of a request, which are written in one unit of work. */
export const MAX_STORED_CHARACTERS = 16 * 1024 * 1024;

/** A content for storage. */
export interface StorableContent extends PackedContent {
  /** The texts of a repeated template, which are stored once; undefined: the content is complete. */
  shared?: PackedShared;
}

/** Encodes a content whose texts are those of a repeated template. `values`: those of this message. */
export function encodeTemplated(
  { html: _html, text: _text, ...fields }: MessageContent,
  { values, ...shared }: PackedShared & Pick<TemplatedContent, 'values'>,
): StorableContent {
  const own: TemplatedContent = { values, fields };
  return { ...packContent(JSON.stringify(own)), shared };
}

/** Encodes the contents of an account's send for storage; refused when they are too large together. */
export async function encodeContents(
  contents: readonly MessageContent[],
  accountId: string,
  order: Order = 'alternate',
): Promise<PackedContent[] | Refusal> {
  const packed = await inSlices(encodeContentsInSteps(contents), accountId, order);
  if (isRefusal(packed)) return packed;
  const all: PackedContent[] = [];
  for (const content of packed) all.push(await packLongContent(content));
  return all;
}

/** Encodes in steps. */
function* encodeContentsInSteps(
  contents: readonly MessageContent[],
): Work<(PackedContent | LongContent)[] | Refusal> {
  const size = contents.reduce((sum, content) => sum + textLength(content) + fileLength(content), 0);
  if (size > MAX_STORED_CHARACTERS) {
    const message = `The message is too large: all its copies together can have at most ${MAX_STORED_CHARACTERS} characters`;
    return refuse('PAYLOAD_TOO_LARGE', message);
  }
  const isDeflated = isWorthDeflating(contents);
  const packed: (PackedContent | LongContent)[] = [];
  for (const content of contents) {
    packed.push(
      isLong(content)
        ? { document: yield* writeDocumentInSteps(content), isDeflated }
        : (isDeflated ? packContent : plainContent)(JSON.stringify(content)),
    );
    yield;
  }
  return packed;
}

function isLong(content: MessageContent): boolean {
  return textLength(content) + fileLength(content) > MAX_DEFLATED_INLINE;
}

/** Attachments are usually compressed already: deflating them takes long and saves little. */
function isWorthDeflating([content]: readonly MessageContent[]): boolean {
  if (content === undefined) return false;
  return fileLength(content) <= textLength(content);
}

/** Characters of base64. */
function fileLength({ attachments, alternatives = [] }: MessageContent): number {
  return [...attachments, ...alternatives].reduce((sum, { content }) => sum + content.length, 0);
}

function textLength({ html, text }: MessageContent): number {
  return html.length + (text?.length ?? 0);
}

/** A shared content for storage. */
export interface PackedShared {
  packed: PackedContent;
  /** SHA-256 of the scope and of the packed body. */
  digest: Buffer;
}

/** Encodes in turns of the account. `scope`: contents of different scopes have different digests. */
export async function packShared(
  content: SharedTexts | SharedContent,
  accountId: string,
  scope = '',
): Promise<PackedShared> {
  const { body, size } = await packLongContent(await inSlices(encodeSharedInSteps(content), accountId));
  return { packed: { body, size }, digest: createHash('sha256').update(scope).update(body).digest() };
}

/** Encodes in steps: the texts may be megabytes long. */
function* encodeSharedInSteps(content: SharedTexts | SharedContent): Work<PackedContent | LongContent> {
  const texts = [content.html, content.text].flatMap((part) => part?.texts ?? []);
  const length = texts.reduce((sum, text) => sum + text.length, 0);
  return length > MAX_DEFLATED_INLINE
    ? { document: yield* writeDocumentInSteps(content), isDeflated: true }
    : packContent(JSON.stringify(content));
}
