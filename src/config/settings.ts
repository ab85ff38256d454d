import * as z from 'zod';
import { configSchema } from './schema.ts';
import type { AppliedBy } from './setting-types.ts';

/** A setting of the schema: a key with a value, not a section. */
export interface Setting {
  /** `api.listen` */
  name: string;
  path: readonly string[];
  schema: z.ZodType;
  description: string;
  /** The default in words or TOML; undefined: the default value of the schema shows it. */
  shown: string | undefined;
  /** Undefined: the schema does not classify the setting. */
  appliedBy: AppliedBy | undefined;
  isSecret: boolean;
}

/** All settings in the order of the schema: those of a section before its subsections. */
export function allSettings(): Setting[] {
  return settingsOf(shapeOf(configSchema) ?? {}, []);
}

/** The keys of a section; null if the schema is not a section. Unwraps defaults. */
export function shapeOf(schema: unknown): Record<string, z.ZodType> | null {
  let inner = schema;
  while (inner instanceof z.ZodPrefault || inner instanceof z.ZodDefault || inner instanceof z.ZodOptional)
    inner = inner.def.innerType;
  return inner instanceof z.ZodObject ? inner.shape : null;
}

function settingsOf(shape: Record<string, z.ZodType>, path: readonly string[]): Setting[] {
  const entries = Object.entries(shape).map(([key, schema]) => ({
    schema,
    at: [...path, key],
    inner: shapeOf(schema),
  }));
  const own = entries.flatMap(({ schema, at, inner }) => (inner === null ? [setting(schema, at)] : []));
  const below = entries.flatMap(({ at, inner }) => (inner === null ? [] : settingsOf(inner, at)));
  return [...own, ...below];
}

function setting(schema: z.ZodType, path: readonly string[]): Setting {
  const { description = '', shown, appliedBy, isSecret } = schema.meta() ?? {};
  return {
    name: path.join('.'),
    path,
    schema,
    description,
    shown: typeof shown === 'string' ? shown : undefined,
    appliedBy: appliedBy === 'reload' || appliedBy === 'restart' ? appliedBy : undefined,
    isSecret: isSecret === true,
  };
}

/** The value at a path of nested objects; undefined when there is none. */
export function valueAt(tree: object, path: readonly string[]): unknown {
  let value: unknown = tree;
  for (const key of path) {
    if (typeof value !== 'object' || value === null) return undefined;
    value = Reflect.get(value, key);
  }
  return value;
}

/** A setting, or a key of an entry, with the path of a file. */
interface NamedFile {
  /** `delivery.routes[0].passwordFile` */
  name: string;
  section: object;
  key: string;
  file: string;
}

/** The files that a configuration names: the values of all keys that end in "File". */
export function namedFiles(section: object, prefix = ''): NamedFile[] {
  return Object.entries(section).flatMap(([key, value]): NamedFile[] => {
    const name = Array.isArray(section) ? `${prefix}[${key}]` : prefix === '' ? key : `${prefix}.${key}`;
    if (typeof value === 'string' && key.endsWith('File')) return [{ name, section, key, file: value }];
    return typeof value === 'object' && value !== null ? namedFiles(value, name) : [];
  });
}
