/**
 * Turns on the event loop, shared fairly between accounts. Work that a request does synchronously (parsing,
 * validation, rendering) waits for its account's turn. Each account has a queue of its own; the next turn goes to
 * the account that has used the least time, measured around the work itself (start-time fair queuing). So an
 * account that keeps the event loop busy delays its own requests, and one that seldom calls waits at most for the
 * turn under way and one of each busy account. When nobody waits, work starts in the same pass of the event loop.
 *
 * Long computations are generators that yield often: `run` executes them a few milliseconds at a time, and each
 * part after the first waits for the account's turn again.
 */
export interface Turns {
  /**
   * Resolves when it is the account's turn. What then runs until its first wait for I/O or for another turn is
   * charged to the account.
   */
  next(accountId: string): Promise<void>;
  /** Runs the work to its end: in the current iteration while that has time for it, then in turns of the account. */
  run<Result>(work: Work<Result>, accountId: string): Promise<Result>;
  /**
   * A client has connected. Node accepts one connection of each listener per iteration of the event loop, so as long
   * as connections arrive there are iterations without turns in between, for up to 10 ms after each pass.
   */
  connected(): void;
}

export type Work<Result> = Generator<void, Result, void>;

/** Turns in one iteration of the event loop: between them new requests are read. */
const TURNS_PER_PASS = 16;
/** What turns and sliced work may each use of an iteration, apart from the step in which the time ends. */
const PASS_MS = 2;
/** How long clients that connect may delay the next turns. */
const CONNECTING_MS = 10;
/** What one turn costs an account at most. One that took longer was interrupted: by the garbage collector, say. */
const LARGEST_CHARGE_MS = 20;
/**
 * What one turn costs an account at least: reading from its connection comes before it, writing after it. Without it,
 * virtual time would stand still during many short turns, and an account that owes something would wait for its end.
 */
const SMALLEST_CHARGE_MS = 0.25;
/**
 * What an account that comes back still owes for its last turns. Beside busy accounts, virtual time passes far more
 * slowly than real time, so that an account that was charged for an interruption would wait many times as long.
 */
const LARGEST_DEBT_MS = PASS_MS / 4;

interface Flow {
  waiting: (() => void)[];
  /** Virtual time, ms: at which the account's next turn starts. */
  start: number;
}

export function createTurns(now: () => number = () => performance.now()): Turns {
  const flows = new Map<string, Flow>();
  let waiting = 0;
  /** Virtual time, ms: the start of the turn under way, or of the last one. */
  let virtual = 0;
  let running: { flow: Flow; since: number } | null = null;
  let passBegan: number | null = null;
  /** What sliced work may still use of this iteration. */
  let leftMs = PASS_MS;
  /** A client has connected since the last iteration. */
  let isConnecting = false;
  let scheduled = false;
  let idleSince = now();

  /** All callbacks of one pass are scheduled beforehand: none that a callback schedules runs in the same pass. */
  function schedule(): void {
    scheduled = true;
    passBegan = null;
    for (let n = Math.min(waiting, TURNS_PER_PASS); n > 0; n--) setImmediate(turn);
    setImmediate(endPass);
  }

  function beginPass(at: number): void {
    passBegan = at;
    leftMs = PASS_MS;
  }

  /** Iterations that only accept connections and read requests. */
  function acceptUntil(end: number): void {
    if (!isConnecting || now() >= end) schedule();
    else {
      isConnecting = false;
      setImmediate(acceptUntil, end);
    }
  }

  function turn(): void {
    const at = now();
    charge(at);
    if (passBegan === null) beginPass(at);
    if (waiting === 0 || at - (passBegan ?? at) > PASS_MS) return;
    const flow = nextFlow();
    virtual = flow.start;
    running = { flow, since: at };
    waiting--;
    // What waits for the promise runs before the next callback of this pass.
    flow.waiting.shift()?.();
  }

  function endPass(): void {
    const at = now();
    charge(at);
    if (passBegan === null) beginPass(at);
    if (waiting > 0) {
      acceptUntil(at + CONNECTING_MS);
      return;
    }
    scheduled = false;
    idleSince = at;
    for (const [accountId, flow] of flows) {
      if (flow.waiting.length === 0 && flow.start <= virtual) flows.delete(accountId);
    }
  }

  function charge(at: number): void {
    if (running === null) return;
    const cost = at - running.since;
    running.flow.start += Math.min(Math.max(cost, SMALLEST_CHARGE_MS), LARGEST_CHARGE_MS);
    running = null;
  }

  function nextFlow(): Flow {
    let first: Flow | null = null;
    for (const flow of flows.values()) {
      if (flow.waiting.length > 0 && (first === null || flow.start < first.start)) first = flow;
    }
    if (first === null) throw new Error('no account waits for a turn');
    return first;
  }

  function next(accountId: string): Promise<void> {
    return new Promise((resolve) => {
      if (!scheduled) {
        // Idle time lets what accounts have used before fade away.
        const at = now();
        virtual += Math.max(0, at - idleSince);
        idleSince = at;
      }
      let flow = flows.get(accountId);
      if (flow === undefined) {
        flow = { waiting: [], start: virtual };
        flows.set(accountId, flow);
      }
      if (flow.waiting.length === 0 && running?.flow !== flow)
        flow.start = Math.min(Math.max(flow.start, virtual), virtual + LARGEST_DEBT_MS);
      flow.waiting.push(resolve);
      waiting++;
      if (!scheduled) schedule();
    });
  }

  async function run<Result>(work: Work<Result>, accountId: string): Promise<Result> {
    for (;;) {
      if (leftMs <= 0) await next(accountId);
      const began = now();
      try {
        do {
          const step = work.next();
          if (step.done === true) return step.value;
        } while (now() - began < leftMs);
      } finally {
        leftMs -= now() - began;
        // The next iteration has its own time, whether somebody waits for it or not.
        if (!scheduled) schedule();
      }
    }
  }

  return {
    next,
    run,
    connected: () => {
      isConnecting = true;
    },
  };
}

/** Runs the work to its end at once: for small inputs, and where nothing else waits for the thread. */
export function withoutPause<Result>(work: Work<Result>): Result {
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
  }
}
