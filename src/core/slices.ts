/**
 * Long computations in slices, so that none of them blocks the event loop. Work is written as a generator that
 * yields often; `inSlices` runs it a few milliseconds at a time and lets timers, sockets and other work run in
 * between. All sliced work of the process shares these milliseconds: so many per iteration of the event loop,
 * whatever the number of requests.
 */
export type Work<Result> = Generator<void, Result, void>;

/** What sliced work may use of one iteration of the event loop, apart from the step in which the time ends. */
const SLICE_MS = 5;

const waiting: (() => void)[] = [];
let scheduled = false;
/** Of the current iteration. */
let leftMs = SLICE_MS;

function beginIteration(): void {
  scheduled = false;
  leftMs = SLICE_MS;
  waiting.shift()?.();
  if (waiting.length > 0) schedule();
}

function schedule(): void {
  if (scheduled) return;
  scheduled = true;
  setImmediate(beginIteration);
}

/** Resolves in a later iteration of the event loop, in which nobody else begins sliced work before the caller. */
export function nextSlice(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    schedule();
  });
}

/** Runs the work to its end: without a pause while this iteration has time for it, then one slice per iteration. */
export async function inSlices<Result>(work: Work<Result>): Promise<Result> {
  for (;;) {
    if (leftMs <= 0 || waiting.length > 0) await nextSlice();
    const began = performance.now();
    try {
      do {
        const step = work.next();
        if (step.done === true) return step.value;
      } while (performance.now() - began < leftMs);
    } finally {
      leftMs -= performance.now() - began;
      // The next iteration has its own time, whether somebody waits for it or not.
      schedule();
    }
  }
}

/** Runs the work to its end at once: for small inputs, and where nothing else waits for the thread. */
export function withoutPause<Result>(work: Work<Result>): Result {
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
  }
}
