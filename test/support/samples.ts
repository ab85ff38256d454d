import { readFileSync } from 'node:fs';

/** A file of test/samples/, whose README states where it is from and what is right. */
export function sample(name: string): Buffer {
  return readFileSync(new URL(`../samples/${name}`, import.meta.url));
}
