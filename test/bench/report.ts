import type { Machine } from './machine.ts';
import { faultsOf, type RunResult } from './result.ts';

/** The result of `npm run bench`. */
export interface BenchmarkReport {
  command: string;
  machine: Machine;
  settings: { messages: number; connections: number; size: number; inFlight: number; limitSeconds: number };
  /** The receiving side. */
  path: string;
  runs: RunResult[];
  reference: RunResult | null;
  /** Why there is no reference, null when there is one. */
  withoutReference: string | null;
  /** Delivered messages per second: the slower of Postrider's runs divided by the reference. */
  ratio: number | null;
}

/** The report as text: machine, a line per run, the ratio and all faults. */
export function formatReport(report: BenchmarkReport, content: 'distinct' | 'template'): string {
  const { machine, settings, runs, reference } = report;
  const lines = [
    report.command,
    `${machine.cores} cores ${machine.cpu}, ${machine.memoryGiB} GiB, ${machine.system}, Node ${machine.node}, load before ${machine.load}`,
    `${settings.size} bytes of html per message (${content === 'distinct' ? 'distinct' : 'one template'}), ${settings.connections} clients; ${report.path}`,
    '',
    ...table([...runs, ...(reference === null ? [] : [reference])]),
    '',
    report.ratio === null
      ? `no comparison with Postfix + OpenDKIM: ${report.withoutReference}`
      : `Postrider delivers ${report.ratio.toFixed(1)} times as many messages per second as Postfix + OpenDKIM`,
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
  ['bytes', ({ bytes }) => bytes.toFixed(0)],
  ['accepted/s', ({ acceptedPerSecond }) => acceptedPerSecond.toFixed(0)],
  ['delivered/s', ({ deliveredPerSecond }) => deliveredPerSecond.toFixed(0)],
  ['p50 ms', ({ responseMs }) => responseMs?.p50.toFixed(1) ?? '-'],
  ['p99 ms', ({ responseMs }) => responseMs?.p99.toFixed(1) ?? '-'],
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
