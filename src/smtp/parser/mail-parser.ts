import { Worker } from 'node:worker_threads';
import type { ReplyRule } from '../../config/reply-rules.ts';
import { builtProgram } from '../../core/built-program.ts';
import { SECOND } from '../../core/clock.ts';
import type { Log } from '../../core/log.ts';
import { createParseQueue, type JobOrigin, type JobPriority } from './parse-queue.ts';
import type { ParseJob, ParseResults, RulesMessage, StartedMessage } from './thread.ts';

/** too-long, failed: the mail is the cause. stopping: the mail was not parsed. */
export type Unreadable = { unreadable: 'too-long' | 'failed' | 'stopping' };

const STOPPING: Unreadable = { unreadable: 'stopping' };

interface Waiting {
  job: ParseJob;
  origin: JobOrigin;
  /** Threads that exited while they parsed it. */
  crashes: number;
  resolve(result: ParseResults[keyof ParseResults] | Unreadable): void;
}

const TIMEOUT_MS = 5 * SECOND;
/** Time limit of the start of a thread, which loads its modules: on a busy machine that takes more than 5 s. */
const START_TIMEOUT_MS = 60 * SECOND;
/**
 * Limits of jobs posted to the thread ahead of time, so that it continues while a commit occupies the main thread. Only
 * small mails: the order of posted jobs no longer changes.
 */
const MAX_AHEAD = 32;
const MAX_BYTES_AHEAD = 512 * 1024;
/** A report waits until the thread is idle: jobs that arrive meanwhile go first. */
const MAX_AHEAD_BY_PRIORITY: Record<JobPriority, number> = { first: MAX_AHEAD, normal: 4, last: 0 };
/** Pause before a thread that exited is replaced. */
const RESTART_DELAY_MS = SECOND;

/** Limit of the heap of a thread: many times what a mail of the largest size needs. */
const HEAP_LIMIT_MB = 512;

export function startParserThread(): Worker {
  return new Worker(builtProgram('smtp/parser/thread'), {
    resourceLimits: { maxOldGenerationSizeMb: HEAP_LIMIT_MB },
  });
}

const NO_RULES: readonly ReplyRule[] = [];

interface MailParserOptions {
  /** Default: `startParserThread`. */
  startThread?: (() => Worker) | undefined;
  /** The rules of the operator for replies, asked at each use: a reload replaces them. Default: none. */
  rules?: () => readonly ReplyRule[];
  /** Time limit of one mail, and of the start of a thread, ms. Default: 5 s and a minute. */
  timeoutMs?: number | undefined;
}

export type MailParser = ReturnType<typeof createMailParser>;

/** A mail parser whose thread starts with the first mail. A mail after `stop` is `stopping`. */
export function createLazyMailParser(log: Log, options: MailParserOptions = {}): MailParser {
  let parser: MailParser | null = null;
  let isStopped = false;
  return {
    parse: (job, origin) => {
      if (isStopped) return Promise.resolve(STOPPING);
      parser ??= createMailParser(log, options);
      return parser.parse(job, origin);
    },
    stop: async () => {
      isStopped = true;
      await parser?.stop();
    },
  };
}

/**
 * Parses mails in a thread, one after the other and each within a time limit. A mail that ends two threads is unreadable;
 * the mails behind it go to the next thread. Callers and recipients share the thread fairly (parse-queue.ts), so a flood
 * delays no other sender by more than the mail in progress.
 *
 * Not piscina: it posts a fixed number of tasks to a busy thread whatever their priority, starts a task's time limit when
 * the task is posted, and fails all tasks of a thread that exits. Not shared with store/readers/pool.ts, which runs one
 * read at a time on each of several threads and lets overdue reads end; only the event handlers of a thread are alike.
 *
 * Starts the thread immediately; `stop` terminates it, and mails that wait resolve as `stopping`. A thread that exits
 * is replaced after a second, one that exceeds the time limit without a pause.
 */
export function createMailParser(log: Log, options: MailParserOptions = {}) {
  const { startThread = () => startParserThread(), rules = () => NO_RULES, timeoutMs = TIMEOUT_MS } = options;
  const queue = createParseQueue<Waiting>(() => performance.now());
  /** Jobs posted to the thread, which parses them in this order: the first is in progress. */
  let posted: Waiting[] = [];
  let postedBytes = 0;
  /** When the thread began with the first one. */
  let begunAt = 0;
  let thread: Worker | null = null;
  /** The rules that the thread has. */
  let threadRules = NO_RULES;
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;
  /** Whether the thread has started: the time of the first job begins then. */
  let isReady = false;

  function start(): void {
    const started = startThread();
    thread = started;
    threadRules = NO_RULES;
    isReady = false;
    started.on('message', (result: ParseResults[keyof ParseResults] | StartedMessage) => {
      if (thread !== started) return;
      if (result !== null && 'ready' in result) {
        isReady = true;
        restartTimer();
      } else done(result);
    });
    started.on('error', (error) => {
      log.error({ err: error }, 'mail parser thread failed');
    });
    started.on('exit', () => {
      if (thread === started) onExit();
    });
    const question: StartedMessage = { ready: true };
    started.postMessage(question);
    next();
  }

  function done(result: ParseResults[keyof ParseResults]): void {
    const finished = posted.shift();
    if (finished !== undefined) {
      postedBytes -= finished.job.raw.length;
      queue.charge(finished.origin, performance.now() - begunAt);
      finished.resolve(result);
    }
    restartTimer();
    next();
  }

  function next(): void {
    if (thread === null || posted.length >= MAX_AHEAD) return;
    for (let waiting = queue.take(mayPost); waiting !== undefined; waiting = queue.take(mayPost)) {
      posted.push(waiting);
      postedBytes += waiting.job.raw.length;
      postRules(thread);
      thread.postMessage(waiting.job);
      if (posted.length === 1) restartTimer();
    }
  }

  function postRules(to: Worker): void {
    const replyRules = rules();
    if (replyRules === threadRules || replyRules.length + threadRules.length === 0) return;
    threadRules = replyRules;
    const message: RulesMessage = { rules: replyRules };
    to.postMessage(message);
  }

  function mayPost({ job, origin }: Waiting): boolean {
    if (posted.length === 0) return true;
    const samePriority = posted.filter((each) => each.origin.priority === origin.priority).length;
    return (
      posted.length < MAX_AHEAD &&
      samePriority < MAX_AHEAD_BY_PRIORITY[origin.priority] &&
      postedBytes + job.raw.length <= MAX_BYTES_AHEAD
    );
  }

  /** Starts the time limit of the first job, or of the start of the thread. */
  function restartTimer(): void {
    clearTimeout(timer);
    begunAt = performance.now();
    if (posted.length > 0) timer = setTimeout(timedOut, limitMs());
  }

  function limitMs(): number {
    return isReady ? timeoutMs : (options.timeoutMs ?? START_TIMEOUT_MS);
  }

  /** Returns the job in progress; those behind it wait for the next thread. */
  function detach(): Waiting | undefined {
    clearTimeout(timer);
    thread = null;
    const [first, ...others] = posted;
    posted = [];
    postedBytes = 0;
    for (const waiting of others.toReversed()) queue.putBack(waiting);
    return first;
  }

  /** A busy thread handles no messages, so it is terminated. */
  function timedOut(): void {
    const slow = thread;
    const first = detach();
    const caller = first?.origin.caller;
    log.error({ timeoutMs: limitMs(), purpose: first?.job.purpose, caller }, 'mail parser timed out');
    if (first !== undefined) queue.charge(first.origin, limitMs());
    first?.resolve({ unreadable: 'too-long' });
    void slow?.terminate();
    if (!stopped) start();
  }

  function onExit(): void {
    const first = detach();
    if (first !== undefined && ++first.crashes < 2) queue.putBack(first);
    else first?.resolve({ unreadable: 'failed' });
    setTimeout(() => stopped || start(), RESTART_DELAY_MS).unref();
  }

  /** Null when too many mails of this caller, for this recipient or in total are waiting. */
  function parse<Job extends ParseJob>(
    job: Job,
    origin: JobOrigin,
  ): Promise<ParseResults[Job['purpose']] | Unreadable> | null {
    if (stopped) return Promise.resolve(STOPPING);
    let resolve: Waiting['resolve'] = () => {};
    const result = new Promise<ParseResults[Job['purpose']] | Unreadable>((settle) => {
      // Sound: the thread answers each job with the result of its purpose, in order.
      resolve = settle as Waiting['resolve'];
    });
    if (!queue.push({ job, origin, crashes: 0, resolve })) return null;
    next();
    return result;
  }

  start();
  return {
    parse,
    stop: async (): Promise<void> => {
      stopped = true;
      const current = thread;
      detach()?.resolve(STOPPING);
      for (const { resolve } of queue.clear()) resolve(STOPPING);
      await current?.terminate();
    },
  };
}
