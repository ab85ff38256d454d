import { fdatasyncSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';

/**
 * The program of the thread that flushes the write-ahead log: one fdatasync for each message, one answer for
 * each fdatasync. It depends on nothing else, so that nothing else can delay it.
 */
export type FlushResult = { kind: 'flushed' } | { kind: 'failed'; code: string | undefined; message: string };

const port = parentPort;
if (port === null) throw new Error('flush-thread runs as a worker thread only');
const { fd }: { fd: number } = workerData;

port.on('message', () => port.postMessage(flush()));

function flush(): FlushResult {
  try {
    fdatasyncSync(fd);
    return { kind: 'flushed' };
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : undefined;
    return { kind: 'failed', code, message: error instanceof Error ? error.message : String(error) };
  }
}
