import { LRUCache } from 'lru-cache';
import { type Clock, SECOND } from '../core/clock.ts';

/** Values that hold for a number of seconds by the house's clock; the least used give way when it is full. */
export interface Cache<T> {
  /** `ttl`: whole seconds that the value still holds, at least 1. */
  get(key: string): { value: T; ttl: number } | undefined;
  set(key: string, value: T, ttl: number): void;
  clear(): void;
}

export function createCache<T>(clock: Clock, size: number): Cache<T> {
  const entries = new LRUCache<string, { value: T; expiresAt: number }>({ max: size });
  return {
    get: (key) => {
      const entry = entries.get(key);
      if (!entry) return undefined;
      const left = entry.expiresAt - clock.now();
      if (left > 0) return { value: entry.value, ttl: Math.ceil(left / SECOND) };
      entries.delete(key);
      return undefined;
    },
    set: (key, value, ttl) => entries.set(key, { value, expiresAt: clock.now() + ttl * SECOND }),
    clear: () => entries.clear(),
  };
}
