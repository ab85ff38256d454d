import { describe, expect, it, vi } from 'vitest';
import { BEGINNING } from '../../../src/audience/import/records.ts';
import { csvRowReader, ndjsonRowReader } from '../../../src/audience/import/rows.ts';
import { isRefusal } from '../../../src/core/refusal.ts';

describe('the header of a CSV', () => {
  it('is compared with the assigned columns once for each name', () => {
    const names = Array.from({ length: 2000 }, (_, n) => `  x${n}  `);
    const columns = new Map(Array.from({ length: 500 }, (_, n) => [`y${n}`, null]));
    const trim = vi.spyOn(String.prototype, 'trim');
    try {
      const header = { line: 1, text: names.join(','), fault: null, end: BEGINNING };
      expect(csvRowReader(header, { columns })).toContain('the header has no column "y0"');
      expect(trim.mock.calls.length).toBeLessThan(4 * (names.length + columns.size));
    } finally {
      trim.mockRestore();
    }
  });
});

const record = (text: string, line = 2) => ({ line, text, fault: null, end: BEGINNING });

describe('the status of a row', () => {
  it.each(['unsubscribed', 'Bounced', 'complained', 'suppressed', 'cleaned'])(
    'rejects a person who must not get mail: %s',
    (status) => {
      const reason = expect.stringMatching(/^globalStatus: only "active" contacts are imported/);
      const csv = csvRowReader(record('email,Global Status', 1));
      if (typeof csv === 'string' || isRefusal(csv)) throw new Error(JSON.stringify(csv));
      expect(csv.read(record(`ada@example.net,${status}`))).toEqual({ line: 2, reason });
      const json = JSON.stringify({ email: 'ada@example.net', globalStatus: status });
      expect(ndjsonRowReader().read(record(json))).toEqual({ line: 2, reason });
    },
  );

  it.each(['active', 'Active', ''])('accepts "%s"', (status) => {
    const csv = csvRowReader(record('email,globalStatus', 1));
    if (typeof csv === 'string' || isRefusal(csv)) throw new Error(JSON.stringify(csv));
    expect(csv.read(record(`ada@example.net,${status}`))).toMatchObject({
      profile: { email: 'ada@example.net' },
    });
  });
});

describe('isActive of a row', () => {
  const csv = (value: string) => {
    const reader = csvRowReader(record('email,Is Active', 1));
    if (typeof reader === 'string' || isRefusal(reader)) throw new Error(JSON.stringify(reader));
    return { row: reader.read(record(`ada@example.net,${value}`)), ignored: [...reader.ignored] };
  };
  const ndjson = (value: unknown) => {
    const reader = ndjsonRowReader({ rejectUnknown: true });
    return reader.read(record(JSON.stringify({ email: 'ada@example.net', isActive: value })));
  };
  const left = { line: 2, reason: expect.stringMatching(/^isActive: only active members are imported/) };
  const invalid = { line: 2, reason: 'isActive: must be true or false' };
  const accepted = { profile: { email: 'ada@example.net' } };

  it.each(['false', 'FALSE', '0', 'no', 'No'])('rejects a person who left the group: "%s"', (value) => {
    expect(csv(value).row).toEqual(left);
    expect(ndjson(value)).toEqual(left);
  });

  it.each([false, 0])('rejects a person who left the group: %s', (value) => {
    expect(ndjson(value)).toEqual(left);
  });

  it.each(['maybe', 'unsubscribed', '2'])('rejects a value that is no boolean: %s', (value) => {
    expect(csv(value).row).toEqual(invalid);
    expect(ndjson(value)).toEqual(invalid);
  });

  it.each([[[]], [{}], [2]])('rejects a value that is no boolean: %j', (value) => {
    expect(ndjson(value)).toMatchObject({ reason: expect.stringMatching(/^isActive: must be /) });
  });

  it.each(['true', 'True', '1', 'yes', ''])('accepts "%s"', (value) => {
    expect(csv(value)).toMatchObject({ row: accepted, ignored: [] });
  });

  it.each([true, 1, 'true', null])('accepts %j', (value) => {
    expect(ndjson(value)).toMatchObject(accepted);
  });
});
