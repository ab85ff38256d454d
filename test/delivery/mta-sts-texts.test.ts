import { describe, expect, it } from 'vitest';
import { isInPolicy, parseStsPolicy, parseStsRecord, policyLines } from '../../src/delivery/mta-sts.ts';
import { cpuMsOf } from '../support/process-cost.ts';

/** CPU time far above that for 64 KiB; quadratic time is seconds. */
const LINEAR_MS = 500;

describe('the TXT record', () => {
  const CASES: [records: string[], id: string | null][] = [
    [['v=STSv1; id=20160831085700Z;'], '20160831085700Z'],
    [['v=STSv1; id=20160831085700Z'], '20160831085700Z'],
    [['v=STSv1;id=1'], '1'],
    [['v=STSv1 ; id=abc ;'], 'abc'],
    [['v=STSv1; ext=1; id=abc'], 'abc'],
    [['v=STSv1; id=first; id=second'], 'first'],
    [['v=STSv1; id=abc', 'v=spf1 -all', 'another text'], 'abc'],
    [['v=spf1 -all', 'v=STSv1; id=abc'], 'abc'],
    // Not exactly one of this version.
    [[], null],
    [['v=spf1 -all'], null],
    [['v=STSv1; id=a', 'v=STSv1; id=b'], null],
    [['v=STSv2; id=a'], null],
    [['V=STSv1; id=a'], null],
    [['v=STSv1'], null],
    [[' v=STSv1; id=a'], null],
    // Malformed.
    [['v=STSv1;'], null],
    [['v=STSv1; id='], null],
    [['v=STSv1; id=a-b'], null],
    [[`v=STSv1; id=${'a'.repeat(32)}`], 'a'.repeat(32)],
    [[`v=STSv1; id=${'a'.repeat(33)}`], null],
    [['v=STSv1; id=a;;'], null],
    [['v=STSv1; id = a'], null],
    [['v=STSv1; id=ä'], null],
  ];
  it.each(CASES)('%j has the id %j', (records, id) => {
    expect(parseStsRecord(records)).toBe(id);
  });

  it.each([
    `v=STSv1; id=1${'\t'.repeat(64_000)}x`,
    `v=STSv1; id=1${' '.repeat(64_000)}`,
    `v=STSv1; id=1${' ;'.repeat(32_000)}`,
  ])('is parsed in linear time', (record) => {
    const cost = cpuMsOf(() => expect(parseStsRecord([record])).toBe(null));
    expect(cost).toBeLessThan(LINEAR_MS);
  });
});

const policy = (...lines: string[]) => ['version: STSv1', ...lines].join('\r\n');

describe('a policy', () => {
  const VALID: [what: string, text: string, parsed: object][] = [
    [
      'of the RFC',
      'version: STSv1\r\nmode: enforce\r\nmx: mail.example.com\r\nmx: *.example.net\r\nmx: backupmx.example.com\r\nmax_age: 604800\r\n',
      { mode: 'enforce', mx: ['mail.example.com', '*.example.net', 'backupmx.example.com'], maxAge: 604_800 },
    ],
    [
      'with LF, without spaces and final line end, in another order',
      'max_age:60\nmx:a.example\nmode:testing\nversion:STSv1',
      { mode: 'testing', mx: ['a.example'], maxAge: 60 },
    ],
    [
      'with upper case and repeated hosts',
      policy('mode: enforce', 'mx: A.Example', 'mx: a.example', 'max_age: 60'),
      { mode: 'enforce', mx: ['a.example'], maxAge: 60 },
    ],
    ['of mode none without hosts', policy('mode: none', 'max_age: 60'), { mode: 'none', mx: [], maxAge: 60 }],
    [
      'with unknown fields, and fields that occur twice',
      policy(
        'mode: enforce',
        'x-new: anything: at all',
        'mode: none',
        'mx: a.example',
        'max_age: 1',
        'max_age: 2',
      ),
      { mode: 'enforce', mx: ['a.example'], maxAge: 1 },
    ],
    [
      'with a max_age above the maximum, which counts as the maximum',
      policy('mode: enforce', 'mx: a.example', 'max_age: 9999999999'),
      { mode: 'enforce', mx: ['a.example'], maxAge: 31_557_600 },
    ],
  ];
  it.each([
    `mode:a${'\t'.repeat(64_000)}x`,
    `mode:${'\t'.repeat(64_000)}\rx`,
    `mode: enforce${'\n'.repeat(64_000)}x`,
    `mode: enforce${'\r'.repeat(64_000)}x`,
    `mx: ${'a-'.repeat(32_000)}_`,
  ])('is parsed in linear time', (line) => {
    const cost = cpuMsOf(() => expect(parseStsPolicy(policy(line))).toBeTypeOf('string'));
    expect(cost).toBeLessThan(LINEAR_MS);
  });

  it('may have blanks around its values', () => {
    const text = policy('mode: \t testing \t', 'mx:\ta.example ', 'max_age: 60\t', 'x-empty: \t', '\r\n');
    expect(parseStsPolicy(text)).toEqual({ mode: 'testing', mx: ['a.example'], maxAge: 60 });
  });

  it.each(VALID)('%s', (_, text, parsed) => {
    expect(parseStsPolicy(text)).toEqual(parsed);
  });

  const INVALID: [what: string, text: string, fault: RegExp][] = [
    ['that is empty', '', /not "name: value"/],
    ['that is HTML', '<!doctype html>\n<title>Not found</title>', /line "<!doctype html>"/],
    ['without version', 'mode: enforce\nmx: a.example\nmax_age: 1', /version/],
    ['of another version', 'version: STSv2\nmode: enforce\nmx: a.example\nmax_age: 1', /version/],
    ['without mode', policy('mx: a.example', 'max_age: 1'), /mode/],
    ['of an unknown mode', policy('mode: Enforce', 'mx: a.example', 'max_age: 1'), /mode/],
    ['without hosts', policy('mode: enforce', 'max_age: 1'), /no mx field/],
    ['without max_age', policy('mode: enforce', 'mx: a.example'), /max_age/],
    ['with a negative max_age', policy('mode: enforce', 'mx: a.example', 'max_age: -1'), /max_age/],
    ['with a fractional max_age', policy('mode: enforce', 'mx: a.example', 'max_age: 1.5'), /max_age/],
    ['with an overlong max_age', policy('mode: enforce', 'mx: a.example', 'max_age: 12345678901'), /max_age/],
    ['with an empty line inside', policy('mode: enforce', '', 'mx: a.example', 'max_age: 1'), /line ""/],
    ...[
      '*',
      '*.*.example',
      'a.*.example',
      '*a.example',
      '.example',
      'a..example',
      'a b',
      '*.',
      '-a.example',
      '192.0.2.1:25',
      'ä.example',
      'a_b.example',
    ].map((mx): [string, string, RegExp] => [
      `with the host ${mx}`,
      policy('mode: enforce', `mx: ${mx}`, 'max_age: 1'),
      /is not a host name or pattern/,
    ]),
    [
      'with too many hosts',
      policy('mode: enforce', ...Array.from({ length: 65 }, (_, n) => `mx: a${n}.example`), 'max_age: 1'),
      /more than 64/,
    ],
  ];
  it.each(INVALID)('%s is not valid', (_, text, fault) => {
    expect(parseStsPolicy(text)).toMatch(fault);
  });

  it('has the same lines in a report', () => {
    const lines = ['version: STSv1', 'mode: enforce', 'mx: *.a.example', 'max_age: 60'];
    const parsed = parseStsPolicy(lines.join('\n'));
    expect(typeof parsed === 'string' ? parsed : policyLines(parsed)).toEqual(lines);
  });
});

describe('a pattern', () => {
  const CASES: [pattern: string, host: string, matches: boolean][] = [
    ['mx.example.com', 'mx.example.com', true],
    ['mx.example.com', 'MX.Example.COM', true],
    ['mx.example.com', 'mx2.example.com', false],
    ['*.example.com', 'mx.example.com', true],
    ['*.example.com', 'a.b.example.com', false],
    ['*.example.com', 'example.com', false],
    ['*.example.com', 'mx.badexample.com', false],
    ['*.com', 'example.com', true],
    ['*.example.com', '.example.com', false],
    ['example.com', 'mx.example.com', false],
  ];
  it.each(CASES)('%s permits %s: %s', (pattern, host, matches) => {
    expect(isInPolicy({ mx: [pattern] }, host)).toBe(matches);
  });
});
