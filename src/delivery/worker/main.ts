import { performance } from 'node:perf_hooks';
import { parentPort, workerData } from 'node:worker_threads';
import { systemClock } from '../../core/clock.ts';
import { createClient } from './client.ts';
import { runJob } from './job.ts';
import { STANDARD_LIMITS } from './limits.ts';
import type { FromWorker, ToWorker, WorkerSetup } from './protocol.ts';
import { createRunner } from './runner.ts';
import { createSharedContents } from './shared-contents.ts';
import { dialTcp } from './wire.ts';

/**
 * The delivery worker: a thread that composes, signs and speaks SMTP. What it is told and what it tells is in
 * protocol.ts; it knows nothing of the database, the queue or the events, and holds no state worth keeping.
 */
const port = parentPort;
if (port === null) throw new Error('this is a worker thread of postrider, not a program');

// Written by the pool, which starts this thread.
const setup = workerData as WorkerSetup;
const begun = new Int32Array(setup.begun);

const client = createClient({
  clock: systemClock,
  monotonic: { now: () => performance.now() },
  dial: dialTcp,
  limits: STANDARD_LIMITS,
  restingConnections: setup.restingConnections,
});
const sharedContents = createSharedContents();
const send = (message: FromWorker) => port.postMessage(message);
const receive = createRunner({
  begin: () => void Atomics.add(begun, 0, 1),
  run: (job) => runJob(job, client, sharedContents),
  send,
  closeIdle: () => client.slots.closeAll(),
  abort: () => client.abort(),
  finished: () => client.close(),
  leave: () => port.close(),
});
port.on('message', (message: ToWorker) => receive(message));
send({ kind: 'ready' });
