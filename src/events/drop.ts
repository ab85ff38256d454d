import type { Tables } from '../store/tables.ts';
import type { Recorder } from './record.ts';

/** Most that one unit of work drops: a domain may have a million messages waiting. */
const AT_ONCE = 1000;

/**
 * Drops queued mail of a domain that is being deleted, in the same unit of work. What is beyond the bound is
 * dropped by delivery when it comes up, because its domain is gone. Messages that a worker holds at this
 * moment are already leaving.
 */
export function dropQueued(recorder: Recorder, tables: Tables, domainId: string): number {
  let dropped = 0;
  for (const seq of tables.queue.ofDomain(domainId, AT_ONCE)) {
    const message = tables.messages.bySeq(seq);
    if (message === null || tables.queue.get(seq)?.lease !== null) continue;
    if (recorder.message(tables, message, 'email_failed', { fields: { reason: 'domain_deleted' } }))
      dropped++;
  }
  return dropped;
}
