import { closeSync, fdatasync, openSync } from 'node:fs';
import type { Database } from './database.ts';

/**
 * Flushes the database's write-ahead log without holding up the event loop. SQLite's own way is to wait for the
 * disk inside the COMMIT, a millisecond or more in which nobody is served. With `synchronous = NORMAL` it leaves
 * that flush to us, and goes on flushing log and file around each checkpoint, so that the file is sound at any
 * moment (https://sqlite.org/wal.html, "Performance Considerations"). A commit is on disk when the `flush` that
 * began after it has ended.
 */
export interface WriteAheadLog {
  /** Rejects when the disk does not take it. One at a time. */
  flush(): Promise<void>;
  /** Before the database is closed. */
  close(): void;
}

/** For the connection that writes; the log is there for as long as any connection is open. */
export function openWriteAheadLog(db: Database): WriteAheadLog {
  db.exec('PRAGMA synchronous = NORMAL');
  // SQLite's locks are on the other two files: closing this one drops none of them.
  const fd = openSync(`${db.name}-wal`, 'r');
  return {
    flush: () =>
      new Promise((resolve, reject) => {
        fdatasync(fd, (error) => (error === null ? resolve() : reject(error)));
      }),
    close: () => closeSync(fd),
  };
}
