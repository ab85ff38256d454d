import { fdatasyncSync, readSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import Sqlite from 'better-sqlite3';

/**
 * The program of the thread that keeps the write-ahead log: one fdatasync for each `flush`, one checkpoint for each
 * `checkpoint`, one result for each of both. It does nothing else, so that nothing else can delay it.
 */
export type LogRequest = 'flush' | 'checkpoint';

export type LogResult =
  /** `isLong`: a checkpoint is due. */
  | { kind: 'flushed'; isLong: boolean }
  /** `isComplete`: the whole log was copied. */
  | { kind: 'checkpointed'; isComplete: boolean }
  | { kind: 'failed'; code: string | undefined; message: string };

export interface LogThreadData {
  /** The log, open for reading. */
  fd: number;
  /** The database. */
  file: string;
}

/** SQLite's own value for automatic checkpoints: about 4 MB. */
const CHECKPOINT_FRAMES = 1000;
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
/** Frames in the log at which the next checkpoint is due. */
let dueAt = CHECKPOINT_FRAMES;

port.on('message', (request: LogRequest) => port.postMessage(answer(request)));

function answer(request: LogRequest): LogResult {
  try {
    if (request === 'checkpoint') {
      return { kind: 'checkpointed', isComplete: runCheckpoint() };
    }
    fdatasyncSync(fd);
    return { kind: 'flushed', isLong: hasFrame(dueAt) };
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : undefined;
    return { kind: 'failed', code, message: error instanceof Error ? error.message : String(error) };
  }
}

/** Whether the log has so many frames. Those of before its last restart have other salts. */
function hasFrame(number: number): boolean {
  const header = Buffer.alloc(HEADER_BYTES);
  if (readSync(fd, header, 0, HEADER_BYTES, 0) < HEADER_BYTES) return false;
  const frame = Buffer.alloc(FRAME_HEADER_BYTES);
  const at = HEADER_BYTES + (number - 1) * (FRAME_HEADER_BYTES + header.readUInt32BE(PAGE_SIZE_AT));
  if (readSync(fd, frame, 0, FRAME_HEADER_BYTES, at) < FRAME_HEADER_BYTES) return false;
  return frame.subarray(...FRAME_SALTS).equals(header.subarray(...HEADER_SALTS));
}

/**
 * Copies the log into the database. What a reader still needs of it is left for the next time. Returns whether that is
 * nothing.
 */
function runCheckpoint(): boolean {
  // One that fails is not repeated before the log has grown.
  const failedAt = dueAt;
  dueAt += CHECKPOINT_FRAMES;
  db ??= new Sqlite(file, { timeout: 0, fileMustExist: true });
  checkpoint ??= db.prepare('PRAGMA wal_checkpoint(PASSIVE)');
  const done = checkpoint.get();
  if (done === undefined || done.log < 0) return true;
  const isComplete = done.checkpointed >= done.log;
  dueAt = isComplete ? CHECKPOINT_FRAMES : Math.max(failedAt, done.log) + CHECKPOINT_FRAMES;
  return isComplete;
}
