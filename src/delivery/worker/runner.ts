import { createFairQueue } from '../../core/concurrency/fair-queue.ts';
import type { Client } from './client.ts';
import {
  type AttemptReport,
  type DeliveryJob,
  type FromWorker,
  jobClassOf,
  type ToWorker,
} from './protocol.ts';

interface RunnerOptions {
  /** Called before each job begins; for jobs of one class, in the order in which they arrived. */
  begin?(job: DeliveryJob): void;
  /** Runs a job; null: a stop aborted it before any host could have accepted the message. */
  run(job: DeliveryJob): Promise<AttemptReport | null>;
  send(message: FromWorker): void;
  /** Called last, after all messages were sent. */
  exit(): void;
}

/** Composing and signing block the thread; between turns it reads replies from sockets. */
const STARTS_PER_TURN = 4;
/** A turn starts no further job once its jobs have this much content, bytes: decoding a megabyte takes milliseconds. */
const MAX_TURN_BYTES = 64 * 1024;

/**
 * Runs the jobs of a worker: starts them as they arrive, sends reports in batches, and stops on request: idle connections
 * are closed then, and jobs that are still running after the grace period are aborted. The main thread bounds the number of
 * concurrent jobs by its slots. Returns the handler of messages from the main thread.
 */
export function createRunner(
  client: Pick<Client, 'idle' | 'abort' | 'close'>,
  { begin, run, send, exit }: RunnerOptions,
): (message: ToWorker) => void {
  /** Jobs that have not begun, by class. */
  const waiting = createFairQueue<DeliveryJob>();
  let running = 0;
  let reports: AttemptReport[] = [];
  let stopping = false;

  const startSome = () => {
    let bytes = 0;
    for (let started = 0; started < STARTS_PER_TURN && bytes < MAX_TURN_BYTES; started++) {
      const job = waiting.take(Number)?.item;
      if (job === undefined) break;
      bytes += job.content.size + (job.shared?.size ?? 0);
      void start(job);
    }
    if (waiting.size > 0) setImmediate(startSome);
  };

  const start = async (job: DeliveryJob) => {
    running++;
    begin?.(job);
    try {
      const report = await run(job);
      if (report) submit(report);
    } catch (error) {
      // An internal error: the message may have been sent.
      const { id } = job;
      const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
      send({ kind: 'fault', id, error: text });
      submit({ id, conclusion: 'unanswered', phase: 'dot', reply: null, sessions: [] });
    }
    running--;
    if (stopping && running === 0) await finish();
  };

  const submit = (report: AttemptReport) => {
    if (reports.push(report) === 1) setImmediate(sendReports);
  };
  const sendReports = () => {
    if (reports.length === 0) return;
    send({ kind: 'reports', reports });
    reports = [];
  };

  const stop = async (graceMs: number) => {
    stopping = true;
    waiting.clear();
    client.idle.closeAll();
    if (running === 0) await finish();
    else setTimeout(() => client.abort(), graceMs).unref();
  };
  const finish = async () => {
    sendReports();
    await client.close();
    send({ kind: 'stopped' });
    exit();
  };

  return (message) => {
    if (message.kind === 'stop') void stop(message.graceMs);
    else if (!stopping) {
      const isIdle = waiting.size === 0;
      for (const job of message.jobs) waiting.push(String(jobClassOf(job)), job);
      if (isIdle) startSome();
    }
  };
}
