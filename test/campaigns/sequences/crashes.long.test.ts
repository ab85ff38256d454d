// Long: crashes 2,000 times, or 10,000 times with FUZZ=1.
import { expect, it } from 'vitest';
import { crashUntil } from './crashes.ts';

const CRASHES = process.env['FUZZ'] === undefined ? 2000 : 10_000;
const CRASHES_OF_RUN = 500;
const seeds = Array.from({ length: CRASHES / CRASHES_OF_RUN }, (_, n) => (Date.now() % 1_000_000) + n);

it.each(seeds)('sends no step twice and loses none at 500 crashes (seed %i)', async (seed) => {
  const { crashes, messages } = await crashUntil(CRASHES_OF_RUN, seed, ({ sent, expected }) =>
    expect(sent).toEqual(expected),
  );
  expect(crashes).toBeGreaterThanOrEqual(CRASHES_OF_RUN);
  expect(messages).toBeGreaterThan(100);
});
