import { appendFileSync, readFileSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';

/*
 * Loaded into a daemon under test (NODE_OPTIONS=--import): appends every long turn of the event loop to the file that
 * TEST_TURNS_FILE names, one number per line: its CPU time in multiples of the reference, which is measured right after
 * the turn. CPU time, so that other processes do not count; and a reference of the same moment, because the speed of
 * a shared machine changes by the half within a minute.
 */
const LONG_MS = 15;
const file = process.env.TEST_TURNS_FILE;

/** CPU time of the main thread so far, ms (proc(5), schedstat). */
function cpuTime() {
  return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'latin1').split(' ')[0]) / 1e6;
}

const REFERENCE = JSON.stringify(Array.from({ length: 100_000 }, (_, n) => `value ${n}`));

/** CPU time of a fixed amount of work, ms: the minimum, as the first tries run uncompiled code. */
function referenceTime(maxTries) {
  let least = Number.POSITIVE_INFINITY;
  for (let tries = 0; tries < maxTries; tries++) {
    const began = cpuTime();
    for (let repeat = 0; repeat < 4; repeat++) JSON.parse(REFERENCE);
    least = Math.min(least, cpuTime() - began);
  }
  return least;
}

let before = cpuTime();
function beat() {
  const turn = cpuTime() - before;
  if (turn > LONG_MS) appendFileSync(file, `${turn / referenceTime(4)}\n`);
  before = cpuTime();
  setTimeout(beat, 1).unref();
}
// Worker threads load it, too.
if (file !== undefined && isMainThread) {
  referenceTime(10);
  before = cpuTime();
  beat();
}
