import { existsSync, fdatasyncSync, openSync, rmSync, statSync } from 'node:fs';
import { openConnection, readNumber } from '../database/connection.ts';
import type { CopyTask } from './copy.ts';
import { createThrottle, serveTasks } from './thread.ts';

/*
 * The program of a thread that copies a database in use, see copy.ts. The thread ends after the copy, before the object
 * of SQLite's backup API can be collected (see connection.ts).
 */

/** Pages of 4 KiB in one step. */
const STEP_PAGES = 256;
/**
 * The copy is flushed each time it has grown by this: a flush of all of it at the end would delay the flushes of the
 * write-ahead log, and with them every response.
 */
const FLUSH_BYTES = 8 * 2 ** 20;
/** Growth of the write-ahead log, as a share of `maxLogBytes`, above which the copy is not throttled. */
const UNTHROTTLED_SHARE = 1 / 4;
/** How long opening waits for a lock of another process. */
const LOCK_TIMEOUT_MS = 5000;

serveTasks(async (task) => {
  if (task.kind !== 'copy') throw new Error(`this thread has no task ${task.kind}`);
  await copy(task);
  return { kind: 'copied' };
});

/**
 * Copies one state of the database. The read transaction lasts until the end: otherwise each commit of another
 * connection would restart the copy.
 */
async function copy({ file, to, maxLogBytes }: CopyTask): Promise<void> {
  const source = openConnection(file, { readonly: true, fileMustExist: true, timeout: LOCK_TIMEOUT_MS });
  source.exec('BEGIN');
  readNumber(source, 'SELECT count(*) FROM sqlite_schema');
  const pageBytes = readNumber(source, 'PRAGMA page_size');
  const log = `${file}-wal`;
  const logBytes = () => (existsSync(log) ? statSync(log).size : 0);
  const logBefore = logBytes();
  const throttle = createThrottle();
  /** The copy, open until the thread ends; null: it does not exist yet. */
  let copied: number | null = null;
  let flushed = 0;
  try {
    await source.backup(to, {
      progress: ({ totalPages, remainingPages }) => {
        const logGrowth = logBytes() - logBefore;
        const done = (totalPages - remainingPages) * pageBytes;
        if (done - flushed >= FLUSH_BYTES) {
          copied ??= openSync(to, 'r');
          fdatasyncSync(copied);
          flushed = done;
        }
        const isThrottled = logGrowth <= maxLogBytes * UNTHROTTLED_SHARE;
        throttle({ done, total: totalPages * pageBytes, logGrowth }, isThrottled);
        return STEP_PAGES;
      },
    });
  } catch (error) {
    rmSync(to, { force: true });
    throw error;
  }
}
