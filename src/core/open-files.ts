import { readFileSync } from 'node:fs';
import { OperatorFault } from './operator-fault.ts';

/** Fewer than this are not sufficient for the listeners, the database, the threads and one session of each kind: 80 are used when idle. */
const MIN_OPEN_FILES = 256;

/**
 * Throws an OperatorFault when the process may open too few files: it would start, and then close every connection without a
 * message, because accepting it fails.
 */
export function requireOpenFiles(limit: number | null): void {
  if (limit === null || limit >= MIN_OPEN_FILES) return;
  throw new OperatorFault(
    `This process may have ${limit} open files, and needs ${MIN_OPEN_FILES} or more: set LimitNOFILE=65536 in the systemd unit (systemctl edit postrider), or run "ulimit -n 65536" first`,
  );
}

/** The soft limit of open files (proc(5)); null where the system reports none. */
export function openFilesLimit(file = '/proc/self/limits'): number | null {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch {
    // Only Linux has this file; elsewhere the default is used.
    return null;
  }
  const limit = Number(/^Max open files\s+(\d+)/m.exec(text)?.[1] ?? 'unlimited');
  return Number.isSafeInteger(limit) ? limit : null;
}
