import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../core/log.ts';
import type { Writer } from '../store/writer.ts';
import { searchKeys } from './search-key.ts';

/**
 * Adds contacts to the search index that were stored before there was one, in small units of work with pauses. Until it
 * is through with an account, searches there find beginnings only.
 */
export interface SearchFill {
  start(): void;
  stop(): Promise<void>;
}

/** Contacts in a unit of work: some 20 ms. */
const BATCH_SIZE = 200;

export function createSearchFill({ writer, log }: { writer: Writer; log: Log }): SearchFill {
  const stopping = new AbortController();
  let running: Promise<void> = Promise.resolve();

  async function fill(): Promise<void> {
    let count = 0;
    while (!stopping.signal.aborted) {
      const began = performance.now();
      const added = await writer.run((all) => {
        const contacts = all.contacts.unindexed(BATCH_SIZE);
        for (const contact of contacts) {
          const { search_text } = searchKeys(contact);
          all.contacts.addToIndex({ ...contact, search_text });
        }
        return contacts.length;
      });
      count += added;
      if (added === 0) break;
      await sleep(performance.now() - began);
    }
    if (count > 0) log.info({ contacts: count }, 'contacts added to the search index');
  }

  return {
    start: () => {
      running = fill().catch((error: unknown) =>
        log.error(
          { err: error },
          'contacts could not be added to the search index; the next start continues',
        ),
      );
    },
    stop: async () => {
      stopping.abort();
      await running;
    },
  };
}
