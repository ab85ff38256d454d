import { createHash } from 'node:crypto';
import { inSlices, type Work } from '../core/concurrency/slices.ts';
import type { SharedContent, SharedPart, SharedTexts } from '../mail/shared-content.ts';
import {
  contentWriter,
  jsonStringPieces,
  type LongContent,
  type PackedContent,
  packLongContent,
} from '../mail/stored-content.ts';

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
  const texts = Object.values(partsOf(content)).flatMap((part) => part?.texts ?? []);
  const writer = contentWriter(texts.reduce((sum, text) => sum + text.length, 0));
  for (const piece of contentPieces(content)) {
    writer.write(piece);
    yield;
  }
  return writer.end();
}

/** The parts by name. */
function partsOf(content: SharedTexts | SharedContent): Record<string, SharedPart | null> {
  const { html, text } = content;
  return 'subject' in content ? { subject: content.subject, html, text } : { html, text };
}

/** The JSON of a content. */
function* contentPieces(content: SharedTexts | SharedContent): Generator<string> {
  const parts = partsOf(content);
  const others = Object.entries(content).filter(([name]) => !(name in parts));
  let opening = '{';
  for (const [name, value] of others) {
    yield `${opening}${JSON.stringify(name)}:${JSON.stringify(value)}`;
    opening = ',';
  }
  for (const [name, part] of Object.entries(parts)) {
    yield `${opening}${JSON.stringify(name)}:`;
    opening = ',';
    if (part === null) yield 'null';
    else yield* partPieces(part);
  }
  yield '}';
}

function* partPieces({ texts, ...rest }: SharedPart): Generator<string> {
  yield `${JSON.stringify(rest).slice(0, -1)},"texts":[`;
  for (const [index, text] of texts.entries()) {
    if (index > 0) yield ',';
    yield* jsonStringPieces(text);
  }
  yield ']}';
}
