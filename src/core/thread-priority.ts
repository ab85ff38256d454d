import { getPriority, setPriority } from 'node:os';

/** Of threads that copy and check the database: everything else runs first. */
export const LOWEST_PRIORITY = 10;
/**
 * Of threads that work as long as an account or a stranger gives them work (parsing, composing): the thread of the event loop,
 * for which all accounts wait, gets three times as much of a processor that both want.
 */
export const LOW_PRIORITY = 5;

/**
 * Lowers the priority of this thread, on Linux of no other one, to a nice value. Optional: the service manager may forbid
 * it, and a process that is already slower may not become faster.
 */
export function lowerPriority(nice: number): void {
  try {
    if (getPriority() < nice) setPriority(nice);
  } catch {
    // The thread takes more time from others.
  }
}
