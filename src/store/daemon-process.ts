import { statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { LOCK_FILE } from './database/database.ts';

/*
 * Finds the daemon of a data directory without acquiring its lock: a daemon that starts at this moment must not find the
 * lock held. The kernel lists the locks of all processes (proc_locks(5)):
 * `7: POSIX  ADVISORY  WRITE 1234 08:01:131077 1073741824 1073742335`.
 */

const LOCKS = '/proc/locks';
const WRITE_LOCK = /^\d+: \S+\s+\S+\s+WRITE (-?\d+) [\da-f]+:[\da-f]+:(\d+) /;

/**
 * The process id of the daemon that holds the lock of `dir`; 0: its id is not visible here (another namespace); null: no
 * daemon holds it. Rejects where the kernel does not list its locks.
 */
export async function daemonProcess(dir: string): Promise<number | null> {
  const inode = statSync(join(dir, LOCK_FILE), { throwIfNoEntry: false })?.ino;
  if (inode === undefined) return null;
  for (const line of (await readFile(LOCKS, 'utf8')).split('\n')) {
    const [, pid, lockedInode] = WRITE_LOCK.exec(line) ?? [];
    if (Number(lockedInode) === inode) return Math.max(0, Number(pid));
  }
  return null;
}
