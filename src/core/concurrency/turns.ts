export type Work<Result> = Generator<void, Result, void>;

/**
 * The order of an account's works. `alternate` (the default): they take turns, so that a short one does not wait for a
 * long one. `finish`: once it has begun, it precedes those that have not, so that what it has in memory is freed
 * before they add to it. `continue`: it precedes them from the start, as the continuation of something that has begun.
 * One of those that have not begun follows after at most `MAX_IN_A_ROW` turns of the others.
 */
export type Order = 'alternate' | 'finish' | 'continue';

/** With 16, a busy account begins new requests so often that as many are held in memory as with `alternate`. */
const MAX_IN_A_ROW = 64;

/** Turns in one iteration of the event loop; new requests are read between iterations. */
const TURNS_PER_PASS = 32;
/** Time that turns and sliced work may each use in an iteration; the last step may exceed it. */
const PASS_MS = 2;
/**
 * Turns may use as much time as the rest of the iteration took, if it is more, up to this: work that needs no turns
 * (deliveries, commits) would otherwise leave them less and less of a busy event loop.
 */
const MAX_PASS_MS = 20;
/** Maximum delay of the next turns by connecting clients. */
const CONNECTING_MS = 10;
/** Maximum charge for one turn. A longer turn was interrupted, for example by the garbage collector. */
const MAX_CHARGE_MS = 20;
/**
 * Minimum charge for one turn: reading from the connection before it and writing after it also take time. Without it,
 * virtual time would not advance during many short turns, and an account with a debt would wait for all of them.
 */
const MIN_CHARGE_MS = 0.25;
/**
 * Maximum charge for earlier turns that a returning account still owes. With busy accounts, virtual time passes much
 * more slowly than real time, so that an account charged for an interruption would wait many times as long.
 */
const MAX_DEBT_MS = PASS_MS / 4;

interface Flow {
  waiting: (() => void)[];
  /** Those that precede `waiting`. */
  begun: (() => void)[];
  /** Turns of `begun` while others waited, since the last turn of these. */
  inARow: number;
  /** Virtual time, ms, at which the account's next turn starts. */
  start: number;
}

/**
 * Turns on the event loop, shared fairly between accounts. Work that a request does synchronously (parsing,
 * validation, rendering) waits for its account's turn. Each account has two queues; the next turn goes to the account that
 * has used the least time, measured around the work itself (start-time fair queuing). An account that keeps the event
 * loop busy therefore delays its own requests, and one that seldom calls waits at most for the current turn and one of
 * each busy account. When no account waits, work starts in the same pass of the event loop.
 *
 * Long computations are generators that yield often: `run` executes them a few milliseconds at a time, and each
 * part after the first waits for the account's turn again.
 *
 * `now`: monotonic milliseconds. Schedules callbacks (`setImmediate`) only while work waits or has run in this
 * iteration, and keeps an entry for each account that waits or still owes time. A process uses one, `eventLoopTurns`.
 */
export function createTurns(now: () => number = () => performance.now()) {
  const flows = new Map<string, Flow>();
  let waiting = 0;
  /** Virtual time, ms: start of the current or last turn. */
  let virtual = 0;
  let running: { flow: Flow; since: number } | null = null;
  let passBegan: number | null = null;
  /** When the next pass was scheduled, ms. */
  let scheduledAt = now();
  /** Time that the turns of this pass may use, ms. */
  let passMs = PASS_MS;
  /** Time that sliced work may still use in this iteration, ms. */
  let leftMs = PASS_MS;
  /** A client has connected since the last iteration. */
  let isConnecting = false;
  let scheduled = false;
  let idleSince = now();

  /** Schedules all callbacks of a pass in advance: callbacks scheduled by a callback never run in the same pass. */
  function schedule(): void {
    scheduled = true;
    scheduledAt = now();
    passBegan = null;
    for (let n = Math.min(waiting, TURNS_PER_PASS); n > 0; n--) setImmediate(turn);
    setImmediate(endPass);
  }

  function beginPass(at: number): void {
    passBegan = at;
    passMs = Math.max(PASS_MS, Math.min(at - scheduledAt, MAX_PASS_MS));
    leftMs = PASS_MS;
  }

  /** Inserts iterations that only accept connections and read requests. */
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
    if (waiting === 0 || at - (passBegan ?? at) > passMs) return;
    const flow = nextFlow();
    virtual = flow.start;
    running = { flow, since: at };
    waiting--;
    // Continuations of the promise run before the next callback of this pass.
    takeFirst(flow)?.();
  }

  function takeFirst(flow: Flow): (() => void) | undefined {
    const { begun, waiting: others } = flow;
    const isBegunNext = begun.length > 0 && (others.length === 0 || flow.inARow < MAX_IN_A_ROW);
    flow.inARow = isBegunNext && others.length > 0 ? flow.inARow + 1 : 0;
    return (isBegunNext ? begun : others).shift();
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
      if (isIdle(flow) && flow.start <= virtual) flows.delete(accountId);
    }
  }

  function charge(at: number): void {
    if (running === null) return;
    const cost = at - running.since;
    running.flow.start += Math.min(Math.max(cost, MIN_CHARGE_MS), MAX_CHARGE_MS);
    running = null;
  }

  function nextFlow(): Flow {
    let first: Flow | null = null;
    for (const flow of flows.values()) {
      if (!isIdle(flow) && (first === null || flow.start < first.start)) first = flow;
    }
    if (first === null) throw new Error('No account is waiting for a turn');
    return first;
  }

  function next(accountId: string, hasBegun = false): Promise<void> {
    return new Promise((resolve) => {
      if (!scheduled) {
        // Idle time reduces earlier charges.
        const at = now();
        virtual += Math.max(0, at - idleSince);
        idleSince = at;
      }
      let flow = flows.get(accountId);
      if (flow === undefined) {
        flow = { waiting: [], begun: [], inARow: 0, start: virtual };
        flows.set(accountId, flow);
      }
      if (isIdle(flow) && running?.flow !== flow)
        flow.start = Math.min(Math.max(flow.start, virtual), virtual + MAX_DEBT_MS);
      (hasBegun ? flow.begun : flow.waiting).push(resolve);
      waiting++;
      if (!scheduled) schedule();
    });
  }

  /** Whether the work that leads to a call of `run` has taken a whole turn already, as parsing a long body does. */
  function hasUsedItsTurn(): boolean {
    return running !== null && now() - running.since > PASS_MS;
  }

  /** Runs the work to completion: in the current iteration while time is left, then in turns of the account. */
  async function run<Result>(
    work: Work<Result>,
    accountId: string,
    order: Order = 'alternate',
  ): Promise<Result> {
    let hasBegun = order === 'continue';
    for (;;) {
      if (leftMs <= 0 || hasUsedItsTurn()) await next(accountId, hasBegun);
      hasBegun = order !== 'alternate';
      const began = now();
      try {
        do {
          const step = work.next();
          if (step.done === true) return step.value;
        } while (now() - began < leftMs);
      } finally {
        leftMs -= now() - began;
        // The next iteration has new time, whether or not work waits for it.
        if (!scheduled) schedule();
      }
    }
  }

  return {
    /**
     * Resolves when it is the account's turn. What then runs until its first wait for I/O or for another turn is
     * charged to the account.
     */
    next: (accountId: string): Promise<void> => next(accountId),
    run,
    /**
     * Reports a new connection. Node accepts one connection per listener in each iteration of the event loop. While
     * connections arrive, iterations without turns follow each pass, for up to 10 ms.
     */
    connected: (): void => {
      isConnecting = true;
    },
  };
}

function isIdle({ waiting, begun }: Flow): boolean {
  return waiting.length === 0 && begun.length === 0;
}

/** Runs the work to completion without a pause: for small inputs, and in threads where nothing else is waiting. */
export function withoutPause<Result>(work: Work<Result>): Result {
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
  }
}
