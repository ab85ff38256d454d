import { appendFileSync, readFileSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';

/*
 * Loaded into a daemon under test (NODE_OPTIONS=--import): writes the CPU time of every long turn of the event
 * loop to the file that TEST_TURNS_FILE names, one number of milliseconds a line. CPU time, so that other
 * programs on the machine do not count.
 */
const LONG_MS = 15;
const file = process.env.TEST_TURNS_FILE;

/** Of the main thread, ms (proc(5), schedstat). */
function cpuTime() {
  return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'latin1').split(' ')[0]) / 1e6;
}

/** Work to compare turns with: the least CPU time of a few tries, as the first ones are not compiled yet. */
function referenceTime() {
  const text = JSON.stringify(Array.from({ length: 100_000 }, (_, n) => `value ${n}`));
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 10; round++) {
    const began = cpuTime();
    for (let again = 0; again < 4; again++) JSON.parse(text);
    least = Math.min(least, cpuTime() - began);
  }
  return least;
}

let before = cpuTime();
function beat() {
  const now = cpuTime();
  if (now - before > LONG_MS) appendFileSync(file, `${now - before}\n`);
  before = cpuTime();
  setTimeout(beat, 1).unref();
}
// Threads load it, too.
if (file !== undefined && isMainThread) {
  appendFileSync(file, `reference ${referenceTime()}\n`);
  before = cpuTime();
  beat();
}
