import type { ConfigSources } from './load.ts';
import type { Config } from './schema.ts';
import type { AppliedBy } from './setting-types.ts';
import { allSettings, type Setting, valueAt } from './settings.ts';
import { SHAPING_FILE } from './shaping.ts';

/** Where the value of a setting comes from. */
export type Origin =
  | { from: 'default' }
  /** Data of the program in a file that an upgrade replaces. */
  | { from: 'program'; file: string }
  /** `line`: from 1; null when it is not known. */
  | { from: 'file'; file: string; line: number | null }
  | { from: 'environment'; variable: string };

/** A setting with the value in force. */
export interface EffectiveSetting {
  name: string;
  /** JSON: durations as `5m`, paths absolute; null: not set. Secrets are masked. */
  value: unknown;
  origin: Origin;
  appliedBy: AppliedBy;
}

const MASK = '********';

/** All settings in the order of the schema. `config` is what `sources` resulted in. */
export function effectiveSettings(sources: ConfigSources, config: Config): EffectiveSetting[] {
  const lines = settingLines(sources.text);
  return allSettings().flatMap((setting): EffectiveSetting[] => {
    const origin = originOf(setting, sources, lines);
    const appliedBy = setting.appliedBy ?? 'restart';
    if (setting.name === 'delivery.shaping') return shapingSettings(config, origin);
    return [{ name: setting.name, value: shownValue(setting, config), origin, appliedBy }];
  });
}

/** One entry for each profile, in the order in which they apply; the program's profiles have its file as their origin. */
function shapingSettings(config: Config, given: Origin): EffectiveSetting[] {
  return config.delivery.shaping.map(({ name, origin, addressPause, ...limits }) => ({
    name: `delivery.shaping.${name}`,
    value: { ...limits, addressPause: formatDuration(addressPause) },
    origin: origin === 'program' ? { from: 'program', file: SHAPING_FILE } : given,
    appliedBy: 'reload',
  }));
}

function shownValue({ name, path, isSecret }: Setting, config: Config): unknown {
  const value = valueAt(config, path) ?? null;
  if (isSecret && value !== null) return MASK;
  return DURATIONS.test(name) && typeof value === 'number' ? formatDuration(value) : value;
}

/** The settings of the type `duration`, whose values are ms. */
const DURATIONS = /^(?:delivery\.retry\.(?!factor)|readers\.budget$|domains\.dkimRotation$)/;

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
] as const;

function formatDuration(ms: number): string {
  if (ms === 0) return '0s';
  const unit = UNITS.find(([, size]) => ms % size === 0);
  return unit === undefined ? `${ms}ms` : `${ms / unit[1]}${unit[0]}`;
}

function originOf(
  { name, path }: Setting,
  sources: ConfigSources,
  lines: ReadonlyMap<string, number>,
): Origin {
  // A variable may set a whole section.
  const prefixes = path.map((_, index) => path.slice(0, index + 1).join('.')).toReversed();
  const given = valueAt(sources.tree, path) !== undefined;
  const variable = given
    ? prefixes.map((prefix) => sources.variables.get(prefix)).find((found) => found !== undefined)
    : undefined;
  if (variable !== undefined) return { from: 'environment', variable };
  if (!given || sources.file === null) return { from: 'default' };
  return { from: 'file', file: sources.file, line: lineOf(name, lines) };
}

/** The line of a setting, of its first entry, or of the inline table that contains it; null when it is not known. */
export function lineOf(name: string, lines: ReadonlyMap<string, number>): number | null {
  const parts = name.replaceAll(/\[\d+\]/g, '').split('.');
  for (let length = parts.length; length > 0; length--) {
    const line = lines.get(parts.slice(0, length).join('.'));
    if (line !== undefined) return line;
  }
  return null;
}

/**
 * The line of each key and section in a TOML file, from 1. Only lines that begin with a header or a key count, which is
 * how people write settings; a key in a multi-line string or inline table is not found.
 */
export function settingLines(text: string): Map<string, number> {
  const lines = new Map<string, number>();
  let section = '';
  for (const [index, line] of text.split('\n').entries()) {
    const header = /^\s*\[\[?\s*([\w".-]+)\s*\]\]?/.exec(line)?.[1];
    const key = /^\s*([\w".-]+)\s*=/.exec(line)?.[1];
    if (header !== undefined) section = header.replaceAll('"', '');
    const name = header === undefined ? key?.replaceAll('"', '') : '';
    if (name === undefined) continue;
    const full = [section, name].filter((part) => part !== '').join('.');
    if (!lines.has(full)) lines.set(full, index + 1);
  }
  return lines;
}
