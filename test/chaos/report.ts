import { failuresOf, type Result, type ScenarioOutcome } from './scenario.ts';

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

/** The table of all scenarios, then the first failure of each that failed, and why others were skipped. */
export function formatReport(outcomes: readonly ScenarioOutcome[]): string {
  const titles = ['scenario', ...COLUMNS.map(([title]) => title), 'result'];
  const rows = outcomes.map((outcome) => [
    outcome.scenario.name,
    ...COLUMNS.map(([, cell]) => (outcome.kind === 'ran' ? cell(outcome.result) : '-')),
    outcome.kind === 'skipped' ? 'skipped' : failuresOf(outcome).length === 0 ? 'ok' : 'FAILED',
  ]);
  const widths = titles.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)),
  );
  const line = (cells: string[]) =>
    cells
      .map((cell, column) =>
        column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
      )
      .join('  ')
      .trimEnd();
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
    line(titles),
    ...rows.map(line),
    '',
    ...details,
    `${outcomes.length - failed - skipped} passed, ${failed} failed, ${skipped} skipped`,
  ].join('\n');
}
