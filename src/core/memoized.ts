/**
 * Returns a function that computes a value from `source()` and caches it until `source()` returns a different object or
 * value. For values that derive from settings, which a reload replaces.
 */
export function memoized<Source, Result>(
  source: () => Source,
  compute: (source: Source) => Result,
): () => Result {
  let last: { source: Source; result: Result } | null = null;
  return () => {
    const current = source();
    if (last === null || !Object.is(last.source, current))
      last = { source: current, result: compute(current) };
    return last.result;
  };
}
