import { describe, expect, it, vi } from 'vitest';
import { BEGINNING } from '../../../src/audience/import/records.ts';
import { csvRowReader, ndjsonRowReader } from '../../../src/audience/import/rows.ts';

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

describe('the status of a row', () => {
  const record = (text: string, line = 2) => ({ line, text, fault: null, end: BEGINNING });

  it.each(['unsubscribed', 'Bounced', 'complained', 'suppressed', 'cleaned'])(
    'rejects a person who must not get mail: %s',
    (status) => {
      const reason = expect.stringMatching(/^globalStatus: only "active" contacts are imported/);
      const csv = csvRowReader(record('email,Global Status', 1));
      if (typeof csv === 'string') throw new Error(csv);
      expect(csv.read(record(`ada@example.net,${status}`))).toEqual({ line: 2, reason });
      const json = JSON.stringify({ email: 'ada@example.net', globalStatus: status });
      expect(ndjsonRowReader().read(record(json))).toEqual({ line: 2, reason });
    },
  );

  it.each(['active', 'Active', ''])('accepts "%s"', (status) => {
    const csv = csvRowReader(record('email,globalStatus', 1));
    if (typeof csv === 'string') throw new Error(csv);
    expect(csv.read(record(`ada@example.net,${status}`))).toMatchObject({
      profile: { email: 'ada@example.net' },
    });
  });
});
