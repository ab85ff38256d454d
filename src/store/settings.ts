import { cachedLookup } from './cached-rows.ts';
import type { Database } from './database/database.ts';
import { statements } from './database/statements.ts';

/** Values about this database, by name. */
export function settingsTable(db: Database) {
  const sql = statements(db);
  const get = db.prepare<[string], { value: string }>('SELECT value FROM settings WHERE name = ?');
  const put = sql.run<[string, string]>(
    'INSERT INTO settings (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value',
  );
  const valueOf = cachedLookup(db, (name: string) => get.get(name)?.value ?? null);
  const retries = (): number => Number(valueOf('queue-retries') ?? 0);
  const generation = (): number => Number(valueOf('generation') ?? 0);
  return {
    get: (name: string): string | null => valueOf(name),
    put: (name: string, value: string): void => put(name, value),
    remove: sql.run<[name: string]>('DELETE FROM settings WHERE name = ?'),
    /** How often the operator has retried queued mail: a change notifies the daemon, also when a command did it. */
    retries,
    /** Increments `retries`. Only in a unit of work. */
    countRetry: (): void => put('queue-retries', String(retries() + 1)),
    /** The generation of the last start of a daemon; 0: none has started. */
    generation,
    /** Increments the generation, to `atLeast` if that is higher, and returns it. Only in a unit of work. */
    raiseGeneration: (atLeast = 0): number => {
      const next = Math.max(generation() + 1, atLeast);
      put('generation', String(next));
      return next;
    },
  };
}
