/**
 * Shares the event loop among SMTP clients: only so many commands run in one turn, those that have to wait run
 * network by network, and while some wait there is a pause between turns. However many connections send commands at
 * once, everything else in the process waits for one turn at most, and keeps most of the processor.
 */
export interface Turns {
  /** Runs the job now or in a later turn. A connection has one job at a time, which bounds the queue. */
  run(network: string, job: () => void): void;
  waiting(): number;
}

/** About a millisecond. */
const COMMANDS_PER_TURN = 50;
/** Between turns while commands wait: 12,500 commands a second at most. */
const PAUSE_MS = 4;

export function createTurns(
  options: { perTurn?: number; defer?: (callback: () => void, hasBacklog: boolean) => void } = {},
): Turns {
  const { perTurn = COMMANDS_PER_TURN, defer = deferTurn } = options;
  const queues = new Map<string, (() => void)[]>();
  let waiting = 0;
  let used = 0;
  let isScheduled = false;

  function schedule(): void {
    if (isScheduled) return;
    isScheduled = true;
    defer(nextTurn, waiting > 0);
  }

  function nextTurn(): void {
    isScheduled = false;
    used = 0;
    while (waiting > 0 && used < perTurn) takeOne();
    if (waiting > 0) schedule();
  }

  /** The first job of the first network, which then goes behind the others. */
  function takeOne(): void {
    for (const [network, jobs] of queues) {
      queues.delete(network);
      const job = jobs.shift();
      if (jobs.length > 0) queues.set(network, jobs);
      if (job === undefined) continue;
      waiting--;
      used++;
      job();
      return;
    }
  }

  return {
    run: (network, job) => {
      schedule();
      if (used < perTurn && waiting === 0) {
        used++;
        job();
        return;
      }
      waiting++;
      const jobs = queues.get(network);
      if (jobs === undefined) queues.set(network, [job]);
      else jobs.push(job);
    },
    waiting: () => waiting,
  };
}

function deferTurn(callback: () => void, hasBacklog: boolean): void {
  if (hasBacklog) setTimeout(callback, PAUSE_MS).unref();
  else setImmediate(callback);
}
