import { describe, expect, it } from 'vitest';
import { createProgressLine } from '../../../src/cli/doctor/examine.ts';
import { formatFindings } from '../../../src/cli/doctor/report.ts';
import type { Finding } from '../../../src/doctor/finding.ts';

const PLAIN = { width: 80, color: false, all: false, ms: 1234 };

const FINDINGS: Finding[] = [
  { check: 'runtime', subject: 'Node.js 24', status: 'ok', reason: 'Supported until 2028-04-30.' },
  { check: 'clock', subject: 'clock', status: 'failure', reason: 'The clock is wrong.', fix: 'one\ntwo' },
  { check: 'blocklists', subject: 'a.test', status: 'unknown', reason: 'No answer.' },
  { check: 'blocklists', subject: 'b.test', status: 'unknown', reason: 'No answer.' },
  { check: 'blocklists', subject: '192.0.2.1 in c.test', status: 'ok', reason: 'Not listed.' },
  { check: 'blocklists', subject: '192.0.2.1 in d.test', status: 'ok', reason: 'Not listed.' },
  { check: 'queue', subject: 'Queue', status: 'warning', reason: 'long '.repeat(30).trim() },
];

describe('formatFindings', () => {
  it('lists problems first in each group, merges equal ones, and summarizes', () => {
    expect(formatFindings(FINDINGS, PLAIN).split('\n')).toEqual([
      'Machine',
      '  FAILURE  Clock: clock',
      '           The clock is wrong.',
      '           fix: one',
      '                two',
      '  ok       Node.js runtime  Supported until 2028-04-30.',
      '',
      'Platform DNS',
      '  unknown  DNS blocklists: a.test, b.test  No answer.',
      '  ok       DNS blocklists  2 passed',
      '',
      'Work',
      '  warning  Queue',
      ...[14, 14, 2].map((words) => `           ${'long '.repeat(words).trim()}`),
      '',
      '1 failure, 1 warning, 2 unknown, 3 ok (1.2 s)',
    ]);
  });

  it('lists what passed one by one with --all', () => {
    const text = formatFindings(FINDINGS, { ...PLAIN, all: true });
    expect(text).toContain(
      '  ok       DNS blocklists: 192.0.2.1 in c.test, 192.0.2.1 in d.test  Not listed.\n',
    );
    expect(text).toContain('Node.js runtime: Node.js 24  Supported');
  });

  it('uses colors only if they are enabled', () => {
    expect(formatFindings(FINDINGS, PLAIN)).not.toContain('\u001b');
    expect(formatFindings(FINDINGS, { ...PLAIN, color: true })).toContain('\u001b[31mFAILURE');
  });
});

describe('createProgressLine', () => {
  it('writes to a terminal only, and removes its line', () => {
    const written: string[] = [];
    const stream = (isTTY: boolean) => ({ isTTY, write: (text: string) => written.push(text) > 0 });
    const silent = createProgressLine(stream(false));
    silent.update({ done: 1, total: 2, title: 'Clock' });
    silent.clear();
    expect(written).toEqual([]);
    const line = createProgressLine(stream(true));
    line.update({ done: 1, total: 2, title: 'Clock' });
    line.clear();
    line.clear();
    expect(written).toEqual(['\r\u001b[KChecked 1 of 2: Clock', '\r\u001b[K']);
  });
});
