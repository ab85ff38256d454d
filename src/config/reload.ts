import { isDeepStrictEqual } from 'node:util';
import type { Config } from './schema.ts';
import { allSettings, type Setting, valueAt } from './settings.ts';

/** Names of the settings whose values differ from those in force, in the order of the schema. */
export interface ConfigChanges {
  /** A reload applies them. */
  applied: string[];
  /** A restart applies them. */
  needsRestart: string[];
}

/** The settings that a reload of `next` changes, and those that need a restart. */
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
 * Replaces the live settings of `running` in place: the parts of the daemon refer to this object and read each setting
 * when they use it. The only function that changes a configuration after the start.
 */
export function assignLive(running: Config, next: Config): void {
  for (const setting of allSettings()) if (setting.appliedBy === 'reload') assign(setting, running, next);
}

function assign({ path }: Setting, running: Config, next: Config): void {
  const section = path.length === 1 ? running : valueAt(running, path.slice(0, -1));
  const key = path.at(-1);
  if (typeof section !== 'object' || section === null || key === undefined) return;
  const value = valueAt(next, path);
  // Unchanged values remain the same objects, so that values derived from them remain valid.
  if (isDeepStrictEqual(Reflect.get(section, key), value)) return;
  if (value === undefined) Reflect.deleteProperty(section, key);
  else Reflect.set(section, key, value);
}
