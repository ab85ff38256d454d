import type { ReadQuery } from '../../../src/store/readers/reads.ts';
import type { Tables } from '../../../src/store/tables.ts';
import { builtThread } from '../../support/built-thread.ts';

/** Queries that only tests run, in reader threads. `run` refers to nothing outside itself: threads get its source text. */
function probe<Args extends unknown[], Result>(
  name: string,
  run: (tables: Tables, ...args: Args) => Result,
): ReadQuery<Args, Result> {
  return { name, run };
}

/** Reads in a loop until its budget ends it. */
export const endless = probe('endless', (tables: Tables): number => {
  for (let reads = 0; ; reads++) if (tables.accounts.get('acct_one') === null) return reads;
});

/** Reads, sets index 0 to 1, and does not end its read transaction until index 1 is 1. */
export const held = probe('held', (tables: Tables, flags: Int32Array): string | undefined => {
  const account = tables.accounts.get('acct_one');
  Atomics.store(flags, 0, 1);
  Atomics.notify(flags, 0);
  Atomics.wait(flags, 1, 0);
  return account?.name;
});

/** Ends its thread. */
export const deadly = probe('deadly', (): never => process.exit(7));

export const failing = probe('failing', (): never => {
  throw Object.assign(new Error('no such table: nothing'), { code: 'SQLITE_ERROR' });
});

/** Writes, which a read-only connection rejects. */
export const writing = probe('writing', (tables: Tables): void =>
  tables.settings.put('written', 'by a reader'),
);

/** The program of a reader thread with these queries. */
export function probeThread(): URL {
  const queries = [endless, held, deadly, failing, writing].map(
    ({ name, run }) => `{ name: ${JSON.stringify(name)}, run: ${run.toString()} }`,
  );
  const reads = JSON.stringify(builtThread('store/readers/thread.ts').href);
  return builtThread(
    'store/readers/thread.ts',
    `const { serveReads } = await import(${reads});\nserveReads([${queries.join(', ')}]);`,
  );
}
