import { expect, it } from 'vitest';
import { crashUntil } from './crashes.ts';

it('sends no step twice and loses none, wherever its process crashes', async () => {
  const { crashes, messages } = await crashUntil(300, 1, ({ sent, expected }) =>
    expect(sent).toEqual(expected),
  );
  expect(crashes).toBeGreaterThanOrEqual(300);
  expect(messages).toBeGreaterThan(100);
});
