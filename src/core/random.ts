import { randomBytes, randomInt } from 'node:crypto';

/** Randomness as a dependency, so that tests can repeat it. Cryptographically strong in the daemon. */
export interface Random {
  bytes(length: number): Buffer;
  /** An integer from 0 up to, not including, `bound`. */
  below(bound: number): number;
}

export const systemRandom: Random = createBlockRandom();

/** Small requests are served from a block: a system call costs more than its bytes. */
function createBlockRandom(): Random {
  const size = 8192;
  let block = Buffer.alloc(0);
  return {
    bytes: (length) => {
      if (length > size / 8) return randomBytes(length);
      if (block.length < length) block = randomBytes(size);
      const bytes = Buffer.from(block.subarray(0, length));
      // The block's copy of the returned bytes is cleared: they are never returned again and do not remain in memory.
      block.fill(0, 0, length);
      block = block.subarray(length);
      return bytes;
    },
    below: (bound) => randomInt(bound),
  };
}

/** `length` characters of `alphabet` (at most 256 characters), uniformly distributed without modulo bias. */
export function randomText(random: Random, alphabet: string, length: number): string {
  const limit = 256 - (256 % alphabet.length);
  let text = '';
  while (text.length < length) {
    for (const byte of random.bytes((length - text.length) * 2)) {
      if (byte < limit && text.length < length) text += alphabet[byte % alphabet.length];
    }
  }
  return text;
}

/** A shuffled copy (Fisher-Yates), for hosts of equal preference (RFC 5321 §5.1). */
export function shuffled<T>(random: Random, items: readonly T[]): T[] {
  const copy = [...items];
  for (let last = copy.length - 1; last > 0; last--) {
    const other = random.below(last + 1);
    [copy[last], copy[other]] = [copy[other] as T, copy[last] as T];
  }
  return copy;
}
