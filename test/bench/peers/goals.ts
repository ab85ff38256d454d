import { median } from '../result.ts';

/** What the rounds of one kind of mail measured. Each list has a number for each round. */
export interface CaseResult {
  name: string;
  /** Mean size of a message at the sink. */
  bytes: number;
  own: ServerRounds & {
    /** CPU milliseconds of the main thread per message. */
    mainThread: number[];
    /** Peak memory since the start, in MiB. */
    peakMiB: number[];
  };
  /** The other servers, in the order of the table. */
  peers: readonly ({ kind: PeerKind; name: string } & ServerRounds)[];
}

interface ServerRounds {
  /** Messages delivered per second. */
  rates: number[];
  /** CPU milliseconds of the server per message. */
  cpu: number[];
}

export type PeerKind = 'Postfix' | 'Exim' | 'OpenSMTPD' | 'Haraka';

/** A goal next to what was measured. */
export interface Verdict {
  /** The case and what the goal is about. */
  name: string;
  goal: number;
  figure: number;
  /** Follows both numbers. */
  unit: string;
  /** Whether the goal is met; `near` when at least 90 % of it are. */
  result: 'met' | 'near' | 'missed';
}

export const DISTINCT_10_KB = '10 KB, distinct HTML';
export const DISTINCT_100_KB = '100 KB, distinct HTML';
export const DISTINCT_1_MB = '1 MB, distinct HTML';

/** The part of a goal below which the benchmark fails: the speed of machines differs from hour to hour. */
const TOLERATED = 0.9;

/** How many times the CPU time of Postrider a server needs for the same message. */
const CPU_GOALS: readonly [name: string, kind: PeerKind, times: number][] = [
  [DISTINCT_10_KB, 'Postfix', 4],
  [DISTINCT_10_KB, 'Haraka', 4],
  [DISTINCT_100_KB, 'Postfix', 2.5],
  [DISTINCT_100_KB, 'Haraka', 4],
  [DISTINCT_1_MB, 'Postfix', 3],
  [DISTINCT_1_MB, 'Haraka', 6],
];
/** How many times the messages per second of a server Postrider delivers. */
const RATE_GOALS: readonly [name: string, kind: PeerKind, times: number][] = [
  [DISTINCT_1_MB, 'Postfix', 1.5],
];
/** CPU milliseconds of the main thread per message, at most. */
const MAIN_THREAD_GOALS: readonly [name: string, milliseconds: number][] = [
  [DISTINCT_10_KB, 0.4],
  [DISTINCT_100_KB, 0.5],
];
/** Peak memory of the daemon in all cases, at most. */
const PEAK_MIB = 350;

/** The goals of the measured cases and servers; those of others are left out. Every figure is from medians. */
export function verdictsOf(results: readonly CaseResult[]): Verdict[] {
  const found = (name: string) => results.filter((result) => result.name === name);
  const pairs = (name: string, kind: PeerKind) =>
    found(name).flatMap(({ own, peers }) =>
      peers.filter((peer) => peer.kind === kind).map((peer) => ({ own, peer })),
    );
  const peaks = results.flatMap(({ own }) => own.peakMiB);
  return [
    ...CPU_GOALS.flatMap(([name, kind, goal]) =>
      pairs(name, kind).map(({ own, peer }) =>
        atLeast(`${name}, CPU time of ${kind}`, goal, median(peer.cpu) / median(own.cpu)),
      ),
    ),
    ...RATE_GOALS.flatMap(([name, kind, goal]) =>
      pairs(name, kind).map(({ own, peer }) =>
        atLeast(`${name}, messages/s next to ${kind}`, goal, median(own.rates) / median(peer.rates)),
      ),
    ),
    ...MAIN_THREAD_GOALS.flatMap(([name, goal]) =>
      found(name).map(({ own }) => atMost(`${name}, main thread`, goal, median(own.mainThread), 'ms')),
    ),
    ...(peaks.length === 0 ? [] : [atMost('peak memory', PEAK_MIB, Math.max(...peaks), 'MiB')]),
  ];
}

/** A line for the terminal: `10 KB, distinct HTML, CPU time of Postfix: 3.7 times, goal 4 times (near)`. */
export function describeVerdict({ name, goal, figure, unit, result }: Verdict): string {
  const digits = unit === 'MiB' ? 0 : 2;
  return `${name}: ${figure.toFixed(digits)} ${unit}, goal ${goal} ${unit} (${result})`;
}

function atLeast(name: string, goal: number, figure: number): Verdict {
  return { name, goal, figure, unit: 'times', result: resultOf(figure / goal) };
}

function atMost(name: string, goal: number, figure: number, unit: string): Verdict {
  return { name, goal, figure, unit, result: resultOf(goal / figure) };
}

/** `share`: of the goal that is reached. */
function resultOf(share: number): Verdict['result'] {
  if (share >= 1) return 'met';
  return share >= TOLERATED ? 'near' : 'missed';
}

/** The rows of the table in docs/benchmarks.md, as Markdown. */
export function markdownTable(results: readonly CaseResult[]): string {
  const names = [...new Set(results.flatMap(({ peers }) => peers.map(({ name }) => name)))];
  const rows = results.map(({ name, own, peers }) => [
    name,
    cell(own),
    ...names.map((server) => {
      const peer = peers.find((one) => one.name === server);
      if (peer === undefined) return '–';
      return `${cell(peer)} (${(median(peer.cpu) / median(own.cpu)).toFixed(1)} times)`;
    }),
  ]);
  const head = ['HTML', 'Postrider', ...names];
  const line = (row: readonly string[]) => `| ${row.join(' | ')} |`;
  return [line(head), `${'|---'.repeat(head.length)}|`, ...rows.map(line)].join('\n');
}

function cell({ rates, cpu }: ServerRounds): string {
  return `${Math.round(median(rates)).toLocaleString('en')}/s, ${median(cpu).toFixed(2)} ms`;
}
