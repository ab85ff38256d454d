import type { Machine } from './machine.ts';
import { faultsOf, type RunResult } from './result.ts';

/** The benchmark's result for people: what was measured on what, one line a run, the ratio, every fault. */
export interface Report {
  command: string;
  machine: Machine;
  settings: { messages: number; connections: number; size: number; inFlight: number; limitSeconds: number };
  /** How the messages went. */
  path: string;
  runs: RunResult[];
  reference: RunResult | null;
  /** Why there is no reference, null when there is one. */
  withoutReference: string | null;
  /** Delivered a second, ours (the slower of the runs) to the reference's. */
  ratio: number | null;
}

export function printed(report: Report): string {
  const { machine, settings, runs, reference } = report;
  const lines = [
    report.command,
    `${machine.cores} cores ${machine.cpu}, ${machine.memoryGiB} GiB, ${machine.system}, Node ${machine.node}, load before ${machine.load}`,
    `${settings.size} bytes of html a message, ${settings.connections} callers; ${report.path}`,
    '',
    ...table([...runs, ...(reference === null ? [] : [reference])]),
    '',
    report.ratio === null
      ? `no comparison with Postfix + OpenDKIM: ${report.withoutReference}`
      : `Postrider delivers ${report.ratio.toFixed(1)} times what Postfix + OpenDKIM deliver`,
    ...[...runs, ...(reference === null ? [] : [reference])].flatMap((run) =>
      faultsOf(run).map((fault) => `FAULT in ${run.name}: ${fault}`),
    ),
  ];
  return lines.join('\n');
}

type Column = [title: string, cell: (run: RunResult) => string];

const COLUMNS: Column[] = [
  ['', ({ name }) => name],
  ['messages', ({ messages }) => String(messages)],
  ['octets', ({ octets }) => octets.toFixed(0)],
  ['accepted/s', ({ acceptedPerSecond }) => acceptedPerSecond.toFixed(0)],
  ['delivered/s', ({ deliveredPerSecond }) => deliveredPerSecond.toFixed(0)],
  ['p50 ms', ({ answerMs }) => answerMs?.p50.toFixed(1) ?? '-'],
  ['p99 ms', ({ answerMs }) => answerMs?.p99.toFixed(1) ?? '-'],
  ['CPU ms', ({ cpuMs }) => cpuMs.server.toFixed(2)],
  ['main', ({ cpuMs }) => cpuMs.mainThread?.toFixed(2) ?? '-'],
  ['load', ({ cpuMs }) => cpuMs.load.toFixed(2)],
  ['sink', ({ cpuMs }) => cpuMs.sink.toFixed(2)],
  ['CPU s', ({ cpuMs, messages }) => ((cpuMs.server * messages) / 1000).toFixed(1)],
  ['peak MiB', ({ peakMiB }) => peakMiB?.toFixed(0) ?? '-'],
  ['new conns', ({ connections }) => String(connections)],
];

function table(runs: RunResult[]): string[] {
  const rows = [COLUMNS.map(([title]) => title), ...runs.map((run) => COLUMNS.map(([, cell]) => cell(run)))];
  const widths = COLUMNS.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map((row) =>
    row
      .map((cell, column) =>
        column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0),
      )
      .join('  ')
      .trimEnd(),
  );
}
