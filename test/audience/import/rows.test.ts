import { describe, expect, it, vi } from 'vitest';
import { BEGINNING } from '../../../src/audience/import/records.ts';
import { csvRowReader } from '../../../src/audience/import/rows.ts';

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
