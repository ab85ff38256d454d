/**
 * Turns on the event loop, shared fairly between accounts. Work that a request does synchronously (parsing,
 * validation, rendering) waits for its account's turn. Each account has a queue of its own; the next turn goes to
 * the account that has used the least time, measured around the work itself (start-time fair queuing). So an
 * account that keeps the event loop busy delays its own requests, and one that seldom calls waits at most for the
 * turn under way and one of each busy account. When nobody waits, work starts in the same pass of the event loop.
 */
export interface Turns {
  /**
   * Resolves when it is the account's turn. What then runs until its first wait for I/O or for another turn is
   * charged to the account.
   */
  next(accountId: string): Promise<void>;
}

/** Turns in one pass of the event loop: between passes new requests are read. */
const TURNS_PER_PASS = 8;
/** No further turn begins in a pass that has taken so long. */
const PASS_MS = 5;

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
  let scheduled = false;
  let idleSince = now();

  /** All callbacks of one pass are scheduled beforehand: none that a callback schedules runs in the same pass. */
  function schedule(): void {
    scheduled = true;
    passBegan = null;
    for (let n = Math.min(waiting, TURNS_PER_PASS); n > 0; n--) setImmediate(turn);
    setImmediate(endPass);
  }

  function turn(): void {
    const at = now();
    charge(at);
    passBegan ??= at;
    if (waiting === 0 || at - passBegan > PASS_MS) return;
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
    if (waiting > 0) {
      schedule();
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
    running.flow.start += at - running.since;
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

  return {
    next: (accountId) =>
      new Promise((resolve) => {
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
        if (flow.waiting.length === 0 && running?.flow !== flow) flow.start = Math.max(flow.start, virtual);
        flow.waiting.push(resolve);
        waiting++;
        if (!scheduled) schedule();
      }),
  };
}
