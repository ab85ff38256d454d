import { parse as parseToml } from 'smol-toml';
import { configSchema } from './schema.ts';
import { shapeOf } from './settings.ts';

/*
 * Settings in environment variables: `POSTRIDER_DELIVERY__PORT` sets `delivery.port`. A variable may also set a whole
 * section, as a TOML inline table.
 */

export const ENV_PREFIX = 'POSTRIDER_';
/** Variables with the prefix that are not settings. */
const ENV_NOT_SETTINGS = new Set(['POSTRIDER_CONFIG']);

export type Environment = Record<string, string | undefined>;
/** Settings as given, by section. */
export type SettingsTree = { [key: string]: unknown };

export interface EnvironmentSettings {
  /** The variable that sets a setting or a whole section, by its name such as `api.listen`. */
  variables: Map<string, string>;
  /** A fault for each variable that names no setting; `key`: the variable. */
  faults: { key: string; message: string }[];
}

/** Sets the settings of the environment in `tree`. A value that does not parse as TOML is a string. */
export function applyEnvironment(tree: SettingsTree, env: Environment): EnvironmentSettings {
  const faults: EnvironmentSettings['faults'] = [];
  const variables = new Map<string, string>();
  for (const [name, value] of Object.entries(env)) {
    if (!name.startsWith(ENV_PREFIX) || ENV_NOT_SETTINGS.has(name) || value === undefined) continue;
    const path = settingPath(name.slice(ENV_PREFIX.length).split('__'));
    if (path === null) {
      faults.push({
        key: name,
        message:
          'there is no such setting. Unset the variable or correct its name; "postrider config example" prints all keys',
      });
      continue;
    }
    const section = sectionAt(tree, path.sections);
    // The schema reports a section that is not a table.
    if (section === null) continue;
    section[path.key] = parseValue(value);
    variables.set([...path.sections, path.key].join('.'), name);
  }
  return { variables, faults };
}

/** The section at the path, created if it is missing; null when a value is not a table. */
function sectionAt(tree: SettingsTree, path: readonly string[]): SettingsTree | null {
  let section = tree;
  for (const key of path) {
    const inner = (section[key] ??= {});
    if (!isTable(inner)) return null;
    section = inner;
  }
  return section;
}

function isTable(value: unknown): value is SettingsTree {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Finds the setting with the path `segments`, ignoring case: environment variables are upper case. */
function settingPath(segments: string[]): { sections: string[]; key: string } | null {
  let schema: unknown = configSchema;
  const path: string[] = [];
  for (const segment of segments) {
    const shape = shapeOf(schema) ?? {};
    const key = Object.keys(shape).find((name) => name.toLowerCase() === segment.toLowerCase());
    if (key === undefined) return null;
    path.push(key);
    schema = shape[key];
  }
  const key = path.pop();
  return key === undefined ? null : { sections: path, key };
}

function parseValue(text: string): unknown {
  try {
    return parseToml(`value = ${text}`)['value'];
  } catch {
    // Not a TOML value: an unquoted string such as 127.0.0.1:8080.
    return text;
  }
}
