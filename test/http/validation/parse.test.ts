import { describe, expect, it, vi } from 'vitest';
import * as z from 'zod';
import { isRefusal } from '../../../src/core/refusal.ts';
import { atMost } from '../../../src/http/api/fields.ts';
import { parseInput } from '../../../src/http/validation/parse.ts';
import { unknownFields, unknownWarnings } from '../../../src/http/validation/unknown-fields.ts';

/** `field: message` of every detail. */
function errorsOf(schema: z.ZodType, value: unknown): string[] {
  const result = parseInput(schema, value, 'body');
  return isRefusal(result)
    ? (result.extras.details ?? []).map(({ field, message }) => `${field}: ${message}`)
    : [];
}

/** Returns a check that yields the warnings about unknown fields. */
function unknownIn(schema: z.ZodType) {
  return (value: unknown): string[] => {
    const unknown = unknownFields(schema, value, 'body');
    return isRefusal(unknown) ? [unknown.message] : unknownWarnings(unknown, 'field');
  };
}

const recipients = z.union([z.string().min(1), z.array(z.string().min(1)).max(2)]);

describe('messages', () => {
  it.each<[string, z.ZodType, unknown, string[]]>([
    ['nothing', z.object({ a: z.string() }), { a: 'x' }, []],
    ['missing', z.object({ a: z.string() }), {}, ['a: is required']],
    ['missing, of several forms', z.object({ to: recipients }), {}, ['to: is required']],
    ['missing, of a list of words', z.object({ a: z.enum(['x', 'y']) }), {}, ['a: is required']],
    ['null', z.object({ a: z.string() }), { a: null }, ['a: must be a string']],
    ['a string', z.object({ a: z.string() }), { a: 1 }, ['a: must be a string']],
    ['a number', z.object({ a: z.number() }), { a: '1' }, ['a: must be a number']],
    ['an integer', z.object({ a: z.int() }), { a: 1.5 }, ['a: must be an integer']],
    ['a flag', z.object({ a: z.boolean() }), { a: 'yes' }, ['a: must be true or false']],
    ['an array', z.object({ a: z.array(z.string()) }), { a: {} }, ['a: must be an array']],
    ['an object', z.object({ a: z.object({}) }), { a: [] }, ['a: must be an object']],
    ['a map', z.object({ a: z.record(z.string(), z.string()) }), { a: 'x' }, ['a: must be an object']],
    ['not an object at all', z.object({}), 'x', ['body: must be an object']],
    ['empty', z.object({ a: z.string().min(1) }), { a: '' }, ['a: must not be empty']],
    ['an empty list', z.object({ a: z.array(z.string()).min(1) }), { a: [] }, ['a: must not be empty']],
    ['too short', z.object({ a: z.string().min(3) }), { a: 'x' }, ['a: must have at least 3 characters']],
    ['too long', z.object({ a: z.string().max(2) }), { a: 'xyz' }, ['a: must have at most 2 characters']],
    [
      'too many',
      z.object({ a: z.array(z.string()).max(1) }),
      { a: ['x', 'y'] },
      ['a: must have at most 1 entries'],
    ],
    ['too small', z.object({ a: z.number().min(1) }), { a: 0 }, ['a: must be at least 1']],
    ['too large', z.object({ a: z.number().lt(5) }), { a: 5 }, ['a: must be less than 5']],
    [
      'none of the words',
      z.object({ a: z.enum(['tx', 'mk']) }),
      { a: 'xx' },
      ['a: must be one of "tx", "mk"'],
    ],
    ['not the word', z.object({ a: z.literal('*') }), { a: 'x' }, ['a: must be "*"']],
    ['an address', z.object({ a: z.email() }), { a: 'x' }, ['a: must be an email address']],
    [
      'a time',
      z.object({ a: z.iso.datetime() }),
      { a: 'now' },
      ['a: must be a time such as 2026-01-31T12:00:00.000Z'],
    ],
    [
      'a message of the schema',
      z.object({ a: z.string().regex(/x/, 'must have an x') }),
      { a: '' },
      ['a: must have an x'],
    ],
    [
      'a refinement',
      z.object({ a: z.string().refine(() => false, 'is not nice') }),
      { a: '' },
      ['a: is not nice'],
    ],
    ['a field that is refused', z.strictObject({}), { a: 1 }, ['a: is not a field']],
    ['neither of two forms', z.object({ to: recipients }), { to: 5 }, ['to: must be a string or an array']],
    ['inside one of two forms', z.object({ to: recipients }), { to: ['a', 5] }, ['to[1]: must be a string']],
    [
      'a union with a message of the schema',
      z.object({ to: z.union([z.string(), z.number()], 'must be a name or a number') }),
      { to: [] },
      ['to: must be a name or a number'],
    ],
    [
      'a name that is not allowed',
      z.object({ headers: z.record(z.string().regex(/^[a-z]+$/, 'must be letters'), z.string()) }),
      { headers: { 'x y': '' } },
      ['headers["x y"]: has a name that must be letters'],
    ],
    [
      'deep inside',
      z.object({ attachments: z.array(z.object({ content: z.string() })) }),
      { attachments: [{ content: '' }, {}, { content: 7 }] },
      ['attachments[1].content: is required', 'attachments[2].content: must be a string'],
    ],
  ])('%s', (_, schema, value, expected) => expect(errorsOf(schema, value)).toEqual(expected));

  it('have the first error and the number of others', () => {
    const refusal = parseInput(z.object({ a: z.string(), b: z.string(), c: z.string() }), {}, 'body');
    expect(isRefusal(refusal) && refusal.message).toBe('a: is required (and 2 more)');
  });

  it('name at most 50 errors', () => {
    const refusal = parseInput(z.array(z.string()), Array.from({ length: 5000 }), 'body');
    expect(isRefusal(refusal) && refusal.extras.details).toHaveLength(50);
    expect(isRefusal(refusal) && refusal.message).toBe('[0]: is required (and 4999 more)');
  });

  it('truncate long names', () => {
    const [message = ''] = errorsOf(z.strictObject({}), { ['x'.repeat(100_000)]: 1 });
    expect(message).toBe(`${'x'.repeat(64)}…: is not a field`);
  });
});

describe('entry limits are checked before the entries', () => {
  let checked = 0;
  const item = z.string().refine(() => {
    checked++;
    return true;
  });
  const texts = (count: number) => Array.from({ length: count }, () => 'x');

  it.each<[string, z.ZodType, unknown, string]>([
    ['in a list', z.array(item).max(3), texts(4), 'body: must have at most 3 entries'],
    [
      'in a field',
      z.object({ a: z.array(item).max(3).optional() }),
      { a: texts(4) },
      'a: must have at most 3 entries',
    ],
    [
      'in one of several forms',
      z.union([item, z.array(item).max(3)]),
      texts(4),
      'body: must have at most 3 entries',
    ],
    [
      'in a list of lists',
      z.array(z.object({ a: z.array(item).max(1) })),
      [{ a: ['x'] }, { a: texts(2) }],
      '[1].a: must have at most 1 entries',
    ],
    [
      'in a map',
      atMost(z.record(z.string(), item), 1),
      { a: 'x', b: 'y' },
      'body: must have at most 1 entries',
    ],
    ['where no limit is set', z.array(item), texts(10_001), 'body: must have at most 10000 entries'],
  ])('%s', (_, schema, value, message) => {
    checked = 0;
    expect(errorsOf(schema, value)).toEqual([message]);
    expect(checked).toBe(0);
  });

  it('refuses with the error code of the schema', () => {
    const schema = z.object({ files: atMost(z.array(item), 2, 'TOO_MANY_ATTACHMENTS') });
    const refusal = parseInput(schema, { files: texts(3) }, 'body');
    expect(isRefusal(refusal) && [refusal.code, refusal.message]).toEqual([
      'TOO_MANY_ATTACHMENTS',
      'files: must have at most 2 entries; the request has 3',
    ]);
  });
});

describe('unknown fields are found', () => {
  const inner = z.object({ known: z.string() });
  interface Tree {
    children?: Tree[] | undefined;
  }
  const tree: z.ZodType<Tree> = z.lazy(() => z.object({ children: z.array(tree).optional() }));

  it.each<[string, z.ZodType, unknown, string[]]>([
    ['in what is optional', z.object({ a: inner.optional() }), { a: { x: 1 } }, ['a.x']],
    ['in what may be null', z.object({ a: inner.nullable() }), { a: { x: 1 } }, ['a.x']],
    ['in what has a default', z.object({ a: inner.default({ known: '' }) }), { a: { x: 1 } }, ['a.x']],
    ['before a transformation', z.object({ a: inner.transform(String) }), { a: { x: 1 } }, ['a.x']],
    ['in lists', z.array(inner), [{ known: '' }, { x: 1 }], ['[1].x']],
    ['in maps', z.record(z.string(), inner), { one: { x: 1 } }, ['one.x']],
    ['in the closest alternative', z.union([z.string(), inner]), { known: '', x: 1 }, ['x']],
    [
      'in a schema that contains itself',
      tree,
      { children: [{ children: [{ x: 1 }] }] },
      ['children[0].children[0].x'],
    ],
    ['not in loose objects', z.looseObject({ a: z.string() }), { b: 1 }, []],
    ['not in unknown values', z.object({ a: z.unknown() }), { a: { x: 1 } }, []],
    ['not in strict objects', z.strictObject({}), { x: 1 }, []],
    ['not in a value of another type', z.object({ a: inner }), { a: 'text' }, []],
  ])('%s', (_, schema, value, paths) => {
    const named = unknownIn(schema)(value).map((warning) => /"(.*)" was/.exec(warning)?.[1]);
    expect(named).toEqual(paths);
  });

  it('are counted if there are many, in a union as well', () => {
    const check = unknownIn(z.object({ to: z.union([z.string(), z.object({ a: z.string() })]) }));
    const fields = Object.fromEntries(Array.from({ length: 160_000 }, (_, n) => [`f${n}`, 1]));
    expect(check({ to: fields }).at(-1)).toBe('and 159980 more were ignored');
  });

  it('get suggestions for the first twenty only', () => {
    const check = unknownIn(z.object({ subject: z.string() }));
    const unknown = Object.fromEntries(Array.from({ length: 500 }, (_, n) => [`subj${n + 100}`, 1]));
    const lowered = vi.spyOn(String.prototype, 'toLowerCase');
    const warnings = check(unknown);
    const compared = lowered.mock.calls.length;
    lowered.mockRestore();
    expect(warnings).toHaveLength(21);
    expect(compared).toBeGreaterThan(0);
    expect(compared).toBeLessThanOrEqual(40);
  });

  it.each([
    ['subjetc', 'subject'],
    ['SUBJECT', 'subject'],
    ['reply_to', 'replyTo'],
    ['message', null],
    ['too', 'to'],
  ])('%s: suggests %s', (name, meant) => {
    const check = unknownIn(z.object({ subject: z.string(), replyTo: z.string(), to: z.string() }));
    const [warning] = check({ [name]: '' });
    expect(/did you mean "(.*)"/.exec(warning ?? '')?.[1] ?? null).toBe(meant);
  });
});
