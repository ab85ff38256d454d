import { parentPort, workerData } from 'node:worker_threads';
import { StoreFault } from '../database/failure.ts';
import { type ThreadMessage, type ThreadRequest, upgradeDatabase } from './upgrade.ts';

/* The program of the thread that migrates a database while the main thread reports progress and handles signals. */

class Stopped extends Error {}

const port = parentPort;
if (port === null) throw new Error('migration-thread runs as a worker thread only');
const { dir, migrations, stop }: ThreadRequest = workerData;
const send = (message: ThreadMessage) => port.postMessage(message);

try {
  const result = upgradeDatabase(dir, {
    migrations,
    onEstimate: (estimate) => send({ kind: 'estimate', estimate }),
    onProgress: (progress) => {
      send({ kind: 'progress', progress });
      // When the old file has its second name, only the last rename is left.
      const isEnding = progress.step === 'linked' || progress.step === 'renamed';
      if (Atomics.load(stop, 0) !== 0 && !isEnding) throw new Stopped('stopped');
    },
  });
  send({ kind: 'done', result });
} catch (error) {
  if (error instanceof Stopped) send({ kind: 'stopped' });
  else {
    const code = error instanceof Error && 'code' in error ? String(error.code) : undefined;
    const message = error instanceof Error ? error.message : String(error);
    send({ kind: 'failed', message, code, isFault: error instanceof StoreFault });
  }
}
