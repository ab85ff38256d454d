import { isDeepStrictEqual } from 'node:util';
import type { Config } from './schema.ts';
import { allSettings, type Setting, valueAt } from './settings.ts';

/** Names of the settings that differ from those in force, in the order of the schema. */
export interface ConfigChanges {
  /** A reload applies them. */
  applied: string[];
  /** They stay as they are until a restart. */
  needsRestart: string[];
}

export function changesBetween(running: Config, next: Config): ConfigChanges {
  const changed = allSettings().filter(
    ({ path }) => !isDeepStrictEqual(valueAt(running, path), valueAt(next, path)),
  );
  const names = (isApplied: boolean) =>
    changed.filter(({ appliedBy }) => (appliedBy === 'reload') === isApplied).map(({ name }) => name);
  return { applied: names(true), needsRestart: names(false) };
}

/**
 * The configuration that a running daemon would have after a reload: the running one with the changed settings that a
 * reload applies.
 */
export function reloadedConfig(running: Config, next: Config): Config {
  const reloaded = structuredClone(running);
  assignLive(reloaded, next);
  return reloaded;
}

/**
 * Replaces the live settings of `running` in place, so that the parts of the daemon, which hold the same object, see
 * them at their next use. The only function that changes a configuration after the start.
 */
export function assignLive(running: Config, next: Config): void {
  for (const setting of allSettings()) if (setting.appliedBy === 'reload') assign(setting, running, next);
}

function assign({ path }: Setting, running: Config, next: Config): void {
  const section = path.length === 1 ? running : valueAt(running, path.slice(0, -1));
  const key = path.at(-1);
  if (typeof section !== 'object' || section === null || key === undefined) return;
  const value = valueAt(next, path);
  // Unchanged values stay the same objects: what was derived from them stays valid.
  if (isDeepStrictEqual(Reflect.get(section, key), value)) return;
  if (value === undefined) Reflect.deleteProperty(section, key);
  else Reflect.set(section, key, value);
}
