import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { CHECKS } from '../../src/doctor/checks.ts';
import { CHECK_GROUPS } from '../../src/doctor/context.ts';

const PAGE = readFileSync(new URL('../../docs/reference/checks.md', import.meta.url), 'utf8');
const headings = (level: string) =>
  [...PAGE.matchAll(new RegExp(`^${level} (.+)$`, 'gm'))].map(([, heading]) => heading);

describe('docs/reference/checks.md', () => {
  it('has a section for each group and each check, in the order of the table', () => {
    expect(headings('##')).toEqual(CHECK_GROUPS);
    expect(headings('###')).toEqual(CHECKS.map(({ id }) => id));
  });

  it('quotes log messages that the program writes', () => {
    const folder = new URL('../../src/', import.meta.url);
    const source = readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts'))
      .map((file) => readFileSync(new URL(file, folder), 'utf8'))
      .join('\n');
    const quotes = [...PAGE.matchAll(/\*\*Log:\*\*\s+`([^`]+)`/g)].map(([, quote = '']) => quote);
    expect(quotes.length).toBeGreaterThan(8);
    expect(quotes.filter((quote) => !source.includes(quote))).toEqual([]);
  });

  it('describes unique checks whose groups are in the order of the report', () => {
    expect(new Set(CHECKS.map(({ id }) => id)).size).toBe(CHECKS.length);
    const groups = CHECKS.map(({ group }) => CHECK_GROUPS.indexOf(group));
    expect(groups).toEqual(groups.toSorted((one, two) => one - two));
  });
});
