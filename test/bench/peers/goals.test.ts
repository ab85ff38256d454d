import { describe, expect, it } from 'vitest';
import {
  type CaseResult,
  DISTINCT_1_MB,
  DISTINCT_10_KB,
  DISTINCT_100_KB,
  describeVerdict,
  markdownTable,
  type PeerKind,
  verdictsOf,
} from './goals.ts';

/** A case in which Postrider takes 1 ms; `cpu`: of the others, by kind. */
function caseOf(
  name: string,
  cpu: Partial<Record<PeerKind, number>>,
  own: Partial<CaseResult['own']> = {},
): CaseResult {
  return {
    name,
    bytes: 12_000,
    own: {
      rates: [900, 1300, 1000],
      cpu: [1, 0.9, 7],
      mainThread: [0.3, 0.3, 0.3],
      peakMiB: [300, 310, 320],
      ...own,
    },
    peers: (['Postfix', 'Exim', 'OpenSMTPD', 'Haraka'] as const).flatMap((kind) => {
      const each = cpu[kind];
      return each === undefined
        ? []
        : [{ kind, name: `${kind} 1.0`, rates: [250, 10, 400], cpu: [each, 0.1, 100] }];
    }),
  };
}

describe('the goals next to other servers', () => {
  it('are checked by the medians of the rounds', () => {
    const lines = verdictsOf([
      caseOf(DISTINCT_10_KB, { Postfix: 4, Haraka: 3.6 }),
      caseOf(
        DISTINCT_100_KB,
        { Postfix: 2.2, Haraka: 5 },
        { mainThread: [9, 0.6, 0.1], peakMiB: [300, 400, 380] },
      ),
      caseOf(DISTINCT_1_MB, { Postfix: 3, Haraka: 6 }),
    ]).map(describeVerdict);
    expect(lines).toEqual([
      '10 KB, distinct HTML, CPU time of Postfix: 4.00 times, goal 4 times (met)',
      '10 KB, distinct HTML, CPU time of Haraka: 3.60 times, goal 4 times (near)',
      '100 KB, distinct HTML, CPU time of Postfix: 2.20 times, goal 2.5 times (missed)',
      '100 KB, distinct HTML, CPU time of Haraka: 5.00 times, goal 4 times (met)',
      '1 MB, distinct HTML, CPU time of Postfix: 3.00 times, goal 3 times (met)',
      '1 MB, distinct HTML, CPU time of Haraka: 6.00 times, goal 6 times (met)',
      '1 MB, distinct HTML, messages/s next to Postfix: 4.00 times, goal 1.5 times (met)',
      '10 KB, distinct HTML, main thread: 0.30 ms, goal 0.4 ms (met)',
      '100 KB, distinct HTML, main thread: 0.60 ms, goal 0.5 ms (missed)',
      'peak memory: 400 MiB, goal 350 MiB (missed)',
    ]);
  });

  it.each([
    [3.59, 'missed'],
    [3.6, 'near'],
    [3.99, 'near'],
    [4, 'met'],
  ])('%d times of 4 is %s', (times, result) => {
    const [verdict] = verdictsOf([caseOf(DISTINCT_10_KB, { Postfix: times })]);
    expect(verdict).toMatchObject({ goal: 4, figure: times, result });
  });

  it.each([
    [0.4, 'met'],
    [0.44, 'near'],
    [0.45, 'missed'],
  ])('%d ms of at most 0.4 is %s', (milliseconds, result) => {
    const verdicts = verdictsOf([caseOf(DISTINCT_10_KB, {}, { mainThread: [milliseconds] })]);
    expect(verdicts.find(({ unit }) => unit === 'ms')).toMatchObject({ goal: 0.4, result });
  });

  it('are left out for servers and cases that were not measured', () => {
    const names = (results: CaseResult[]) => verdictsOf(results).map(({ name }) => name);
    expect(names([])).toEqual([]);
    expect(names([caseOf('10 KB, one template', { Postfix: 0.1 })])).toEqual(['peak memory']);
    expect(names([caseOf(DISTINCT_1_MB, { Exim: 1, Haraka: 1 })])).toEqual([
      '1 MB, distinct HTML, CPU time of Haraka',
      'peak memory',
    ]);
  });
});

describe('the table of servers', () => {
  it('is Markdown with a column for each server', () => {
    const results = [
      caseOf(DISTINCT_10_KB, { Postfix: 4, Exim: 6.25 }, { rates: [1234.5], cpu: [1.25] }),
      caseOf('10 KB, Ed25519', {}),
    ];
    expect(markdownTable(results)).toBe(
      [
        '| HTML | Postrider | Postfix 1.0 | Exim 1.0 |',
        '|---|---|---|---|',
        '| 10 KB, distinct HTML | 1,235/s, 1.25 ms | 250/s, 4.00 ms (3.2 times) | 250/s, 6.25 ms (5.0 times) |',
        '| 10 KB, Ed25519 | 1,000/s, 1.00 ms | – | – |',
      ].join('\n'),
    );
  });
});
