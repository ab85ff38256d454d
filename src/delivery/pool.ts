import { Worker } from 'node:worker_threads';
import type { Log } from '../core/log.ts';
import type { AttemptReport, DeliveryJob, FromWorker, ToWorker } from './worker/protocol.ts';

/**
 * The worker threads. A connection slot keeps to one worker. When a worker dies, what it held is reported as
 * lost, so that each message is judged like any other whose connection broke, and a new worker takes its
 * place.
 */
export interface Pool {
  send(worker: number, job: DeliveryJob): void;
  /** Lets the workers finish what is under way, `graceMs` at most. */
  stop(graceMs: number): Promise<void>;
}

export interface PoolSettings {
  script: URL;
  workers: number;
  log: Log;
  onReports(reports: AttemptReport[]): void;
  /** The worker died with these under way. */
  onLost(jobs: DeliveryJob[]): void;
}

/** A worker that dies at start is not started again in a tight loop. */
const RESTART_MS = 1000;

interface Hand {
  thread: Worker;
  held: Map<number, DeliveryJob>;
  outbox: DeliveryJob[];
  flushing: boolean;
}

export function createPool(settings: PoolSettings): Pool {
  const { log } = settings;
  let stopping = false;
  const hands = Array.from({ length: settings.workers }, (_, index) => start(index, new Map()));

  function start(index: number, held: Map<number, DeliveryJob>): Hand {
    const thread = new Worker(settings.script);
    const hand: Hand = { thread, held, outbox: [], flushing: false };
    thread.on('message', (message: FromWorker) => receive(hand, message));
    thread.on('error', (error) => log.error({ err: error, worker: index }, 'a delivery worker failed'));
    thread.on('exit', () => {
      if (!stopping) replace(index, hand);
    });
    return hand;
  }

  function receive(hand: Hand, message: FromWorker): void {
    if (message.kind === 'fault')
      log.error({ message: message.id, fault: message.error }, 'a delivery worker erred in one message');
    if (message.kind !== 'reports') return;
    for (const report of message.reports) hand.held.delete(report.id);
    settings.onReports(message.reports);
  }

  function replace(index: number, dead: Hand): void {
    const lost = [...dead.held.values()];
    log.error({ worker: index, messages: lost.length }, 'a delivery worker ended; starting another');
    setTimeout(() => {
      if (stopping) return;
      hands[index] = start(index, new Map());
      settings.onLost(lost);
    }, RESTART_MS).unref();
  }

  /** Jobs that are sent in the same turn of the event loop travel together. */
  function flush(hand: Hand): void {
    hand.flushing = false;
    const message: ToWorker = { kind: 'jobs', jobs: hand.outbox };
    hand.outbox = [];
    hand.thread.postMessage(message);
  }

  return {
    send: (worker, job) => {
      const hand = hands[worker % hands.length];
      if (hand === undefined) throw new Error('the pool has no workers');
      hand.held.set(job.id, job);
      hand.outbox.push(job);
      if (hand.flushing) return;
      hand.flushing = true;
      setImmediate(flush, hand);
    },
    stop: async (graceMs) => {
      stopping = true;
      await Promise.all(
        hands.map(async ({ thread }) => {
          const ended = new Promise<void>((resolve) => thread.once('exit', () => resolve()));
          const stop: ToWorker = { kind: 'stop', graceMs };
          thread.postMessage(stop);
          const timer = setTimeout(() => void thread.terminate(), graceMs + 2000);
          await ended;
          clearTimeout(timer);
        }),
      );
    },
  };
}
