import { expect, it } from 'vitest';
import { crashUntil } from './crashes.ts';

const seeds = Array.from({ length: 20 }, (_, n) => (Date.now() % 1_000_000) + n);

it.each(seeds)('sends no step twice and loses none at 500 of 10,000 crashes (seed %i)', async (seed) => {
  const { crashes, messages } = await crashUntil(500, seed, ({ sent, expected }) =>
    expect(sent).toEqual(expected),
  );
  expect(crashes).toBeGreaterThanOrEqual(500);
  expect(messages).toBeGreaterThan(100);
});
