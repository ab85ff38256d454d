import { expect, it } from 'vitest';
import de from '../../../src/console/texts/de.json' with { type: 'json' };
import en from '../../../src/console/texts/en.json' with { type: 'json' };
import deErrors from '../../../src/console/texts/errors/de.json' with { type: 'json' };
import frErrors from '../../../src/console/texts/errors/fr.json' with { type: 'json' };
import fr from '../../../src/console/texts/fr.json' with { type: 'json' };
import type { ErrorKey } from '../../../src/http/console/access.ts';

type Catalog = Readonly<Record<string, string>>;
const TRANSLATIONS: [string, Catalog][] = [
  ['de', de],
  ['fr', fr],
];

const placeholdersOf = (text = '') => [...text.matchAll(/\{\w+\}/g)].map(([name]) => name).sort();

it.each(TRANSLATIONS)(
  '%s has the keys of the English texts, in their order, and no empty one',
  (_, texts) => {
    // The English names of operations are the summaries of the API.
    const keys = Object.keys(texts).filter((key) => !key.startsWith('operation.'));
    expect(keys).toEqual(Object.keys(en));
    expect(Object.entries(texts).filter(([, text]) => text.trim() === '')).toEqual([]);
  },
);

it.each(TRANSLATIONS)('%s has the values of the English texts', (_, texts) => {
  const differing = Object.entries(en).filter(
    ([key, text]) => placeholdersOf(texts[key]).join() !== placeholdersOf(text).join(),
  );
  expect(differing.map(([key]) => key)).toEqual([]);
});

it('a text for one has a text for others', () => {
  const keys = Object.keys(en);
  const ones = keys.filter((key) => key.endsWith('.one'));
  expect(ones.length).toBeGreaterThan(0);
  expect(ones.filter((key) => !keys.includes(key.replace(/\.one$/, '.other')))).toEqual([]);
});

it('sentences of errors belong to errors of the server, which they include in each language alike', () => {
  type Unknown = Exclude<keyof typeof deErrors, ErrorKey>;
  const areKnown: [Unknown] extends [never] ? true : false = true;
  expect(areKnown).toBe(true);
  const withMessage = (texts: Catalog) =>
    Object.keys(texts).filter((key) => texts[key]?.includes('{message}'));
  expect(withMessage(deErrors)).toContain('VALIDATION_ERROR');
  expect(withMessage(frErrors)).toEqual(withMessage(deErrors));
  expect(Object.keys(frErrors)).toEqual(Object.keys(deErrors));
});
