import { appendFileSync } from 'node:fs';
import { afterAll, expect } from 'vitest';
import { endedChildrenCpu } from './process-cost.ts';

/*
 * Vitest's setup file, which it runs before each test file: with TEST_COSTS, the CPU time of each file is appended
 * to the file that it names, one line per file: seconds, those of programs that it started and that have ended, and
 * its path. The time includes the loading of the file's modules and its threads. Durations are not comparable on a
 * busy machine or while other files run.
 *
 *     TEST_COSTS=/tmp/costs npm test; sort -rn /tmp/costs | head -20
 */
const target = process.env['TEST_COSTS'];
if (target !== undefined) {
  const before = { own: ownCpu(), programs: endedChildrenCpu() };
  afterAll(() => {
    const own = ownCpu() - before.own;
    const programs = endedChildrenCpu() - before.programs;
    const columns = [(own + programs).toFixed(2), programs.toFixed(2), expect.getState().testPath];
    appendFileSync(target, `${columns.join('\t')}\n`);
  });
}

/** CPU time of this process and its threads, in seconds. */
function ownCpu(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}
