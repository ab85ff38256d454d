import { Worker } from 'node:worker_threads';
import { builtProgram } from '../../core/built-program.ts';
import { SECOND } from '../../core/clock.ts';
import { createFairQueue } from '../../core/concurrency/fair-queue.ts';
import type { Log } from '../../core/log.ts';
import { createLru } from '../../core/lru.ts';
import type { Compiled } from '../../mail/mjml.ts';
import type {
  FieldFault,
  LiquidCopy,
  LiquidCopyInput,
  LiquidRead,
  LiquidSource,
  TemplateAnswer,
  TemplateJob,
} from './jobs.ts';

/*
 * Runs templates of accounts in two threads: `quick` for what takes milliseconds, and `slow` for what takes longer and for accounts
 * that used much time recently. A template that exceeds the limits of the first one is tried again in the second one, so that
 * a hostile template delays others once and briefly, and a busy machine fails nothing. In each thread, the account that used the
 * least time is next.
 *
 * Not shared with smtp/parser/mail-parser.ts: its jobs are single and have one thread and other priorities.
 */

/** Milliseconds of one copy and of a job: Liquid stops at `render`; a thread that exceeds `job` without an answer is terminated. */
const LIMITS = {
  quick: { render: 100, job: SECOND },
  slow: { render: SECOND, job: 3 * SECOND },
} as const;
type Lane = keyof typeof LIMITS;

/** Copies of one job are rendered for this long, ms: then other accounts are next. */
const BUDGET_MS = 100;
/** Time limit of the start of a thread. */
const START_TIMEOUT_MS = 60 * SECOND;
/** Limit of the heap of a thread. */
const HEAP_LIMIT_MB = 192;
/** An account that used more, with a half-life, uses the slow thread. */
const QUICK_SHARE_MS = SECOND;
const HALF_LIFE_MS = 30 * SECOND;
const MAX_ACCOUNTS = 10_000;

/** What a job resulted in. stopped: the daemon stops. overdue: it exceeded a limit, or ended the thread. */
interface Outcome {
  answers: TemplateAnswer[];
  end: 'done' | 'overdue' | 'stopped';
}

interface Waiting {
  accountId: string;
  job: TemplateJob;
  answers: TemplateAnswer[];
  resolve(outcome: Outcome): void;
}

interface TemplateThreadsOptions {
  startThread?: () => Worker;
  /** Replaces the time limits, ms. */
  limits?: Record<Lane, { render: number; job: number }>;
}

function startTemplateThread(): Worker {
  return new Worker(builtProgram('templates/thread/program'), {
    resourceLimits: { maxOldGenerationSizeMb: HEAP_LIMIT_MB },
  });
}

/** One thread, which starts with its first job and is replaced when it ends. */
function createLane(
  limitMs: number,
  log: Log,
  startThread: () => Worker,
  charge: (accountId: string, ms: number) => void,
  usedBy: (accountId: string) => number,
) {
  const queue = createFairQueue<Waiting>();
  let thread: Worker | null = null;
  let isReady = false;
  let current: Waiting | null = null;
  let begunAt = 0;
  let timer: NodeJS.Timeout | undefined;
  let isStopped = false;

  function next(): void {
    if (current !== null || isStopped) return;
    current = queue.take((owner) => usedBy(owner))?.item ?? null;
    if (current === null) return;
    thread ??= start();
    begunAt = performance.now();
    thread.postMessage(current.job);
    restartTimer();
  }

  function restartTimer(): void {
    clearTimeout(timer);
    timer = setTimeout(overdue, isReady ? limitMs : START_TIMEOUT_MS);
  }

  function start(): Worker {
    const started = startThread();
    isReady = false;
    started.unref();
    started.on('message', (answer: TemplateAnswer) => {
      if (thread === started) receive(answer);
    });
    started.on('error', (error) => log.warn({ err: error }, 'template thread failed'));
    started.on('exit', () => {
      if (thread !== started) return;
      thread = null;
      finish('overdue');
    });
    return started;
  }

  function receive(answer: TemplateAnswer): void {
    if (answer.kind === 'ready') {
      isReady = true;
      // The account does not pay for the start of the thread.
      begunAt = performance.now();
    } else if (answer.kind === 'end') return finish(answer.slow ? 'overdue' : 'done');
    else {
      current?.answers.push(answer);
      if (answer.kind !== 'copy') return finish('done');
    }
    if (current !== null) restartTimer();
  }

  function overdue(): void {
    const busy = thread;
    thread = null;
    log.warn({ limitMs, accountId: current?.accountId, job: current?.job.kind }, 'template thread timed out');
    void busy?.terminate();
    finish('overdue');
  }

  function finish(end: Outcome['end']): void {
    clearTimeout(timer);
    const finished = current;
    current = null;
    if (finished !== null) {
      charge(finished.accountId, performance.now() - begunAt);
      finished.resolve({ answers: finished.answers, end });
    }
    next();
  }

  return {
    run: (accountId: string, job: TemplateJob): Promise<Outcome> =>
      new Promise((resolve) => {
        if (isStopped) return resolve({ answers: [], end: 'stopped' });
        queue.push(accountId, { accountId, job, answers: [], resolve });
        next();
      }),
    stop: async (): Promise<void> => {
      isStopped = true;
      clearTimeout(timer);
      const stopping = thread;
      thread = null;
      for (const { resolve } of [...(current === null ? [] : [current]), ...queue.clear()])
        resolve({ answers: [], end: 'stopped' });
      current = null;
      await stopping?.terminate();
    },
  };
}

/** slow: it exceeded its limits. stopping: the daemon stops. */
export type Unrun = { unrun: 'slow' | 'stopping' };

const SLOW: Unrun = { unrun: 'slow' };
const STOPPING: Unrun = { unrun: 'stopping' };

/** Starts nothing before the first job; `stop` ends the threads, and resolves what waits as `stopping`. */
export function createTemplateThreads(
  log: Log,
  { startThread = startTemplateThread, limits = LIMITS }: TemplateThreadsOptions = {},
) {
  const used = createLru<{ ms: number; at: number }>(MAX_ACCOUNTS);

  /** Milliseconds that an account used recently. */
  function usedBy(accountId: string): number {
    const use = used.get(accountId);
    return use === undefined ? 0 : use.ms * 2 ** ((use.at - performance.now()) / HALF_LIFE_MS);
  }

  function charge(accountId: string, ms: number): void {
    used.set(accountId, { ms: usedBy(accountId) + ms, at: performance.now() });
  }

  const lanes = {
    quick: createLane(limits.quick.job, log, startThread, charge, usedBy),
    slow: createLane(limits.slow.job, log, startThread, charge, usedBy),
  };

  function laneOf(accountId: string): Lane {
    return usedBy(accountId) > QUICK_SHARE_MS ? 'slow' : 'quick';
  }

  /** Runs a job with one answer. */
  async function one(
    accountId: string,
    job: TemplateJob,
    first: Lane = laneOf(accountId),
  ): Promise<TemplateAnswer | Unrun> {
    const tries: Lane[] = first === 'quick' ? ['quick', 'slow'] : ['slow'];
    for (const lane of tries) {
      const { answers, end } = await lanes[lane].run(accountId, job);
      if (end === 'stopped') return STOPPING;
      if (end === 'done' && answers[0] !== undefined) return answers[0];
    }
    return SLOW;
  }

  return {
    /** Parses content in Liquid. */
    read: async (
      accountId: string,
      source: LiquidSource,
    ): Promise<LiquidRead | { faults: FieldFault[] } | Unrun> => {
      const answer = await one(accountId, { kind: 'read', source });
      return 'unrun' in answer ? answer : answer.kind === 'read' ? answer.read : SLOW;
    },
    /**
     * Renders the first copies, as many as fit into the turn of the account, at least one: a copy that exceeds its limits is
     * `slow`.
     */
    render: async (
      accountId: string,
      source: LiquidSource,
      copies: readonly LiquidCopyInput[],
      { whole }: { whole: boolean },
    ): Promise<(LiquidCopy | Unrun)[]> => {
      const rendered: (LiquidCopy | Unrun)[] = [];
      for (let lane: Lane | null = laneOf(accountId); lane !== null; ) {
        const job: TemplateJob = {
          kind: 'render',
          source,
          whole,
          copies: copies.slice(rendered.length),
          limitMs: limits[lane].render,
          budgetMs: BUDGET_MS,
        };
        const { answers, end } = await lanes[lane].run(accountId, job);
        for (const answer of answers) if (answer.kind === 'copy') rendered.push(answer.copy);
        if (end === 'stopped') return [...rendered, STOPPING];
        if (end === 'done') return rendered;
        if (lane === 'slow') rendered.push(SLOW);
        lane = lane === 'quick' ? 'slow' : null;
      }
      return rendered;
    },
    /** Compiles MJML. */
    compile: async (accountId: string, source: string): Promise<Compiled | Unrun> => {
      const answer = await one(accountId, { kind: 'mjml', source }, 'slow');
      return 'unrun' in answer ? answer : answer.kind === 'mjml' ? answer.compiled : SLOW;
    },
    stop: async (): Promise<void> => {
      await Promise.all([lanes.quick.stop(), lanes.slow.stop()]);
    },
  };
}

export type TemplateThreads = ReturnType<typeof createTemplateThreads>;
