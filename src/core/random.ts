import { randomBytes, randomInt } from 'node:crypto';

/** Randomness, passed in so that a test can repeat it. Always cryptographically strong in the daemon. */
export interface Random {
  bytes(length: number): Buffer;
  /** An integer from 0 up to, not including, `bound`. */
  below(bound: number): number;
}

export const systemRandom: Random = drawnInBlocks();

/** Small draws come from a block that is drawn at once: asking the system costs more than the bytes do. */
function drawnInBlocks(): Random {
  const size = 8192;
  let block = Buffer.alloc(0);
  return {
    bytes: (length) => {
      if (length > size / 8) return randomBytes(length);
      if (block.length < length) block = randomBytes(size);
      const drawn = Buffer.from(block.subarray(0, length));
      // Handed out once: what was drawn must not lie about in memory to be drawn again.
      block.fill(0, 0, length);
      block = block.subarray(length);
      return drawn;
    },
    below: (bound) => randomInt(bound),
  };
}

/** `length` characters drawn evenly from `alphabet` (at most 256 characters; no modulo bias). */
export function randomText(random: Random, alphabet: string, length: number): string {
  const fair = 256 - (256 % alphabet.length);
  let text = '';
  while (text.length < length) {
    for (const byte of random.bytes((length - text.length) * 2)) {
      if (byte < fair && text.length < length) text += alphabet[byte % alphabet.length];
    }
  }
  return text;
}

/** Shuffles a copy (Fisher-Yates): for hosts of equal preference (RFC 5321 §5.1). */
export function shuffled<T>(random: Random, items: readonly T[]): T[] {
  const copy = [...items];
  for (let last = copy.length - 1; last > 0; last--) {
    const other = random.below(last + 1);
    [copy[last], copy[other]] = [copy[other] as T, copy[last] as T];
  }
  return copy;
}
