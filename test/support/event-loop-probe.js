import { appendFileSync, readFileSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';

/*
 * Loaded into a daemon under test (NODE_OPTIONS=--import): writes the CPU time of every long turn of the event
 * loop to the file that TEST_TURNS_FILE names, one number of milliseconds per line. CPU time, so that other
 * processes on the machine do not count.
 */
const LONG_MS = 15;
const file = process.env.TEST_TURNS_FILE;

/** CPU time of the main thread so far, ms (proc(5), schedstat). */
function cpuTime() {
  return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'latin1').split(' ')[0]) / 1e6;
}

/** CPU time of a fixed amount of work, ms: the minimum of ten tries, as the first ones run uncompiled code. */
function referenceTime() {
  const text = JSON.stringify(Array.from({ length: 100_000 }, (_, n) => `value ${n}`));
  let least = Number.POSITIVE_INFINITY;
  for (let tries = 0; tries < 10; tries++) {
    const began = cpuTime();
    for (let repeat = 0; repeat < 4; repeat++) JSON.parse(text);
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
// Worker threads load it, too.
if (file !== undefined && isMainThread) {
  appendFileSync(file, `reference ${referenceTime()}\n`);
  before = cpuTime();
  beat();
}
