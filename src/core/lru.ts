import { LRUCache } from 'lru-cache';
import type { Clock } from './clock.ts';

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

/** A cache like `createLru` whose values expire by `clock`, a monotonic one: setting the system clock must not extend them. */
export function createExpiringCache<Value>(clock: Clock, max: number, placesOf?: (value: Value) => number) {
  const entries = createLru<{ value: Value; until: number }>(max, ({ value }) => placesOf?.(value) ?? 1);
  return {
    /** Undefined: there is none, or it has expired. */
    get: (key: string): Value | undefined => {
      const entry = entries.get(key);
      return entry !== undefined && entry.until > clock.now() ? entry.value : undefined;
    },
    /** Milliseconds until the value expires. */
    leftMs: (key: string): number => Math.max(0, (entries.peek(key)?.until ?? 0) - clock.now()),
    set: (key: string, value: Value, ms: number): void =>
      void entries.set(key, { value, until: clock.now() + ms }),
    clear: (): void => entries.clear(),
  };
}
