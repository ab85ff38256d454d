/** Sums by key, for example the requests in progress of each account. A key whose sum is 0 takes no memory. */
export function createTally() {
  const sums = new Map<string, number>();
  let total = 0;

  function add(key: string, amount: number): void {
    total += amount;
    const sum = (sums.get(key) ?? 0) + amount;
    if (sum === 0) sums.delete(key);
    else sums.set(key, sum);
  }

  return {
    /** The sum of all keys. */
    get total(): number {
      return total;
    },
    /** Number of keys whose sum is not 0. */
    get keys(): number {
      return sums.size;
    },
    of: (key: string): number => sums.get(key) ?? 0,
    add,
    /** Adds the amount until the returned function is called; calling it again has no effect. */
    hold: (key: string, amount = 1): (() => void) => {
      add(key, amount);
      let isHeld = true;
      return () => {
        if (isHeld) add(key, -amount);
        isHeld = false;
      };
    },
    clear: (): void => {
      sums.clear();
      total = 0;
    },
  };
}
