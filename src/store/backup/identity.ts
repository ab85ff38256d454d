import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openingFault, StoreFault } from '../database/failure.ts';
import { syncPath } from '../migrate/files.ts';
import type { Tables } from '../tables.ts';

/*
 * Which installation a database belongs to, and whether it is in its own data directory. A daemon that starts on a copy
 * would send again what the original has sent since. Therefore a copy must be restored first:
 *
 * - The database and the file `location` in the data directory contain the same random id. A database that was copied
 *   into another directory does not find its id there.
 * - A backup contains the setting `copy`, which the restore removes.
 * - The instance id is that of the installation and of all its copies. Of two daemons with one instance id, the one
 *   with the higher generation took over from the other.
 */

/** The identity of a database. */
export interface Instance {
  /** UUID. */
  instanceId: string;
  /** Increased by each start; a restore sets it to the time in epoch ms. */
  generation: number;
}

export const LOCATION_FILE = 'location';
export const INSTANCE = 'instance-id';
const LOCATION = 'location';
export const GENERATION = 'generation';
const COPY = 'copy';

/** Null: no daemon has started on this database. */
export function instanceIn({ settings }: Pick<Tables, 'settings'>): Instance | null {
  const instanceId = settings.get(INSTANCE);
  return instanceId === null ? null : { instanceId, generation: settings.generation() };
}

/** In a unit of work: marks the database as a copy that no daemon may start on. */
export function markAsCopy({ settings }: Pick<Tables, 'settings'>): void {
  settings.put(COPY, 'not restored');
}

/** Whether the database is a copy on which `restore` has not been completed. */
export function isCopy({ settings }: Pick<Tables, 'settings'>): boolean {
  return settings.get(COPY) !== null;
}

/** Throws StoreFault when the database is a copy that was not restored. */
export function requireOriginal(tables: Pick<Tables, 'settings'>, dir: string): void {
  const { settings } = tables;
  const remedy = `its messages may have been sent by the original since. Run "postrider restore hold", which holds them until you release them`;
  if (isCopy(tables))
    throw new StoreFault(`The database in ${dir} is a copy that was not restored: ${remedy}`);
  const location = settings.get(LOCATION);
  if (location !== null && location !== readLocation(dir))
    throw new StoreFault(
      `The database in ${dir} was copied from another data directory (${LOCATION_FILE} does not match): ${remedy}. If you moved the directory, move its file ${LOCATION_FILE}, too`,
    );
}

/** The id in the location file of a data directory, which is created if it does not exist. Flushed to disk. */
export function ensureLocation(dir: string): string {
  return readLocation(dir) ?? writeLocation(dir);
}

/** In a unit of work: stores the ids of a database that is in its own directory. */
export function recordIdentity({ settings }: Tables, location: string): void {
  if (settings.get(INSTANCE) === null) settings.put(INSTANCE, randomUUID());
  settings.put(LOCATION, location);
}

/** In a unit of work: makes a copy the database of this directory, with a generation higher than that of the original. */
export function takeOver(tables: Tables, location: string, now: number): void {
  tables.settings.raiseGeneration(now);
  recordIdentity(tables, location);
  tables.settings.remove(COPY);
}

function readLocation(dir: string): string | null {
  const file = join(dir, LOCATION_FILE);
  try {
    return existsSync(file) ? readFileSync(file, 'utf8').trim() : null;
  } catch (error) {
    throw openingFault(file, error);
  }
}

function writeLocation(dir: string): string {
  const file = join(dir, LOCATION_FILE);
  const location = randomUUID();
  try {
    const temporary = `${file}.new`;
    writeFileSync(temporary, `${location}\n`, { mode: 0o600 });
    syncPath(temporary);
    renameSync(temporary, file);
    syncPath(dir);
    return location;
  } catch (error) {
    throw openingFault(file, error);
  }
}
