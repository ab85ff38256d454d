import { type Answer, encode } from 'dns-packet';
import { describe, expect, it } from 'vitest';
import { decodedSize } from '../../src/dns/message-size.ts';

const QUESTION = { name: 'a.example', type: 'TXT' } as const;

const responseWith = (answers: Answer[]) =>
  encode({ type: 'response', id: 1, questions: [QUESTION], answers });
const txt = (...data: string[]): Answer => ({ type: 'TXT', name: 'a.example', ttl: 300, data });
const mx = (number: number): Answer => ({
  type: 'MX',
  name: 'a.example',
  ttl: 300,
  data: { preference: 10, exchange: `mx${number}.a.example` },
});
const many = <T>(count: number, create: (number: number) => T) =>
  Array.from({ length: count }, (_, number) => create(number));

describe('the size of a decoded message', () => {
  it('is that of its bytes, records and strings', () => {
    const bytes = responseWith([txt('v=spf1 -all'), txt('a', 'b', 'c')]);
    expect(decodedSize(bytes)).toBe(bytes.length + 128 * (2 + 4));
  });

  it.each([
    ['records', responseWith(many(256, mx)), responseWith(many(257, mx))],
    ['strings', responseWith([txt(...many(1024, () => ''))]), responseWith([txt(...many(1025, () => ''))])],
    [
      'strings of several records',
      responseWith(many(128, () => txt(...many(8, () => 'x')))),
      responseWith(many(129, () => txt(...many(8, () => 'x')))),
    ],
  ])('has a limit of %s', (_, allowed, refused) => {
    expect(decodedSize(allowed)).toEqual(expect.any(Number));
    expect(decodedSize(refused)).toBeNull();
  });

  it('is unknown for a message that ends in a header, a name or a record', () => {
    const bytes = responseWith([txt('v=spf1 -all')]);
    for (let length = 0; length < bytes.length; length++)
      expect(decodedSize(bytes.subarray(0, length)), `${length} bytes`).toBeNull();
  });

  it('does not follow pointers', () => {
    const bytes = Buffer.concat([responseWith([]), Buffer.from([0xc0, 0x1b, 0, 16, 0, 1, 0, 0, 0, 9, 0, 0])]);
    bytes.writeUInt16BE(1, 6);
    expect(decodedSize(bytes)).toBe(bytes.length + 128);
  });
});
