import { expect, it } from 'vitest';
import { errors as de } from '../../../src/console/texts/errors/de.ts';
import { errors as fr } from '../../../src/console/texts/errors/fr.ts';

/** The texts that include the sentence of the server. */
const withMessage = (texts: Readonly<Record<string, string>>) =>
  Object.keys(texts).filter((key) => texts[key]?.includes('{message}'));

it('include the sentence of the server for the same errors in each language', () => {
  expect(withMessage(de)).toContain('VALIDATION_ERROR');
  expect(withMessage(fr)).toEqual(withMessage(de));
});
