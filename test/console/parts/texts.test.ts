import { expect, it } from 'vitest';
import deFirst from '../../../src/console/texts/de.json' with { type: 'json' };
import enFirst from '../../../src/console/texts/en.json' with { type: 'json' };
import deErrors from '../../../src/console/texts/errors/de.json' with { type: 'json' };
import frErrors from '../../../src/console/texts/errors/fr.json' with { type: 'json' };
import frFirst from '../../../src/console/texts/fr.json' with { type: 'json' };
import dePages from '../../../src/console/texts/pages/de.json' with { type: 'json' };
import enPages from '../../../src/console/texts/pages/en.json' with { type: 'json' };
import frPages from '../../../src/console/texts/pages/fr.json' with { type: 'json' };
import type { ErrorKey } from '../../../src/http/console/access.ts';

type Catalog = Readonly<Record<string, string>>;
const en: Catalog = { ...enFirst, ...enPages };
const TRANSLATIONS: [string, Catalog, Catalog][] = [
  ['de', deFirst, enFirst],
  ['fr', frFirst, enFirst],
  ['de, pages', dePages, enPages],
  ['fr, pages', frPages, enPages],
];

const placeholdersOf = (text = '') => [...text.matchAll(/\{\w+\}/g)].map(([name]) => name).sort();

it.each(TRANSLATIONS)(
  '%s has the keys of the English texts, in their order, and no empty one',
  (_, texts, english) => {
    // The English names of operations are the summaries of the API.
    const keys = Object.keys(texts).filter((key) => !key.startsWith('operation.'));
    expect(keys).toEqual(Object.keys(english));
    expect(Object.entries(texts).filter(([, text]) => text.trim() === '')).toEqual([]);
  },
);

it.each(TRANSLATIONS)('%s has the values of the English texts', (_, texts, english) => {
  const differing = Object.entries(english).filter(
    ([key, text]) => placeholdersOf(texts[key]).join() !== placeholdersOf(text).join(),
  );
  expect(differing.map(([key]) => key)).toEqual([]);
});

it('no text is in two files', () => {
  expect(Object.keys(enFirst).filter((key) => Object.hasOwn(enPages, key))).toEqual([]);
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
