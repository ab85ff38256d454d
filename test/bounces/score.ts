import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type IncomingKind, parseFile } from '../../src/mail/incoming/parse.ts';

/** One reported recipient in `expected.json`. */
export interface ExpectedRow {
  index: number;
  /** '' and an internal `x.0.9nn` are not compared. */
  status: string;
  replyCode: string;
  reason: string;
  hard: boolean;
  feedbackType: string;
}

export interface Tally {
  right: number;
  of: number;
}

export interface Score {
  kind: Tally;
  count: Tally;
  status: Tally;
  hard: Tally;
  /** Addresses wrongly reported as hard bounces, which is the worse error. */
  wronglyHard: number;
  rightlyHard: number;
  /** Differences from the expected rows, one line each. */
  faults: string[];
}

export function emptyScore(): Score {
  const tally = () => ({ right: 0, of: 0 });
  return {
    kind: tally(),
    count: tally(),
    status: tally(),
    hard: tally(),
    wronglyHard: 0,
    rightlyHard: 0,
    faults: [],
  };
}

/** `folder` holds mails and their `expected.json`. */
export function readExpected(folder: string): Record<string, ExpectedRow[]> {
  const expected: Record<string, ExpectedRow[]> = JSON.parse(
    readFileSync(join(folder, 'expected.json'), 'utf8'),
  );
  return expected;
}

/** Parses one mail of the folder and adds the result to `score`. */
export function scoreMail(folder: string, file: string, rows: readonly ExpectedRow[], score: Score): void {
  const got = parseFile(readFileSync(join(folder, file)));
  const note = (aspect: 'kind' | 'count' | 'status' | 'hard', isRight: boolean, fault: string) => {
    score[aspect].of++;
    if (isRight) score[aspect].right++;
    else score.faults.push(`${file}: ${fault}`);
  };
  const kind = expectedKind(rows[0]?.reason ?? '');
  note('kind', got.kind === kind, `kind ${got.kind}, not ${kind}`);
  note('count', got.reports.length === rows.length, `${got.reports.length} reports, not ${rows.length}`);
  rows.forEach((row, i) => {
    const report = got.reports[i];
    if (isComparable(row.status))
      note('status', report?.status === row.status, `status ${report?.status}, not ${row.status}`);
    const isHard = report?.bounceType === 'hard';
    note('hard', isHard === row.hard, `${isHard ? '' : 'not '}hard, but it is ${row.reason}`);
    if (isHard && row.hard) score.rightlyHard++;
    if (isHard && !row.hard) score.wronglyHard++;
  });
}

function expectedKind(reason: string): IncomingKind {
  if (reason === 'feedback') return 'arf';
  return reason === 'vacation' ? 'auto-reply' : 'dsn';
}

function isComparable(status: string): boolean {
  return status !== '' && !/\.0\.9\d\d$/.test(status);
}

export function percent({ right, of }: Tally): number {
  return of === 0 ? 100 : (100 * right) / of;
}
