import { expect, it } from 'vitest';
import { shortTime } from '../../../src/console/parts/local-time.ts';

const NOW = Date.parse('2026-05-17T12:00:00Z');

// Abbreviations have a point in some versions of the data of languages.
it.each([
  [/^now$/, 20],
  [/^now$/, -59],
  [/^1 min\.? ago$/, -60],
  [/^in 5 min\.?$/, 300],
  [/^2 hr\.? ago$/, -2 * 3600],
])('is %s for %i seconds from now', (text, seconds) => {
  expect(shortTime(NOW + seconds * 1000, NOW, 'en-US')).toMatch(text);
});

it('names the year of another one', () => {
  expect(shortTime(Date.parse('2025-05-17T12:00:00Z'), NOW, 'en-US')).toContain('2025');
  expect(shortTime(Date.parse('2026-03-17T12:00:00Z'), NOW, 'en-US')).not.toContain('2026');
});
