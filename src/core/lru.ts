import { LRUCache } from 'lru-cache';

/**
 * Creates a cache of at most `max` entries, which evicts the least recently used. `placesOf`: how many entries a value counts
 * for, a positive integer; default: one.
 *
 * `new LRUCache({ max })` allocates memory for all entries when it is created; with tens of thousands of entries that takes
 * milliseconds, for each of many caches at the start of the daemon. This one grows with its entries.
 */
export function createLru<Value extends object>(
  max: number,
  placesOf: (value: Value) => number = () => 1,
): LRUCache<string, Value> {
  return new LRUCache<string, Value>({ maxSize: max, sizeCalculation: placesOf });
}
