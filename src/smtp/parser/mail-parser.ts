import { Worker } from 'node:worker_threads';
import type { ReplyRule } from '../../config/reply-rules.ts';
import { SECOND } from '../../core/clock.ts';
import type { Log } from '../../core/log.ts';
import { createParseQueue, type JobOrigin } from './parse-queue.ts';
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
/** Pause before a thread that exited is replaced. */
const RESTART_DELAY_MS = SECOND;

/** Limit of the heap of a thread: many times what a mail of the largest size needs. */
const HEAP_LIMIT_MB = 512;

/** Starts a thread that runs `script`, by default the compiled thread.ts. */
export function startParserThread(script = new URL('./thread.js', import.meta.url)): Worker {
  return new Worker(script, { resourceLimits: { maxOldGenerationSizeMb: HEAP_LIMIT_MB } });
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

/**
 * Parses mails in a thread, one after the other and each within a time limit. A mail that ends two threads is unreadable;
 * the mails behind it go to the next thread. Callers and recipients share the thread fairly (parse-queue.ts), so a flood
 * delays no other sender by more than the mail in progress.
 *
 * Not piscina: its queue has no time per caller, and a task of a thread that exits fails. Not shared with store/readers/pool.ts, which runs one
 * read at a time on each of several threads and lets overdue reads end; only the event handlers of a thread are alike.
 *
 * Starts the thread immediately; `stop` terminates it, and mails that wait resolve as `stopping`. A thread that exits
 * is replaced after a second, one that exceeds the time limit without a pause.
 */
export function createMailParser(log: Log, options: MailParserOptions = {}) {
  const { startThread = () => startParserThread(), rules = () => NO_RULES, timeoutMs = TIMEOUT_MS } = options;
  const queue = createParseQueue<Waiting>(() => performance.now());
  /** The job in progress, and when it began. */
  let current: Waiting | null = null;
  let begunAt = 0;
  let thread: Worker | null = null;
  /** The rules that the thread has. */
  let threadRules = NO_RULES;
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;
  /** Whether the thread has started: the time of its first job begins then. */
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
    clearTimeout(timer);
    if (current !== null) {
      queue.charge(current.origin, performance.now() - begunAt);
      current.resolve(result);
    }
    current = null;
    next();
  }

  function next(): void {
    if (thread === null || current !== null) return;
    current = queue.take() ?? null;
    if (current === null) return;
    postRules(thread);
    thread.postMessage(current.job);
    restartTimer();
  }

  function postRules(to: Worker): void {
    const replyRules = rules();
    if (replyRules === threadRules || replyRules.length + threadRules.length === 0) return;
    threadRules = replyRules;
    const message: RulesMessage = { rules: replyRules };
    to.postMessage(message);
  }

  /** Starts the time limit of the job, or of the start of the thread. */
  function restartTimer(): void {
    clearTimeout(timer);
    begunAt = performance.now();
    if (current !== null) timer = setTimeout(timedOut, limitMs());
  }

  function limitMs(): number {
    return isReady ? timeoutMs : (options.timeoutMs ?? START_TIMEOUT_MS);
  }

  /** Returns the job in progress; those that wait are for the next thread. */
  function detach(): Waiting | null {
    clearTimeout(timer);
    const job = current;
    thread = null;
    current = null;
    return job;
  }

  /** A busy thread handles no messages, so it is terminated. */
  function timedOut(): void {
    const slow = thread;
    const job = detach();
    const caller = job?.origin.caller;
    log.error({ timeoutMs: limitMs(), purpose: job?.job.purpose, caller }, 'mail parser timed out');
    if (job !== null) queue.charge(job.origin, limitMs());
    job?.resolve({ unreadable: 'too-long' });
    void slow?.terminate();
    if (!stopped) start();
  }

  function onExit(): void {
    const job = detach();
    if (job !== null && ++job.crashes < 2) queue.putBack(job);
    else job?.resolve({ unreadable: 'failed' });
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
      const last = thread;
      detach()?.resolve(STOPPING);
      for (const { resolve } of queue.clear()) resolve(STOPPING);
      await last?.terminate();
    },
  };
}
