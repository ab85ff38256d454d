import { styleText } from 'node:util';
import { SECOND } from '../../core/clock.ts';
import { CHECKS } from '../../doctor/checks.ts';
import { CHECK_GROUPS, type Check } from '../../doctor/context.ts';
import { FINDING_STATUSES, type Finding, type FindingStatus } from '../../doctor/finding.ts';
import { countsOf } from '../../doctor/service.ts';
import { counted } from '../output/table.ts';

/* Findings as text for a person, by group, the worst first. */

/** How the findings are printed. */
export interface ReportOptions {
  /** Columns of the terminal. */
  width: number;
  color: boolean;
  /** Lists findings without a problem individually, too. */
  all: boolean;
  /** Duration of the run. */
  ms: number;
}

const LABELS: Record<FindingStatus, string> = {
  failure: 'FAILURE',
  warning: 'warning',
  unknown: 'unknown',
  ok: 'ok',
};
const COLORS: Record<FindingStatus, 'red' | 'yellow' | 'cyan' | 'green'> = {
  failure: 'red',
  warning: 'yellow',
  unknown: 'cyan',
  ok: 'green',
};
const LABEL_WIDTH = 9;
const INDENT = ' '.repeat(LABEL_WIDTH + 2);
/** Fixes are not wrapped, so that they can be copied. */
const FIX = 'fix: ';
const MIN_WIDTH = 60;
/** Width of texts without a terminal. */
const TEXT_WIDTH = 80;

/**
 * Text without a final line break: each group with findings, then the counts. Findings of a check that differ in their
 * subject only become one entry; without `all`, so do those that passed.
 */
export function formatFindings(findings: readonly Finding[], options: ReportOptions): string {
  const groups = CHECK_GROUPS.flatMap((group) => {
    const checks = CHECKS.filter((check) => check.group === group);
    const lines = groupLines(checks, findings, options);
    return lines.length === 0 ? [] : [[paint('bold', group, options), ...lines].join('\n')];
  });
  return [...groups, summary(findings, options)].join('\n\n');
}

function groupLines(
  checks: readonly Check[],
  findings: readonly Finding[],
  options: ReportOptions,
): string[] {
  const entries = checks.flatMap((check) => {
    const own = findings.filter((finding) => finding.check === check.id);
    const passed = own.filter(({ status }) => status === 'ok');
    const problems = own.filter(({ status }) => status !== 'ok');
    const listed = mergeEqual(options.all ? own : problems);
    const lines = listed.map(({ status, subjects, reason, fix }) => ({
      status,
      lines: entry(status, titleOf(check, subjects), reason, fix, options),
    }));
    if (!options.all && passed.length > 0)
      lines.push({ status: 'ok', lines: passedLine(check, passed, options) });
    return lines;
  });
  return FINDING_STATUSES.flatMap((status) =>
    entries.filter((each) => each.status === status).flatMap(({ lines }) => lines),
  );
}

interface MergedFinding extends Omit<Finding, 'check' | 'subject'> {
  subjects: string[];
}

/** Merges findings that differ only in their subject, such as ten records for which DNS did not respond. */
function mergeEqual(findings: readonly Finding[]): MergedFinding[] {
  const merged: MergedFinding[] = [];
  for (const { status, subject, reason, fix } of findings) {
    const same = merged.find((each) => each.status === status && each.reason === reason && each.fix === fix);
    if (same !== undefined) same.subjects.push(subject);
    else merged.push({ status, reason, subjects: [subject], ...(fix === undefined ? {} : { fix }) });
  }
  return merged;
}

function titleOf({ title }: Check, subjects: readonly string[]): string {
  return subjects.length === 1 && subjects[0] === title ? title : `${title}: ${subjects.join(', ')}`;
}

function passedLine({ title }: Check, passed: readonly Finding[], options: ReportOptions): string[] {
  const [first] = passed;
  const text = passed.length === 1 && first !== undefined ? first.reason : `${passed.length} passed`;
  return entry('ok', title, text, undefined, options);
}

function entry(
  status: FindingStatus,
  title: string,
  reason: string,
  fix: string | undefined,
  options: ReportOptions,
): string[] {
  const label = paint(COLORS[status], LABELS[status].padEnd(LABEL_WIDTH), options);
  const columns = Number.isFinite(options.width) ? options.width : TEXT_WIDTH;
  const width = Math.max(MIN_WIDTH, columns) - INDENT.length;
  const isShort = title.length + reason.length + 2 <= width;
  if (isShort && fix === undefined) return [`  ${label}${paint('bold', title, options)}  ${reason}`];
  return [
    `  ${label}${paint('bold', title, options)}`,
    ...wrap(reason, width).map((line) => INDENT + line),
    ...(fix === undefined ? [] : fixLines(fix, options)),
  ];
}

function fixLines(fix: string, options: ReportOptions): string[] {
  return fix
    .split('\n')
    .map((line, n) => `${INDENT}${n === 0 ? paint('green', FIX, options) : ' '.repeat(FIX.length)}${line}`);
}

function summary(findings: readonly Finding[], options: ReportOptions): string {
  const counts = countsOf(findings);
  const parts = [
    counted(counts.failure, 'failure'),
    counted(counts.warning, 'warning'),
    `${counts.unknown} unknown`,
    `${counts.ok} ok`,
  ];
  const worst = FINDING_STATUSES.find((status) => counts[status] > 0) ?? 'ok';
  return `${paint(COLORS[worst], parts.join(', '), options)} (${(options.ms / SECOND).toFixed(1)} s)`;
}

function paint(
  style: 'bold' | 'red' | 'yellow' | 'cyan' | 'green',
  text: string,
  { color }: ReportOptions,
): string {
  return color ? styleText(style, text, { validateStream: false }) : text;
}

/** Lines of at most `width` characters; a longer word has its own line. */
function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line];
}
