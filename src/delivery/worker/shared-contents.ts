import { LRUCache } from 'lru-cache';
import type { SharedContent } from '../../mail/shared-content.ts';
import { unpackContent } from '../../mail/stored-content.ts';
import type { SharedReference } from './protocol.ts';

/** Decodes what many contents have in common, and keeps what was used last. */
export type SharedContents = (reference: SharedReference) => SharedContent;

/** Octets of JSON that are kept, together. A longer one is decoded for every copy. */
const MAX_KEPT = 32 * 1024 * 1024;

export function createSharedContents(): SharedContents {
  const kept = new LRUCache<number, { content: SharedContent; size: number }>({
    maxSize: MAX_KEPT,
    sizeCalculation: ({ size }) => size,
  });
  return (reference) => {
    const { id, size } = reference;
    const known = kept.get(id);
    if (known !== undefined) return known.content;
    // Sound: only campaigns/content.ts writes it.
    const content = JSON.parse(unpackContent(reference)) as SharedContent;
    kept.set(id, { content, size });
    return content;
  };
}
