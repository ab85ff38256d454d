import type { AttemptReport, DeliveryJob, FromWorker, ToWorker } from './protocol.ts';

/**
 * The worker's own loop: starts jobs as they come, sends reports back in batches, and stops when told to.
 * Slots keep the number of jobs at once in bounds; that is the main thread's business, not checked here.
 */
export interface RunnerParts {
  /** Called before each job, in the order in which they came. */
  begin?(): void;
  /** Does a whole job; `null` = abandoned because of a stop. */
  run(job: DeliveryJob): Promise<AttemptReport | null>;
  send(message: FromWorker): void;
  /** A stop begins: connections at rest are of no more use. */
  closeIdle(): void;
  /** The grace is over: what still runs ends now. */
  abort(): void;
  /** All jobs are done: the connections may go. */
  finished(): Promise<void>;
  /** Called last, when everything has been said. */
  leave(): void;
}

/** Composing and signing block the thread, so replies that wait on sockets get their turn in between. */
const STARTS_PER_TURN = 4;

/** Takes messages from the main thread. */
export function createRunner(parts: RunnerParts): (message: ToWorker) => void {
  let waiting: (DeliveryJob | undefined)[] = [];
  let next = 0;
  let running = 0;
  let reports: AttemptReport[] = [];
  let stopping = false;

  const startSome = () => {
    for (let started = 0; started < STARTS_PER_TURN && next < waiting.length; started++) {
      const job = waiting[next];
      // Not kept until the last of its batch has begun.
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
    parts.begin?.();
    try {
      const report = await parts.run(job);
      if (report) submit(report);
    } catch (error) {
      // A fault of ours. Where the message was when it happened is not known, so nothing better can be said.
      const { id, slot } = job;
      parts.send({
        kind: 'fault',
        id,
        error: error instanceof Error ? (error.stack ?? error.message) : String(error),
      });
      submit({ id, slot, conclusion: 'unanswered', stage: 'dot', reply: null, sessions: [] });
    }
    running--;
    if (stopping && running === 0) await finish();
  };

  const submit = (report: AttemptReport) => {
    if (reports.push(report) === 1) setImmediate(sendReports);
  };
  const sendReports = () => {
    if (reports.length === 0) return;
    parts.send({ kind: 'reports', reports });
    reports = [];
  };

  const stop = async (graceMs: number) => {
    stopping = true;
    waiting = [];
    next = 0;
    parts.closeIdle();
    if (running === 0) await finish();
    else setTimeout(() => parts.abort(), graceMs).unref();
  };
  const finish = async () => {
    sendReports();
    await parts.finished();
    parts.send({ kind: 'stopped' });
    parts.leave();
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
