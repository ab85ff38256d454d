import { LRUCache } from 'lru-cache';

/**
 * A cache of at most `max` entries, of which the least recently used is removed first. `new LRUCache({ max })` allocates
 * memory for all entries when it is created: with tens of thousands that takes milliseconds, for each of many caches at
 * the start of the daemon. This one grows with its entries.
 */
export function createLru<Value extends object>(max: number): LRUCache<string, Value> {
  return new LRUCache<string, Value>({ maxSize: max, sizeCalculation: () => 1 });
}
