import { stripVTControlCharacters } from 'node:util';
import { describe, expect, it } from 'vitest';
import { DEFAULT_WIDTH, fieldText, formatRecord, formatTable } from '../../../src/cli/output/table.ts';

const PLAIN = { width: 80, color: false, timeZone: 'Europe/Berlin' };
const ID = 'msg_1769860800000_8m2k4x7q1zab';

describe('a table', () => {
  it('fits the terminal without shortening ids', () => {
    const rows = [{ id: ID, subject: 'A subject that is much longer than any terminal', n: 1 }];
    const lines = formatTable(rows, PLAIN).split('\n');
    expect(lines.every((line) => line.length <= 80)).toBe(true);
    expect(lines.join('')).toContain(ID);
    expect(lines.join('')).toContain('…');
  });

  it('does not shorten names of backups', () => {
    const rows = [
      { backup: 'postrider-20260131T033000Z', created: '2026-01-31T03:30:00.000Z', version: 'x'.repeat(60) },
    ];
    expect(formatTable(rows, PLAIN)).toContain('postrider-20260131T033000Z');
  });

  it('becomes a list of values if it cannot fit', () => {
    const text = formatTable([{ id: ID, account: 'acct_8f3k2m9x0q1z', domain: 'd' }], {
      ...PLAIN,
      width: 40,
    });
    expect(text).toBe(`id       ${ID}\naccount  acct_8f3k2m9x0q1z\ndomain   d`);
  });

  it('becomes a list of values instead of being shortened, if requested', () => {
    const rows = [{ target: 'mail.department.example.net', reason: 'maintenance of all mail hosts' }];
    const options = { ...PLAIN, shorten: false };
    expect(formatTable(rows, { ...options, width: 40 })).toBe(
      'target  mail.department.example.net\nreason  maintenance of all mail hosts',
    );
    expect(formatTable(rows, options)).toContain('│ maintenance of all mail hosts │');
  });

  it('is not shortened without a terminal', () => {
    const rows = [{ subject: 'A subject that is much longer than any terminal', text: 'x'.repeat(200) }];
    expect(formatTable(rows, { ...PLAIN, width: DEFAULT_WIDTH })).not.toContain('…');
  });

  it('shows local times with zone, and numbers with separators', () => {
    const text = formatTable([{ at: '2026-01-31T12:00:00.000Z', messages: 1234567 }], PLAIN);
    expect(text).toContain('2026-01-31 13:00:00 GMT+1');
    expect(text).toContain('1,234,567');
  });

  it('escapes control characters', () => {
    expect(formatTable([{ subject: 'a\u001b[31mb\u0007' }], PLAIN)).toContain('a\\x1b[31mb\\x07');
  });

  it('colors states only if requested', () => {
    const rows = [{ status: 'FAILED' }, { status: 'delivered' }];
    const colored = formatTable(rows, { ...PLAIN, color: true });
    expect(colored).not.toBe(stripVTControlCharacters(colored));
    expect(stripVTControlCharacters(colored)).toBe(formatTable(rows, PLAIN));
  });
});

it('writes a record as lines', () => {
  expect(formatRecord({ id: ID, at: null, ok: true }, PLAIN)).toBe(`id  ${ID}\nat  \nok  yes`);
});

it.each<[unknown, string]>([
  [null, '-'],
  [[], '-'],
  [['a', 'b'], 'a, b'],
  [{ city: 'Köln', zip: null, tags: ['a', 'b'] }, 'city Köln, zip -, tags (a, b)'],
  [
    [
      { name: 'x\u001b', n: 1 },
      { name: 'y', n: 2 },
    ],
    '(name x\\x1b, n 1), (name y, n 2)',
  ],
])('writes %j as text', (value, text) => {
  expect(fieldText(value)).toBe(text);
});
