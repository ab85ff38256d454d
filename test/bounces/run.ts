import { join } from 'node:path';
import Table from 'cli-table3';
import { emptyScore, percent, readExpected, type Score, scoreMail, type Tally } from './score.ts';

/**
 * Runs the parser over a folder of real bounces and prints, family by family, how often it is right:
 * `npm run bounces [-- FOLDER]`. `scores.test.ts` asserts the minimum scores.
 */
const folder = process.argv[2] ?? join(import.meta.dirname, '../data/bounces');
const expected = readExpected(folder);
const families = new Map<string, Score>();
const total = emptyScore();

for (const [file, rows] of Object.entries(expected)) {
  const family = file.replace(/-\d+\.eml$/, '');
  const score = families.get(family) ?? emptyScore();
  families.set(family, score);
  scoreMail(folder, file, rows, score);
  scoreMail(folder, file, rows, total);
}

const table = new Table({
  head: ['family', 'kind', 'count', 'status', 'hard', 'wrongly hard'],
  style: { head: [], border: [], compact: true },
});
for (const [family, score] of [...families].sort(([a], [b]) => a.localeCompare(b)))
  table.push(line(family, score));
table.push(line('all', total));
console.log(table.toString());
const hard = { right: total.rightlyHard, of: total.rightlyHard + total.wronglyHard };
console.log(`precision of "hard": ${cell(hard)}`);
console.log(total.faults.join('\n'));

function line(name: string, { kind, count, status, hard, wronglyHard }: Score): string[] {
  return [name, cell(kind), cell(count), cell(status), cell(hard), String(wronglyHard)];
}

function cell(tally: Tally): string {
  return tally.of === 0 ? '-' : `${tally.right}/${tally.of} ${percent(tally).toFixed(1)} %`;
}
