import { openConnection } from '../../src/store/database/connection.ts';

const METHODS = ['run', 'get', 'all'] as const;
type Execute = (this: { source: string }, ...values: unknown[]) => unknown;

/** Calls `observe` with the text of every statement that is executed in this process; returns a function that ends it. */
export function countExecutions(observe: (sql: string) => void): () => void {
  const db = openConnection(':memory:', {});
  // All statements share it.
  const shared: Record<(typeof METHODS)[number], Execute> = Object.getPrototypeOf(db.prepare('SELECT 1'));
  const originals = { run: shared.run, get: shared.get, all: shared.all };
  for (const name of METHODS) {
    const original = shared[name];
    shared[name] = function execute(this: { source: string }, ...values: unknown[]) {
      observe(this.source.replace(/\s+/g, ' ').trim());
      return original.apply(this, values);
    };
  }
  return () => {
    Object.assign(shared, originals);
    db.close();
  };
}
