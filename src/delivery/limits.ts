import { readFileSync } from 'node:fs';

/** Sessions at once when the operator names no number, and the process has the file descriptors for them. */
const USUAL_CONNECTIONS = 500;
/** Of the descriptors, those that listeners and the database keep. */
const OTHER_FILES = 64;
/** As many connections may be idle as are in use, and the listeners need as many again. */
const FILES_PER_CONNECTION = 4;

/** The default of `delivery.connections`. */
export function defaultConnections(files: number | null): number {
  if (files === null) return USUAL_CONNECTIONS;
  const affordable = Math.floor((files - OTHER_FILES) / FILES_PER_CONNECTION);
  return Math.min(USUAL_CONNECTIONS, Math.max(1, affordable));
}

/** The soft limit of open files (proc(5)); null where the system does not say, or sets none. */
export function openFilesLimit(file = '/proc/self/limits'): number | null {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch {
    // Only Linux has it; elsewhere the usual number will do.
    return null;
  }
  const limit = Number(/^Max open files\s+(\d+)/m.exec(text)?.[1] ?? 'unlimited');
  return Number.isSafeInteger(limit) ? limit : null;
}
