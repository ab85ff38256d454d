/** Numbers in one page: 4 KiB. */
const PAGE_NUMBERS = 32_768;

/**
 * A set of integers from 0 on. It needs a bit for each where they are close together, and has no limit, unlike a `Set`, which
 * needs 40 bytes for each and has at most 16,777,216.
 */
export function createNumberSet() {
  const pages = new Map<number, Uint8Array>();
  const placeOf = (value: number) => {
    const bit = value % PAGE_NUMBERS;
    return { page: (value - bit) / PAGE_NUMBERS, byte: bit >> 3, mask: 1 << (bit & 7) };
  };

  return {
    add: (value: number): void => {
      const { page, byte, mask } = placeOf(value);
      const bits = pages.get(page) ?? new Uint8Array(PAGE_NUMBERS / 8);
      bits[byte] = (bits[byte] ?? 0) | mask;
      pages.set(page, bits);
    },
    has: (value: number): boolean => {
      const { page, byte, mask } = placeOf(value);
      return ((pages.get(page)?.[byte] ?? 0) & mask) !== 0;
    },
    delete: (value: number): void => {
      const { page, byte, mask } = placeOf(value);
      const bits = pages.get(page);
      if (bits !== undefined) bits[byte] = (bits[byte] ?? 0) & ~mask;
    },
    /** The numbers that were in the set when their page was reached, in the order of the pages' first numbers. */
    values: function* (): Generator<number> {
      for (const [page, bits] of pages)
        for (const [byte, mask] of bits.entries())
          for (let bit = 0; bit < 8; bit++)
            if ((mask & (1 << bit)) !== 0) yield page * PAGE_NUMBERS + byte * 8 + bit;
    },
  };
}

export type NumberSet = ReturnType<typeof createNumberSet>;
