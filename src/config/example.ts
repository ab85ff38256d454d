import { stringify } from 'smol-toml';
import type { z } from 'zod';
import { shapeOf } from './load.ts';
import { configSchema } from './schema.ts';

/**
 * Generates config/postrider.example.toml from the schema: every key with its default and a comment. Keys are commented
 * out, so that a copied file follows later changes of defaults.
 */
export function exampleToml(): string {
  const lines = [
    '# Postrider: every setting with its default. Copy to config/postrider.toml and uncomment what you change.',
    '# Environment variables override settings: POSTRIDER_API__LISTEN=127.0.0.1:9090',
    '# Durations are a number of seconds or a string such as "30s", "5m", "4h", "2d".',
    '',
  ];
  for (const { name, settings } of settingSections()) {
    if (name !== '') lines.push(`[${name}]`, '');
    for (const { key, description, shownDefault } of settings)
      lines.push(`# ${description}`, `#${key} = ${shownDefault}`, '');
  }
  return `${lines.join('\n').trimEnd()}\n`;
}

/** A section of the configuration with its settings, in the order of the example. */
export interface SettingSection {
  /** `data`; '': the settings outside of sections. */
  name: string;
  settings: { key: string; description: string; shownDefault: string }[];
}

/** All settings: for the example and the manual page. */
export function settingSections(): SettingSection[] {
  return sectionsOf(shapeOf(configSchema) ?? {}, []);
}

function sectionsOf(shape: Record<string, z.ZodType>, path: string[]): SettingSection[] {
  const entries = Object.entries(shape).map(([key, schema]) => ({ key, schema, inner: shapeOf(schema) }));
  const settings = entries.flatMap(({ key, schema, inner }) => {
    if (inner !== null) return [];
    const meta = schema.meta() ?? {};
    return [{ key, description: meta.description ?? '', shownDefault: shownDefault(schema, meta['shown']) }];
  });
  const inner = entries.flatMap(({ key, inner }) =>
    inner === null ? [] : sectionsOf(inner, [...path, key]),
  );
  return [{ name: path.join('.'), settings }, ...inner];
}

function shownDefault(schema: z.ZodType, shown: unknown): string {
  if (typeof shown === 'string') return /^["[]/.test(shown) ? shown : `""  # default: ${shown}`;
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
