import { describe, expect, it } from 'vitest';
import { parseOptions } from './options.ts';

const LINE = {
  command: 'npm run bench:thing',
  summary: 'Measures a thing.',
  options: {
    messages: { integer: 1000, help: 'messages' },
    reference: { integer: 10, min: 0, help: 'messages of the reference' },
    minutes: { number: 30, help: 'duration' },
    mode: { choice: 'both', of: ['burst', 'both'], help: 'runs' },
    dir: { text: 'DIR', help: 'a directory' },
    json: { flag: 'print JSON' },
  },
} as const;

describe('the options of a benchmark', () => {
  it('have their defaults', () => {
    expect(parseOptions(LINE, [])).toEqual({
      kind: 'values',
      values: { messages: 1000, reference: 10, minutes: 30, mode: 'both', dir: '', json: false },
    });
  });

  it('are read', () => {
    const args = '--messages 5 --reference 0 --minutes 0.5 --mode burst --dir /data --json'.split(' ');
    expect(parseOptions(LINE, args)).toEqual({
      kind: 'values',
      values: { messages: 5, reference: 0, minutes: 0.5, mode: 'burst', dir: '/data', json: true },
    });
  });

  it('are listed by --help', () => {
    const { kind, text } = { text: '', ...parseOptions(LINE, ['--help']) };
    expect(kind).toBe('help');
    expect(text).toBe(`Usage: npm run bench:thing -- [options]

Measures a thing.

Options:
  --messages N   messages (default 1000)
  --reference N  messages of the reference (default 10)
  --minutes N    duration (default 30)
  --mode NAME    runs (burst, both; default both)
  --dir DIR      a directory
  --json         print JSON
  --help         show this help`);
  });

  it.each([
    [['--messages', '0'], '--messages must be a whole number of at least 1, not "0".'],
    [['--messages', '1.5'], '--messages must be a whole number of at least 1, not "1.5".'],
    [['--messages='], '--messages must be a whole number of at least 1, not "".'],
    [['--reference', 'no'], '--reference must be a whole number of at least 0, not "no".'],
    [['--minutes', '0'], '--minutes must be a number greater than 0, not "0".'],
    [['--mode', 'all'], '--mode must be one of burst, both, not "all".'],
    [['--message', '5'], "Unknown option '--message'"],
    [['5'], "Unexpected argument '5'"],
  ])('%j is an error', (args, message) => {
    const { kind, text } = { text: '', ...parseOptions(LINE, args) };
    expect(kind).toBe('invalid');
    expect(text).toContain(message);
    expect(text).toMatch(/\nSee: npm run bench:thing -- --help$/);
  });
});
