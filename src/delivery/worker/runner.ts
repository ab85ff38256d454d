import type { AttemptReport, DeliveryJob, FromWorker, ToWorker } from './protocol.ts';

/**
 * Runs the jobs of a worker: starts them as they arrive, sends reports in batches, and stops on request. The main thread
 * bounds the number of concurrent jobs by its slots.
 */
export interface RunnerDeps {
  /** Called before each job, in the order in which they arrived. */
  begin?(): void;
  /** Runs a job; null: a stop aborted it before any host could have accepted the message. */
  run(job: DeliveryJob): Promise<AttemptReport | null>;
  send(message: FromWorker): void;
  /** A stop begins: closes the idle connections. */
  closeIdle(): void;
  /** The grace period is over: ends the jobs that are still running. */
  abort(): void;
  /** All jobs have ended: closes the connections. */
  finished(): Promise<void>;
  /** Called last, after all messages were sent. */
  exit(): void;
}

/** Composing and signing block the thread; between turns it reads replies from sockets. */
const STARTS_PER_TURN = 4;

/** Returns the handler of messages from the main thread. */
export function createRunner(deps: RunnerDeps): (message: ToWorker) => void {
  let waiting: (DeliveryJob | undefined)[] = [];
  let next = 0;
  let running = 0;
  let reports: AttemptReport[] = [];
  let stopping = false;

  const startSome = () => {
    for (let started = 0; started < STARTS_PER_TURN && next < waiting.length; started++) {
      const job = waiting[next];
      // Drops the reference: a job can be freed before the last one of its batch has begun.
      waiting[next++] = undefined;
      if (job) void start(job);
    }
    if (next < waiting.length) setImmediate(startSome);
    else {
      waiting = [];
      next = 0;
    }
  };

  const start = async (job: DeliveryJob) => {
    running++;
    deps.begin?.();
    try {
      const report = await deps.run(job);
      if (report) submit(report);
    } catch (error) {
      // An internal error: the message may have been sent.
      const { id, slot } = job;
      deps.send({
        kind: 'fault',
        id,
        error: error instanceof Error ? (error.stack ?? error.message) : String(error),
      });
      submit({ id, slot, conclusion: 'unanswered', phase: 'dot', reply: null, sessions: [] });
    }
    running--;
    if (stopping && running === 0) await finish();
  };

  const submit = (report: AttemptReport) => {
    if (reports.push(report) === 1) setImmediate(sendReports);
  };
  const sendReports = () => {
    if (reports.length === 0) return;
    deps.send({ kind: 'reports', reports });
    reports = [];
  };

  const stop = async (graceMs: number) => {
    stopping = true;
    waiting = [];
    next = 0;
    deps.closeIdle();
    if (running === 0) await finish();
    else setTimeout(() => deps.abort(), graceMs).unref();
  };
  const finish = async () => {
    sendReports();
    await deps.finished();
    deps.send({ kind: 'stopped' });
    deps.exit();
  };

  return (message) => {
    if (message.kind === 'stop') void stop(message.graceMs);
    else if (!stopping) {
      const idle = waiting.length === 0;
      waiting.push(...message.jobs);
      if (idle) startSome();
    }
  };
}
