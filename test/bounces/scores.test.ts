import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseFile } from '../../src/mail/incoming/parse.ts';
import { emptyScore, percent, readExpected, scoreMail } from './score.ts';

const folder = join(import.meta.dirname, '../data/bounces');
const expected = readExpected(folder);

describe('the parser of bounces and complaints', () => {
  const score = emptyScore();
  for (const [file, rows] of Object.entries(expected)) scoreMail(folder, file, rows, score);

  it('is tested with many real mails', () => {
    expect(score.kind.of).toBeGreaterThan(150);
  });

  it.each([
    ['kind', 99],
    ['count', 97],
    ['status', 95],
    ['hard', 95],
  ] as const)('%s is correct in at least %d of 100 mails', (aspect, least) => {
    expect(percent(score[aspect]), score.faults.join('\n')).toBeGreaterThanOrEqual(least);
  });

  it('reports at most 1 of 100 hard bounces wrongly, because each suppresses a good address', () => {
    const hard = { right: score.rightlyHard, of: score.rightlyHard + score.wronglyHard };
    expect(percent(hard), score.faults.join('\n')).toBeGreaterThanOrEqual(99);
    expect(score.rightlyHard).toBeGreaterThan(50);
  });

  it.each(
    Object.entries(expected).filter(([, rows]) => rows.some(({ feedbackType }) => feedbackType !== '')),
  )('finds the kind of complaint in %s', (file, rows) => {
    const { reports } = parseFile(readFileSync(join(folder, file)));
    expect(reports.map(({ feedbackType }) => feedbackType)).toEqual(
      rows.map(({ feedbackType }) => feedbackType),
    );
  });
});
