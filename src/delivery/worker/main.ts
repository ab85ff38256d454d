import { performance } from 'node:perf_hooks';
import { parentPort, workerData } from 'node:worker_threads';
import { systemClock } from '../../core/clock.ts';
import { LOW_PRIORITY, lowerPriority } from '../../core/thread-priority.ts';
import { createSmtpClient } from './client.ts';
import { createSharedContents, runJob } from './job.ts';
import { type FromWorker, jobClassOf, type ToWorker, type WorkerSetup } from './protocol.ts';
import { createRunner } from './runner.ts';

/**
 * The program of a delivery worker: a thread that composes and signs messages and delivers them over SMTP. Its messages
 * are in protocol.ts. It has no access to the database, the queue or the events.
 */
const port = parentPort;
if (port === null) throw new Error('this is a worker thread of Postrider, not a program');

lowerPriority(LOW_PRIORITY);

// The type of what worker-pool.ts passes.
const setup = workerData as WorkerSetup;
const begun = new Int32Array(setup.begun);

const client = createSmtpClient({
  clock: systemClock,
  monotonic: { now: () => performance.now() },
  idleConnections: setup.idleConnections,
  authorities: setup.authorities,
});
const sharedContents = createSharedContents();
const send = (message: FromWorker) => port.postMessage(message);
const receive = createRunner(client, {
  begin: (job) => void Atomics.add(begun, jobClassOf(job), 1),
  run: (job) => runJob(job, client, sharedContents),
  send,
  exit: () => port.close(),
});
port.on('message', (message: ToWorker) => receive(message));
send({ kind: 'ready' });
