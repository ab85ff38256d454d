import { expect, it } from 'vitest';
import { fieldChoice, filledTexts } from '../../../src/console/parts/field-text.ts';

const form = new FormData();
form.set('name', ' Shop ');
form.set('note', '  ');
form.set('stream', 'tx');

it('has the fields with text only', () => {
  expect(filledTexts(form, 'name', 'note', 'other')).toEqual({ name: 'Shop' });
});

it('has a choice that is one of those offered', () => {
  expect(fieldChoice(form, 'stream', ['tx', 'mk'])).toBe('tx');
  expect(fieldChoice(form, 'stream', ['mk'])).toBeUndefined();
  expect(fieldChoice(form, 'other', ['mk'])).toBeUndefined();
});
