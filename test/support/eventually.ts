/**
 * Waits until `look` returns something that is neither null nor false, and returns that: for what happens in
 * another process, which can only be looked at. Fails with what was waited for, never with a bare time-out.
 */
export async function eventually<T>(
  what: string,
  look: () => T | null | false | Promise<T | null | false>,
  options: { ms?: number; everyMs?: number } = {},
): Promise<T> {
  const { ms = 30_000, everyMs = 25 } = options;
  const deadline = Date.now() + ms;
  for (;;) {
    const seen = await look();
    if (seen !== null && seen !== false) return seen;
    if (Date.now() > deadline) throw new Error(`waited ${ms} ms in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
}
