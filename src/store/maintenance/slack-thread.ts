import { parentPort, workerData } from 'node:worker_threads';
import { openSlackCleaner } from './slack.ts';

/* The program of the thread that clears unused space while the daemon runs, see slack.ts. */

/** A request to the thread. */
export type SlackRequest = { kind: 'begin' } | { kind: 'clear'; fromPage: number } | { kind: 'end' };

export interface SlackThreadData {
  /** The database. */
  file: string;
  /** File descriptor of the database, open for reading and writing. */
  fd: number;
}

const port = parentPort;
if (port === null) throw new Error('slack-thread runs as a worker thread only');
const { file, fd }: SlackThreadData = workerData;
const cleaner = openSlackCleaner(file, fd);

port.on('message', (request: SlackRequest) => {
  if (request.kind === 'clear') port.postMessage(cleaner.clear(request.fromPage));
  else port.postMessage(request.kind === 'begin' ? cleaner.begin() : cleaner.end());
});
