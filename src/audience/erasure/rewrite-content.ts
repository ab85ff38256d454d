import { createHash } from 'node:crypto';
import { packContent, packLongContent, plainContent, unpackContent } from '../../mail/stored-content.ts';
import { ReadRejected } from '../../store/database/failure.ts';
import type { ContentRow, NewContent } from '../../store/messages/messages.ts';
import { type Reader, readQuery } from '../../store/readers/reads.ts';
import type { Tables } from '../../store/tables.ts';
import { type ErasureRun, positionOf } from './eraser.ts';
import { createScrubber, type Person, withoutRecipient } from './scrub.ts';

/*
 * Removes a person from a content that is still to be sent to others. Rewriting a content of several MB takes hundreds of
 * milliseconds: a long one is rewritten on a reader thread and compressed in libuv's pool, and a unit of work stores the
 * result if the content has not changed in the meantime.
 */

/** Bytes of JSON that are rewritten in a unit of work. */
const MAX_INLINE_BYTES = 32 * 1024;

const REWRITTEN = 'rewritten content';

interface RewrittenContent {
  contentId: number;
  /** Null: it must be rewritten. */
  result: { digest: string; content: NewContent } | null;
}

/** In a unit of work. Returns false when nothing was done, because `prepareContent` must rewrite the content first. */
export function rewriteContent({ messages, erasures }: Tables, contentId: number, run: ErasureRun): boolean {
  const stored = messages.content(contentId);
  if (stored === null) return true;
  if (stored.size <= MAX_INLINE_BYTES) {
    erasures.setContent(contentId, packContent(withoutRecipient(unpackContent(stored), run.scrubber)));
    return true;
  }
  const last = positionOf<RewrittenContent | null>(run, REWRITTEN, null);
  if (last?.contentId !== contentId || last.result?.digest !== digestOf(stored)) {
    run.progress.set(REWRITTEN, { contentId, result: null } satisfies RewrittenContent);
    return false;
  }
  erasures.setContent(contentId, last.result.content);
  return true;
}

/** Rewrites the content that `rewriteContent` requires. Resolves with false when the reader threads are busy or closing. */
export async function prepareContent(reader: Reader, run: ErasureRun): Promise<boolean> {
  const last = positionOf<RewrittenContent | null>(run, REWRITTEN, null);
  if (last === null) return true;
  const { contentId } = last;
  const { account_id: accountId, person } = run.row;
  try {
    const rewritten = await reader.query(accountId, contentWithoutPerson, contentId, person);
    if (rewritten === null) return true;
    const { json, digest, isDeflated } = rewritten;
    const content = isDeflated ? await packLongContent({ bytes: Buffer.from(json) }) : plainContent(json);
    run.progress.set(REWRITTEN, { contentId, result: { digest, content } } satisfies RewrittenContent);
    return true;
  } catch (error) {
    if (error instanceof ReadRejected && error.reason !== 'too-broad') return false;
    throw error;
  }
}

/** `person`: that of the erasure, as JSON. Null: the content was deleted. */
export const contentWithoutPerson = readQuery(
  'contentWithoutPerson',
  (
    tables: Tables,
    contentId: number,
    person: string,
  ): { json: string; digest: string; isDeflated: boolean } | null => {
    const stored = tables.messages.content(contentId);
    if (stored === null) return null;
    const json = withoutRecipient(unpackContent(stored), createScrubber(JSON.parse(person) as Person));
    return { json, digest: digestOf(stored), isDeflated: stored.encoding === 'deflate' };
  },
);

/** SHA-256 of the stored bytes, by which a change is noticed. */
function digestOf({ bytes }: ContentRow): string {
  return createHash('sha256').update(bytes).digest('hex');
}
