import { failuresOf, MAX_ABUSED_MS, type Result, type ScenarioOutcome } from './scenario.ts';

type Column = [title: string, cell: (result: Result) => string];

const COLUMNS: Column[] = [
  ['accepted', ({ accepted }) => String(accepted)],
  ['delivered', ({ delivered }) => String(delivered)],
  ['returned', ({ returned }) => String(returned)],
  ['lost', ({ lost }) => String(lost)],
  ['duplicated', ({ duplicated, duplicatesAtMost }) => `${duplicated} of ≤${duplicatesAtMost}`],
  ['stuck', ({ stuck }) => String(stuck)],
  ['recovery', ({ recoveryMs }) => (recoveryMs === null ? 'never' : `${(recoveryMs / 1000).toFixed(1)} s`)],
];

/**
 * The table of all scenarios, that of the latencies during abuse, then the first failure of each that failed, and why others
 * were skipped.
 */
export function formatReport(outcomes: readonly ScenarioOutcome[]): string {
  const titles = ['scenario', ...COLUMNS.map(([title]) => title), 'result'];
  const rows = outcomes.map((outcome) => [
    outcome.scenario.name,
    ...COLUMNS.map(([, cell]) => (outcome.kind === 'ran' ? cell(outcome.result) : '-')),
    outcome.kind === 'skipped' ? 'skipped' : failuresOf(outcome).length === 0 ? 'ok' : 'FAILED',
  ]);
  const details = outcomes.flatMap((outcome) => {
    const { name } = outcome.scenario;
    if (outcome.kind === 'skipped') return [`skipped ${name}: ${outcome.reason}`];
    return failuresOf(outcome)
      .slice(0, 1)
      .map((failure) => `FAILED  ${name}: ${failure}`);
  });
  const failed = outcomes.filter((outcome) => failuresOf(outcome).length > 0).length;
  const skipped = outcomes.filter(({ kind }) => kind === 'skipped').length;
  return [
    ...table([titles, ...rows]),
    '',
    ...isolationTable(outcomes),
    ...details,
    `${outcomes.length - failed - skipped} passed, ${failed} failed, ${skipped} skipped`,
  ].join('\n');
}

/** p99 of a send of the well-behaved account for each abuse; empty without any. */
function isolationTable(outcomes: readonly ScenarioOutcome[]): string[] {
  const rows = outcomes.flatMap((outcome) => {
    if (outcome.kind !== 'ran' || outcome.result.isolation === undefined) return [];
    const { quietMs, abusedMs, unjudged } = outcome.result.isolation;
    const verdict = unjudged ?? (abusedMs > MAX_ABUSED_MS ? `above ${MAX_ABUSED_MS} ms` : 'ok');
    return [[outcome.scenario.name, quietMs.toFixed(0), abusedMs.toFixed(0), verdict]];
  });
  if (rows.length === 0) return [];
  return [...table([['p99 of a send, ms', 'quiet', 'during', 'result'], ...rows]), ''];
}

/** Lines with aligned cells: the first column to the left, the others to the right. */
function table(rows: readonly string[][]): string[] {
  const [titles = []] = rows;
  const widths = titles.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map((cells) =>
    cells
      .map((cell, column) =>
        column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
      )
      .join('  ')
      .trimEnd(),
  );
}
