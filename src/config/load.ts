import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parse as parseToml } from 'smol-toml';
import { z } from 'zod';
import { type Config, configSchema, defaultWorkers } from './schema.ts';

/**
 * Reads the one configuration file and the environment, and says every fault at once: a start that fails
 * with one complaint at a time wastes an operator's evening.
 */
export class ConfigFault extends Error {
  readonly faults: string[];

  constructor(source: string, faults: string[]) {
    super(`${source}:\n${faults.map((fault) => `  ${fault}`).join('\n')}`);
    this.faults = faults;
  }
}

const DEFAULT_FILE = 'config/postrider.toml';
const ENV_PREFIX = 'POSTRIDER_';
/** Read by others, not settings. */
const ENV_NOT_SETTINGS = new Set(['POSTRIDER_CONFIG']);

type Environment = Record<string, string | undefined>;
type Tree = { [key: string]: unknown };

/**
 * The configuration: `file`, else `$POSTRIDER_CONFIG`, else `config/postrider.toml` if there is one, else
 * the defaults; then `POSTRIDER_<PATH>` with dots as `__`. Throws ConfigFault.
 */
export function loadConfig(options: { file?: string; env?: Environment; cwd?: string } = {}): Config {
  const env = options.env ?? process.env;
  const cwd = options.cwd ?? process.cwd();
  const named = options.file ?? env['POSTRIDER_CONFIG'];
  const fallback = resolve(cwd, DEFAULT_FILE);
  const file = named !== undefined ? resolve(cwd, named) : existsSync(fallback) ? fallback : null;
  const source = file ?? 'built-in defaults';
  const tree = file === null ? {} : readToml(file);
  const faults = applyEnvironment(tree, env);
  const result = configSchema.safeParse(tree);
  if (!result.success) faults.push(...result.error.issues.flatMap(faultLines));
  if (faults.length > 0 || !result.success) throw new ConfigFault(source, faults);
  return complete(result.data, file, env, cwd);
}

function complete(
  raw: z.output<typeof configSchema>,
  file: string | null,
  env: Environment,
  cwd: string,
): Config {
  const dir = resolve(cwd, raw.data.dir);
  const credential = env['CREDENTIALS_DIRECTORY'];
  const fromSystemd = credential === undefined ? null : join(credential, 'master.key');
  const masterKeyFile =
    raw.data.masterKeyFile !== undefined
      ? resolve(cwd, raw.data.masterKeyFile)
      : fromSystemd !== null && existsSync(fromSystemd)
        ? fromSystemd
        : join(dir, 'master.key');
  return {
    ...raw,
    data: { dir, masterKeyFile },
    public: { ...raw.public, url: (raw.public.url ?? `http://${raw.public.listen}`).replace(/\/+$/, '') },
    delivery: { ...raw.delivery, workers: raw.delivery.workers ?? defaultWorkers() },
    file,
  };
}

function readToml(file: string): Tree {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new ConfigFault(file, [`cannot be read: ${messageOf(error)}`]);
  }
  try {
    return parseToml(text);
  } catch (error) {
    throw new ConfigFault(file, [`is not TOML: ${messageOf(error)}`]);
  }
}

/** Lays `POSTRIDER_A__B=value` over the tree; a value is TOML where it parses as TOML, else plain text. */
function applyEnvironment(tree: Tree, env: Environment): string[] {
  const faults: string[] = [];
  for (const [name, value] of Object.entries(env)) {
    if (!name.startsWith(ENV_PREFIX) || ENV_NOT_SETTINGS.has(name) || value === undefined) continue;
    const path = settingPath(name.slice(ENV_PREFIX.length).split('__'));
    if (path === null) {
      faults.push(`${name}: names no setting`);
      continue;
    }
    let at = tree;
    for (const key of path.sections) at = (at[key] ??= {}) as Tree;
    at[path.key] = parseValue(value);
  }
  return faults;
}

/** Finds the setting whose path is `segments` apart from letter case: environments are upper case. */
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
    // Not a TOML value: an unquoted text such as 127.0.0.1:8080, which is what people write in a shell.
    return text;
  }
}

/** The keys of a section, looking through its default; null for anything that is not a section. */
export function shapeOf(schema: unknown): Record<string, z.ZodType> | null {
  let inner = schema;
  while (inner instanceof z.ZodPrefault || inner instanceof z.ZodDefault || inner instanceof z.ZodOptional)
    inner = inner.def.innerType;
  return inner instanceof z.ZodObject ? inner.shape : null;
}

function faultLines(issue: z.core.$ZodIssue): string[] {
  const path = issue.path
    .map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`))
    .join('')
    .replace(/^\./, '');
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map(
      (key) =>
        `${path === '' ? key : `${path}.${key}`}: unknown key; see config/postrider.example.toml for all keys`,
    );
  }
  return [`${path === '' ? 'the file' : path}: ${issue.message.replace(/^Invalid input: /, '')}`];
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
