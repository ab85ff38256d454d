import { describe, expect, it } from 'vitest';
import { parseMoment } from '../../src/core/clock.ts';
import { createIds } from '../../src/core/ids.ts';
import { createAddressHasher, createErrorLog, createLog } from '../../src/core/log.ts';
import { randomText, shuffled, systemRandom } from '../../src/core/random.ts';
import { invalid, isRefusal, REFUSALS, refuse } from '../../src/core/refusal.ts';
import { createSeal, mac } from '../../src/core/seal.ts';

const clock = { now: () => 1_790_000_000_123 };
const ids = createIds(clock, systemRandom);

describe('ids', () => {
  it('consist of kind, time and twelve base-36 characters', () => {
    expect(ids.make('domain')).toMatch(/^domain_1790000000123_[0-9a-z]{12}$/);
    expect(ids.account()).toMatch(/^acct_[0-9a-z]{12}$/);
    expect(ids.apiKey()).toMatch(/^pr_[0-9A-Za-z]{43}$/);
  });

  it('include UUIDs of version 7 that start with the time', () => {
    expect(ids.uuid()).toMatch(/^01a0c450-6c7b-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  });

  it('are unique', () => {
    const created = new Set(Array.from({ length: 10_000 }, () => ids.make('msg')));
    expect(created.size).toBe(10_000);
  });
});

describe('parseMoment', () => {
  it.each([
    ['2026-01-31T12:00:00Z', '2026-01-31T12:00:00.000Z'],
    ['2026-01-31T12:00:00.5+01:30', '2026-01-31T10:30:00.500Z'],
    ['2026-01-31t12:00z', '2026-01-31T12:00:00.000Z'],
    ['2026-01-31 12:00:00Z', '2026-01-31T12:00:00.000Z'],
    ['2026-12-10T10:00:00+0100', '2026-12-10T09:00:00.000Z'],
    ['2026-12-10T10:00:00+01', '2026-12-10T09:00:00.000Z'],
    ['2026-12-10T10:00-0530', '2026-12-10T15:30:00.000Z'],
    ['2026-12-10T10:00:00+1', null],
    ['2026-12-10T10:00:00+25:00', null],
    ['2024-02-29', '2024-02-29T00:00:00.000Z'],
    ['2026-02-29', null],
    ['2026-11-31T10:00:00Z', null],
    ['2026-13-01', null],
    ['2026-01-31T12:00:00', null],
    ['2026-01-31T25:00:00Z', null],
    ['2026', null],
    ['Nov 30 2026', null],
    ['', null],
  ])('parses %s as %s', (text, expected) => {
    const moment = parseMoment(text);
    expect(moment === null ? null : new Date(moment).toISOString()).toBe(expected);
  });
});

describe('random text', () => {
  it('uses every character of the alphabet', () => {
    expect(new Set(randomText(systemRandom, 'abc', 1000)).size).toBe(3);
  });

  it('shuffles a copy', () => {
    const items = [1, 2, 3, 4, 5, 6, 7, 8];
    const copy = shuffled(systemRandom, items);
    expect(copy).not.toBe(items);
    expect(copy.toSorted((a, b) => a - b)).toEqual(items);
  });
});

describe('refusals', () => {
  it('have code, status and extras', () => {
    const refusal = refuse('RECIPIENT_SUPPRESSED', 'no', { subscriptionStatus: 'bounced' });
    expect(isRefusal(refusal)).toBe(true);
    expect(refusal.status).toBe(403);
    expect(refusal.extras.subscriptionStatus).toBe('bounced');
  });

  it('name the invalid field', () => {
    expect(invalid('to', 'is required').extras.details).toEqual([{ field: 'to', message: 'is required' }]);
  });

  it('are client errors, except three', () => {
    const server = Object.entries(REFUSALS).filter(([, [status]]) => status >= 500);
    expect(server.map(([code]) => code)).toEqual(['INTERNAL_ERROR', 'UNAVAILABLE', 'QUERY_TOO_BROAD']);
  });
});

describe('the seal', () => {
  const seal = createSeal(Buffer.alloc(32, 7), systemRandom);
  const sealed = seal.seal(Buffer.from('a secret'), 'row 1');

  it('decrypts what it encrypted', () => {
    expect(seal.open(sealed, 'row 1').toString()).toBe('a secret');
    expect(sealed.includes('secret')).toBe(false);
  });

  it('rejects another context, another key, and every changed byte', () => {
    expect(() => seal.open(sealed, 'row 2')).toThrow();
    expect(() => createSeal(Buffer.alloc(32, 8), systemRandom).open(sealed, 'row 1')).toThrow();
    for (let at = 0; at < sealed.length; at++) {
      const changed = Buffer.from(sealed);
      changed[at] = (changed[at] ?? 0) ^ 1;
      expect(() => seal.open(changed, 'row 1')).toThrow();
    }
  });

  it('derives a different key for every purpose', () => {
    expect(seal.derive('a').equals(seal.derive('b'))).toBe(false);
    expect(seal.derive('a').equals(seal.derive('a'))).toBe(true);
    expect(mac(seal.derive('a'), 'x', 8)).toHaveLength(8);
  });

  it('requires 32 bytes', () => {
    expect(() => createSeal(Buffer.alloc(31), systemRandom)).toThrow(/32 bytes, but has 31/);
  });
});

describe('the log', () => {
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };

  it('hashes addresses by default, and never at debug', () => {
    createLog({ level: 'info', hashAddresses: true }, destination).info(
      { recipient: 'ada@example.net' },
      'x',
    );
    createLog({ level: 'debug', hashAddresses: true }, destination).info(
      { recipient: 'ada@example.net' },
      'x',
    );
    createLog({ level: 'info', hashAddresses: false }, destination).info(
      { recipient: 'ada@example.net' },
      'x',
    );
    expect(lines.map((line) => line.includes('ada@example.net'))).toEqual([false, true, true]);
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ level: 'info', msg: 'x' });
  });

  const keyed = () => {
    const addresses = createAddressHasher();
    const log = createLog({ level: 'info', hashAddresses: true }, destination, addresses);
    const write = (fields: Record<string, unknown>): Record<string, unknown> => {
      log.info(fields, 'x');
      return JSON.parse(lines.at(-1) ?? '');
    };
    return { addresses, log, write };
  };

  it('omits addresses until it has a key, then hashes them with it', () => {
    const { addresses, write } = keyed();
    expect(write({ recipient: 'ada@example.net' })).toMatchObject({ recipient: '[address]' });
    addresses.useKey(Buffer.alloc(32, 1));
    const first = write({ recipient: 'ada@example.net' })['recipient'];
    expect(first).toMatch(/^hmac:[0-9a-f]{16}$/);
    expect(write({ recipient: 'Ada@Example.NET' })['recipient']).toBe(first);
    expect(addresses.hash('ada@example.net')).toBe(first);
    addresses.useKey(Buffer.alloc(32, 2));
    expect(write({ recipient: 'ada@example.net' })['recipient']).not.toBe(first);
  });

  it('does not hash states and ids', () => {
    const { write } = keyed();
    const fields = { from: 'PENDING', to: 'SUCCESS', recipient: 'email_ae2c0afa556b74f2d501305b54c34910' };
    expect(write(fields)).toMatchObject(fields);
  });

  it('hashes addresses in replies, and writes them as one bounded line without control characters', () => {
    const { addresses, write } = keyed();
    addresses.useKey(Buffer.alloc(32, 1));
    const hash = addresses.hash('joe@example.net');
    expect(write({ reply: '5.1.1 <joe@example.net>: unknown\r\n\u001b[31muser\u202e' })['reply']).toBe(
      `5.1.1 <${hash}>: unknown [31muser`,
    );
    expect(write({ reply: 'joe@example.net...User unknown' })['reply']).toBe(`${hash}...User unknown`);
    expect(write({ reply: 'Joe@Example.net.' })['reply']).toBe(`${hash}.`);
    expect(String(write({ reply: 'a'.repeat(100_000) })['reply'])).toHaveLength(501);
  });

  it('follows changes of the level', () => {
    const { log, write } = keyed();
    log.level = 'debug';
    expect(write({ recipient: 'ada@example.net' })['recipient']).toBe('ada@example.net');
    log.level = 'info';
    expect(write({ recipient: 'ada@example.net' })['recipient']).toBe('[address]');
  });

  it('writes one record per kind and interval, and counts the omitted ones', () => {
    const written: Record<string, unknown>[] = [];
    let now = 0;
    const log = createLog(
      { level: 'info', hashAddresses: false },
      { write: (line) => written.push(JSON.parse(line)) },
    );
    const logError = createErrorLog(log, () => now);
    for (let n = 0; n < 1000; n++) logError('full', { requestId: `r${n}` }, 'request failed');
    logError('io', { requestId: 'other' }, 'request failed');
    for (let n = 0; n < 3; n++) logError(null, { requestId: 'bug' }, 'request failed');
    now = 10_000;
    logError('full', { requestId: 'later' }, 'request failed');
    expect(written.map(({ requestId, suppressed }) => [requestId, suppressed])).toEqual([
      ['r0', undefined],
      ['other', undefined],
      ['bug', undefined],
      ['bug', undefined],
      ['bug', undefined],
      ['later', 999],
    ]);
  });
});
