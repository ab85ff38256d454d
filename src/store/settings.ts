import type { Database } from './database.ts';

/** Values about this database, by name. */
export function settingsTable(db: Database) {
  const get = db.prepare<[string], { value: string }>('SELECT value FROM settings WHERE name = ?');
  const put = db.prepare(
    'INSERT INTO settings (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value',
  );
  return {
    get: (name: string): string | null => get.get(name)?.value ?? null,
    put: (name: string, value: string): void => {
      put.run(name, value);
    },
    /** Increments and returns the daemon's generation number. Only in a unit of work. */
    nextGeneration: (): number => {
      const generation = Number(get.get('generation')?.value ?? 0) + 1;
      put.run('generation', String(generation));
      return generation;
    },
  };
}
