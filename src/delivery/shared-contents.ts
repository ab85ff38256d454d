import { LRUCache } from 'lru-cache';
import type { Tables } from '../store/tables.ts';
import type { SharedReference } from './worker/protocol.ts';

/**
 * Reads what many contents have in common, and keeps what was used last in memory that all threads read: jobs refer to
 * it, and it is copied for none of them.
 */
export type SharedContentReader = (sharedId: number) => Omit<SharedReference, 'identity'> | null;

/** Octets that are kept, together, as they are stored. */
const MAX_KEPT = 32 * 1024 * 1024;

export function createSharedContentReader(tables: Tables): SharedContentReader {
  const kept = new LRUCache<number, Omit<SharedReference, 'identity'>>({
    maxSize: MAX_KEPT,
    sizeCalculation: ({ octets }) => octets.byteLength,
  });
  return (id) => {
    const known = kept.get(id);
    if (known !== undefined) return known;
    const row = tables.sharedContents.get(id);
    if (row === null) return null;
    const { encoding, size } = row;
    const octets = new Uint8Array(new SharedArrayBuffer(row.octets.byteLength));
    octets.set(row.octets);
    const content = { id, octets, encoding, size };
    kept.set(id, content);
    return content;
  };
}
