/**
 * Long computations in slices, so that none of them blocks the event loop. Work is written as a generator that
 * yields often; `inSlices` runs it a few milliseconds at a time and lets timers, sockets and other work run in
 * between. All sliced work of the process takes turns: one slice per iteration of the event loop.
 */
export type Work<Result> = Generator<void, Result, void>;

/** How long one slice runs, apart from the step in which the time ends. */
export const SLICE_MS = 5;

const waiting: (() => void)[] = [];
let scheduled = false;

function runNext(): void {
  scheduled = false;
  waiting.shift()?.();
  if (waiting.length > 0) schedule();
}

function schedule(): void {
  if (scheduled) return;
  scheduled = true;
  setImmediate(runNext);
}

/** Resolves when it is the caller's turn to run one slice. */
export function nextSlice(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    schedule();
  });
}

/** Runs the work to its end, one slice per turn, beginning with the caller's next turn. */
export async function inSlices<Result>(work: Work<Result>): Promise<Result> {
  for (;;) {
    await nextSlice();
    const end = performance.now() + SLICE_MS;
    do {
      const step = work.next();
      if (step.done === true) return step.value;
    } while (performance.now() < end);
  }
}

/** Runs the work to its end without a pause: for small inputs, and outside the event loop of the daemon. */
export function withoutPause<Result>(work: Work<Result>): Result {
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
  }
}
