import { fdatasyncSync, readSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import Sqlite from 'better-sqlite3';

/*
 * The program of the two threads of the write-ahead log: one flushes, the other runs checkpoints, so that a flush never
 * waits for a checkpoint. Each request gets one result.
 */

/** A request to one of the threads. */
export type LogRequest =
  /** One fdatasync. `isLong` of the result: the log has `dueAt` frames, so that a checkpoint is due. */
  | { kind: 'flush'; dueAt: number }
  /** Copies the log into the database, except for frames that a reader still needs. */
  | { kind: 'checkpoint' };

export type LogResult =
  | { kind: 'flushed'; isLong: boolean }
  /** `frames`: number in the log; `copied`: number of them that are in the database. */
  | { kind: 'checkpointed'; frames: number; copied: number }
  | { kind: 'failed'; code: string | undefined; message: string };

export interface LogThreadData {
  /** The log, open for reading. */
  fd: number;
  /** The database. */
  file: string;
}

/** https://sqlite.org/fileformat2.html §4.1: the header of the log and of a frame, and where their salts are. */
const HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;
const PAGE_SIZE_AT = 8;
const HEADER_SALTS = [16, 24] as const;
const FRAME_SALTS = [8, 16] as const;

const port = parentPort;
if (port === null) throw new Error('flush-thread runs as a worker thread only');
const { fd, file }: LogThreadData = workerData;

/** Opened at the first checkpoint, and never collected before the thread ends. */
let db: Sqlite.Database | null = null;
let checkpoint: Sqlite.Statement<[], { log: number; checkpointed: number }> | null = null;

port.on('message', (request: LogRequest) => port.postMessage(run(request)));

function run(request: LogRequest): LogResult {
  try {
    if (request.kind === 'checkpoint') return runCheckpoint();
    fdatasyncSync(fd);
    return { kind: 'flushed', isLong: hasFrame(request.dueAt) };
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : undefined;
    return { kind: 'failed', code, message: error instanceof Error ? error.message : String(error) };
  }
}

/** Whether the log has at least `number` frames. Frames from before its last restart have other salts. */
function hasFrame(number: number): boolean {
  const header = Buffer.alloc(HEADER_BYTES);
  if (readSync(fd, header, 0, HEADER_BYTES, 0) < HEADER_BYTES) return false;
  const frame = Buffer.alloc(FRAME_HEADER_BYTES);
  const at = HEADER_BYTES + (number - 1) * (FRAME_HEADER_BYTES + header.readUInt32BE(PAGE_SIZE_AT));
  if (readSync(fd, frame, 0, FRAME_HEADER_BYTES, at) < FRAME_HEADER_BYTES) return false;
  return frame.subarray(...FRAME_SALTS).equals(header.subarray(...HEADER_SALTS));
}

function runCheckpoint(): LogResult {
  db ??= new Sqlite(file, { timeout: 0, fileMustExist: true });
  checkpoint ??= db.prepare('PRAGMA wal_checkpoint(PASSIVE)');
  const { log, checkpointed } = checkpoint.get() ?? { log: -1, checkpointed: -1 };
  return { kind: 'checkpointed', frames: log, copied: checkpointed };
}
