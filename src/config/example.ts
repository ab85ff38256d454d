import { stringify } from 'smol-toml';
import { allSettings, type Setting } from './settings.ts';

/**
 * Generates config/postrider.example.toml from the schema: every key with its default and a comment. Keys are commented
 * out, so that a copied file follows later changes of defaults.
 */
export function exampleToml(): string {
  const lines = [
    '# Postrider: every setting with its default. "postrider init" writes a short file with what you choose.',
    '# Environment variables override settings: POSTRIDER_API__LISTEN=127.0.0.1:9090',
    '# Durations are a number of seconds or a string such as "30s", "5m", "4h", "2d".',
    '# SIGHUP ("systemctl reload postrider") applies changes, except of settings marked [restart].',
    '',
  ];
  for (const { name, settings } of settingSections()) {
    if (name !== '') lines.push(`[${name}]`, '');
    for (const { key, description, shownDefault, appliedBy } of settings)
      lines.push(
        `# ${description}${appliedBy === 'restart' ? ' [restart]' : ''}`,
        `#${key} = ${shownDefault}`,
        '',
      );
  }
  return `${lines.join('\n').trimEnd()}\n`;
}

/** A section of the configuration with its settings, in the order of the example. */
export interface SettingSection {
  /** `data`; '': the settings outside of sections. */
  name: string;
  settings: { key: string; description: string; shownDefault: string; appliedBy: Setting['appliedBy'] }[];
}

/** All settings by section: for the example and the documentation. */
export function settingSections(): SettingSection[] {
  const sections = new Map<string, SettingSection['settings']>([['', []]]);
  for (const setting of allSettings()) {
    const { path, description, appliedBy } = setting;
    // Sections that have only subsections have no heading.
    const name = path.slice(0, -1).join('.');
    const settings = sections.get(name) ?? [];
    settings.push({
      key: path.at(-1) ?? '',
      description,
      shownDefault: shownDefault(setting),
      appliedBy,
    });
    sections.set(name, settings);
  }
  return [...sections].map(([name, settings]) => ({ name, settings }));
}

function shownDefault({ schema, shown }: Setting): string {
  if (shown !== undefined) return /^["[]/.test(shown) ? shown : `""  # default: ${shown}`;
  const value = schema.parse(undefined);
  if (Array.isArray(value) && value.length > 0 && typeof value[0] === 'object') {
    return `[\n${value.map((entry) => `#  ${inlineTable(entry)},`).join('\n')}\n#]`;
  }
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? inlineTable(value)
    : literal(value);
}

function inlineTable(value: object): string {
  return `{ ${Object.entries(value)
    .map(
      ([key, entry]) =>
        `${key} = ${typeof entry === 'object' && entry !== null && !Array.isArray(entry) ? inlineTable(entry) : literal(entry)}`,
    )
    .join(', ')} }`;
}

function literal(value: unknown): string {
  return stringify({ v: value }).trim().slice('v = '.length);
}
