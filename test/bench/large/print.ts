import type { RunResult } from '../result.ts';
import type { Delay, SlowStatement } from './installation.ts';
import type { ListResult } from './requests.ts';
import type { SteadyResult } from './sends.ts';
import type { Space } from './space.ts';

/** The measurements of one database; those of phases that did not run are absent. */
export interface Side {
  /** With the migration, in ms. */
  firstStartMs?: number;
  startMs?: number;
  sends?: RunResult & { delay: Delay };
  alone?: SteadyResult;
  lists: ListResult[];
  erasure?: SteadyResult & { each: { p50: number; p99: number } };
  campaign?: SteadyResult & { members: number };
  purge?: SteadyResult;
  peakMiB?: number;
  space?: Space;
  slowStatements: SlowStatement[];
}

export interface Goal {
  name: string;
  value: number;
  limit: number;
  unit: string;
  met: boolean;
}

type Row = [title: string, cell: (side: Side) => string | undefined];

const ms = (value: number | undefined) => (value === undefined ? undefined : `${value.toFixed(1)} ms`);
const stream = ({ p50, p99, max }: SteadyResult) =>
  `p50 ${p50.toFixed(1)} p99 ${p99.toFixed(1)} max ${max.toFixed(0)} ms`;
const delay = (measured: { delay: Delay } | undefined) =>
  measured === undefined
    ? undefined
    : `${measured.delay.ownMs.toFixed(0)} (${measured.delay.delayMs.toFixed(0)}) ms`;

const ROWS: Row[] = [
  ['first start, with migration', ({ firstStartMs }) => ms(firstStartMs)],
  ['start', ({ startMs }) => ms(startMs)],
  ['sends, delivered/s', ({ sends }) => sends?.deliveredPerSecond.toFixed(0)],
  ['CPU per message', ({ sends }) => ms(sends?.cpuMs.server)],
  ['  main thread', ({ sends }) => ms(sends?.cpuMs.mainThread ?? undefined)],
  ['  response p99', ({ sends }) => ms(sends?.responseMs?.p99)],
  ['  own delay (delay)', ({ sends }) => delay(sends)],
  ['steady sends alone', ({ alone }) => alone && stream(alone)],
  ['  own delay (delay)', ({ alone }) => delay(alone)],
  ['steady sends during erasures', ({ erasure }) => erasure && stream(erasure)],
  [
    '  erasure',
    ({ erasure }) => erasure && `p50 ${erasure.each.p50.toFixed(1)} p99 ${erasure.each.p99.toFixed(1)} ms`,
  ],
  ['  own delay (delay)', ({ erasure }) => delay(erasure)],
  ['steady sends during a campaign', ({ campaign }) => campaign && stream(campaign)],
  [
    '  members, seconds',
    ({ campaign }) => campaign && `${campaign.members}, ${campaign.seconds.toFixed(0)} s`,
  ],
  ['  own delay (delay)', ({ campaign }) => delay(campaign)],
  ['steady sends during the purge', ({ purge }) => purge && stream(purge)],
  ['  seconds', ({ purge }) => purge && `${purge.seconds.toFixed(0)} s`],
  ['  own delay (delay)', ({ purge }) => delay(purge)],
  ['memory, peak', ({ peakMiB }) => (peakMiB === undefined ? undefined : `${peakMiB.toFixed(0)} MiB`)],
  ['file', ({ space }) => space && `${(space.file / 1e6).toFixed(0)} MB`],
  ['bytes per message', ({ space }) => space?.perMessage.toFixed(0)],
  ['bytes per content', ({ space }) => space?.perContent.toFixed(0)],
];

export function printSides(empty: Side, large: Side): void {
  const cells = ROWS.map(([title, cell]) => [title, cell(empty) ?? '-', cell(large) ?? '-']).filter(
    ([, one, two]) => one !== '-' || two !== '-',
  );
  printTable([['', 'empty', 'large'], ...cells]);
  for (const [name, side] of [
    ['empty', empty],
    ['large', large],
  ] as const) {
    if (side.space !== undefined)
      console.log(
        `\n${name}, bytes per message: ${side.space.parts.map((part) => `${part.name} ${part.bytes.toFixed(0)}`).join(', ')}`,
      );
    if (side.slowStatements.length > 0) console.log(`\n${name}, slowest statements`);
    for (const { longestMs, times, totalMs, sql } of side.slowStatements)
      console.log(
        `  ${longestMs.toFixed(0).padStart(6)} ms, ${times} times slow, total ${totalMs.toFixed(0)} ms: ${sql.slice(0, 140)}`,
      );
  }
}

export function printLists(lists: readonly ListResult[]): void {
  if (lists.length === 0) return;
  console.log('');
  printTable([
    ['list', 'filter', 'page', 'rows', 'p50 ms', 'p99 ms', 'own delay ms', 'requests to end', 'failed'],
    ...lists.map((one) => [
      one.list,
      one.filter,
      one.page,
      String(one.rows),
      one.p50.toFixed(1),
      one.p99.toFixed(1),
      one.delay.ownMs.toFixed(0),
      one.pagesToEnd === null ? '' : String(one.pagesToEnd),
      Object.entries(one.failed)
        .map(([status, count]) => `${count} × ${status}`)
        .join(', '),
    ]),
  ]);
}

export function printGoals(goals: readonly Goal[]): void {
  console.log('');
  for (const { name, value, limit, unit, met } of goals)
    console.log(
      `${met ? 'met   ' : 'MISSED'}  ${name}: ${value.toFixed(value < 10 ? 2 : 0)} ${unit} (goal ${limit})`.trimEnd(),
    );
}

function printTable(rows: readonly (readonly string[])[]): void {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? [];
  for (const row of rows)
    console.log(
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    );
}
