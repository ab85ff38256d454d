import { expect, it } from 'vitest';
import { parseMoment } from '../../src/core/clock.ts';
import { parseMailbox } from '../../src/mail/address.ts';
import { sample } from '../support/samples.ts';

const read = (name: string): unknown[] => JSON.parse(sample(name).toString());
const texts = (name: string) => read(name).filter((value) => typeof value === 'string');

it.each(texts('f8-names.json'))('the error about the name of %s states what to quote', (text) => {
  const [, name = '', address = ''] = /^(.*) (<.*>)$/.exec(text) ?? [];
  expect(parseMailbox(text)).toContain(`must be in quotation marks: "${name}" ${address}`);
});

it.each(texts('f9-offsets.json'))('the time %s is accepted', (text) => {
  expect(parseMoment(text)).toBe(Date.UTC(2026, 11, 10, 9));
});
