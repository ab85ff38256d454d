import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { parse as parseToml, TomlError } from 'smol-toml';
import type * as z from 'zod';
import { closestWord } from '../core/closest-word.ts';
import { errorText } from '../core/errors.ts';
import { isDenied, OperatorFault, thisUser } from '../core/operator-fault.ts';
import { applyEnvironment, ENV_PREFIX, type Environment, type SettingsTree } from './environment.ts';
import { installationAt, installationOf } from './installations.ts';
import { withProviderHosts } from './reply-rules.ts';
import {
  type Config,
  configSchema,
  defaultWorkers,
  MIN_METRICS_KEY_LENGTH,
  type RawConfig,
} from './schema.ts';
import { baseUrl, parseListen } from './setting-types.ts';
import { namedFiles, shapeOf } from './settings.ts';
import { readProgramShaping, resolveShaping, type ShapingEntry, type ShapingProfile } from './shaping.ts';

/** A fault of one setting. */
export interface ConfigIssue {
  /** Path of the setting such as `delivery.routes[0].port`, or name of the variable; '': the file as a whole. */
  key: string;
  message: string;
  /** Line in the file, if the fault is not that of a setting. */
  line?: number;
}

/**
 * Reports all faults of the configuration together, each with the path of its key or the environment variable. A single
 * fault is one line.
 */
export class ConfigFault extends OperatorFault {
  /** One line for each fault. */
  readonly faults: string[];

  readonly issues: readonly ConfigIssue[];
  /** The file; null: the environment. */
  readonly source: string | null;

  constructor(source: string | null, issues: readonly ConfigIssue[]) {
    const faults = issues.map(({ key, message, line }) => {
      const place = line === undefined ? key : `line ${line}`;
      return place === '' ? message : `${place}: ${message}`;
    });
    const [only] = faults;
    const prefix = source === null ? '' : `${source}:`;
    if (only !== undefined && faults.length === 1) super(`${prefix} ${only}`.trimStart());
    else super([prefix, ...faults.map((fault) => `  ${fault}`)].join('\n').replace(/^\n/, ''));
    this.faults = faults;
    this.issues = issues;
    this.source = source;
  }
}

/** Default configuration files, in the order in which they are searched. */
export const CONFIG_FILES = ['config/postrider.toml', '/etc/postrider/postrider.toml'] as const;

export interface LoadOptions {
  /** The file to read; null: no file, even if the environment names one. */
  file?: string | null;
  env?: Environment;
  cwd?: string;
  /** Files that are searched if none is named. Default: `CONFIG_FILES`. */
  files?: readonly string[];
}

/** The settings as given, with their sources. */
export interface ConfigSources {
  /** Null: no file. */
  file: string | null;
  /** The content of the file; '' without one. */
  text: string;
  tree: SettingsTree;
  /** The environment variable that sets a setting or a whole section, by its name such as `api.listen`. */
  variables: ReadonlyMap<string, string>;
  /** Faults of environment variables. */
  faults: ConfigIssue[];
  env: Environment;
  /** Relative paths start from this directory. */
  base: string;
}

/**
 * Loads the configuration: `file`, else `$POSTRIDER_CONFIG` unless it is empty, else the first of `CONFIG_FILES` that exists, else the
 * defaults. Environment variables `POSTRIDER_<PATH>`, with dots as `__`, override single settings. Relative paths start
 * from the file's directory, without a file from the working directory. Throws ConfigFault.
 */
export function loadConfig(options: LoadOptions = {}): Config {
  return configFrom(readSources(options));
}

/** Reads the file and the environment without validating the settings. Throws ConfigFault when the file is not TOML. */
export function readSources(options: LoadOptions = {}): ConfigSources {
  const env = options.env ?? process.env;
  const cwd = options.cwd ?? process.cwd();
  const file = locateFile(options, env, cwd);
  const { text, tree } = file === null ? { text: '', tree: {} } : readToml(file);
  return {
    file,
    text,
    tree,
    ...applyEnvironment(tree, env),
    env,
    base: file === null ? cwd : dirname(file),
  };
}

const SETTLE_MS = 300;
const MAX_SETTLE_READS = 20;

/**
 * Reads the sources of a running daemon again, when its file no longer changes. Throws ConfigFault when the file is missing or
 * empty, or seems incomplete: writers that do not replace it atomically leave it in such states, permanently when they fail.
 */
export async function rereadSources(options: LoadOptions, current: ConfigSources): Promise<ConfigSources> {
  const { file } = current;
  // A daemon without a file may get one.
  if (file === null) return readSources(options);
  const fault = (message: string) => new ConfigFault(file, [{ key: '', message }]);
  let text = readText(file);
  for (let reads = 1; ; reads++) {
    await setTimeout(SETTLE_MS);
    const again = readText(file);
    if (again === text) break;
    if (reads === MAX_SETTLE_READS) throw fault('is being written');
    text = again;
  }
  if (text.trim() !== '' && current.text.endsWith('\n') && !text.endsWith('\n'))
    throw fault('seems incomplete: its last line has no line break');
  const sources = readSources({ ...options, file });
  if (Object.keys(parseToml(sources.text)).length === 0 && Object.keys(parseToml(current.text)).length > 0)
    throw fault('has no settings any more: it seems incomplete');
  return sources;
}

/** Validates the settings and completes them with defaults. Throws ConfigFault with all faults. */
export function configFrom(sources: ConfigSources): Config {
  const { file, tree, env, base } = sources;
  const faults = [...sources.faults];
  const result = configSchema.safeParse(tree);
  if (!result.success) faults.push(...result.error.issues.flatMap(issuesOf));
  if (faults.length > 0 || !result.success) {
    throw new ConfigFault(faults.every(({ key }) => key.startsWith(ENV_PREFIX)) ? null : file, faults);
  }
  const shaping = shapingOf(result.data, file);
  return complete(repliesOf(result.data, shaping, file), shaping, file, env, base);
}

/** Throws ConfigFault. */
function repliesOf(raw: RawConfig, shaping: readonly ShapingProfile[], file: string | null): RawConfig {
  const replies = withProviderHosts(raw.delivery.replies, shaping);
  if (typeof replies !== 'number') return { ...raw, delivery: { ...raw.delivery, replies } };
  const names = shaping.flatMap(({ name, match }) => (match.length > 0 ? [name] : []));
  const message = `must be the name of a shaping profile: ${names.join(', ')}`;
  throw new ConfigFault(file, [{ key: `delivery.replies[${replies}].provider`, message }]);
}

/** Throws ConfigFault. */
function shapingOf(raw: RawConfig, file: string | null): ShapingProfile[] {
  let program: ShapingEntry[];
  try {
    program = readProgramShaping();
  } catch (error) {
    throw new ConfigFault(null, [{ key: '', message: errorText(error) }]);
  }
  const resolved = resolveShaping(raw.delivery.shaping, program);
  if ('profiles' in resolved) return resolved.profiles;
  const issues = resolved.faults.map(({ index, key, message }) => ({
    key: `delivery.shaping[${index}].${key}`,
    message,
  }));
  throw new ConfigFault(file, issues);
}

function locateFile(options: LoadOptions, env: Environment, cwd: string): string | null {
  if (options.file === null) return null;
  const named = options.file ?? env['POSTRIDER_CONFIG'];
  if (named !== undefined && named !== '') return resolve(cwd, named);
  const files = options.files ?? CONFIG_FILES;
  const found = files.find((file) => existsSync(resolve(cwd, file))) ?? files.find(isHidden);
  return found === undefined ? null : resolve(cwd, found);
}

/**
 * Whether permissions hide from this user whether the file exists: /etc/postrider of the package is not public. Reading the file then states
 * the problem. A working directory without permissions has no configuration.
 */
function isHidden(file: string): boolean {
  if (!isAbsolute(file)) return false;
  try {
    statSync(file);
  } catch (error) {
    return isDenied(error);
  }
  return false;
}

/** Adds the settings whose defaults depend on others. `base`: relative paths start from this directory. */
function complete(
  raw: RawConfig,
  shaping: ShapingProfile[],
  file: string | null,
  env: Environment,
  base: string,
): Config {
  const dir = resolve(base, raw.data.dir);
  const credential = env['CREDENTIALS_DIRECTORY'];
  const fromSystemd = credential === undefined ? null : join(credential, 'master.key');
  const masterKeyFile =
    raw.data.masterKeyFile !== undefined
      ? resolve(base, raw.data.masterKeyFile)
      : fromSystemd !== null && existsSync(fromSystemd)
        ? fromSystemd
        : join(dir, 'master.key');
  for (const { section, key, file: path } of namedFiles(raw)) Reflect.set(section, key, resolve(base, path));
  requireServedAddress(raw, file);
  return {
    ...raw,
    api: { ...raw.api, ...metricsKeyOf(raw.api, file) },
    data: { dir, masterKeyFile },
    backup: { ...raw.backup, dir: resolve(dir, raw.backup.dir) },
    public: { ...raw.public, url: baseUrl(raw.public.url ?? `http://${raw.public.listen}`) },
    console: { ...raw.console, url: consoleUrl(raw.console, file) },
    delivery: { ...raw.delivery, shaping, workers: raw.delivery.workers ?? defaultWorkers() },
    file,
  };
}

/** The built-in name server is authoritative for the host name: its addresses must be configured. */
function requireServedAddress(
  { dns: { server }, delivery, hostname }: RawConfig,
  source: string | null,
): void {
  const isKnown = delivery.egress.some(
    (entry) =>
      (entry.hostname ?? hostname) === hostname &&
      (entry.address ?? entry.address6 ?? entry.publicAddress) !== undefined,
  );
  if (server.listen === 'off' || server.addresses.length > 0 || isKnown) return;
  const message = `must have the addresses of ${hostname}, which dns.server.listen serves: set them here, or in an entry of delivery.egress`;
  throw new ConfigFault(source, [{ key: 'dns.server.addresses', message }]);
}

/** The origin of the console. Its cookie is sent over HTTPS or within this machine only. */
function consoleUrl({ listen, url }: RawConfig['console'], source: string | null): string {
  const fault = (message: string) => new ConfigFault(source, [{ key: 'console.url', message }]);
  const address = listen === 'off' ? null : parseListen(listen);
  if (url === undefined) {
    if (address !== null && !isLoopbackHost(address.host))
      throw fault(`must have the address of the console in browsers: ${listen} is not only on this machine`);
    return `http://localhost:${address?.port ?? 0}`;
  }
  const { protocol, hostname, origin, pathname } = new URL(url);
  if (pathname !== '/') throw fault('must be an address without a path: the console is at /console/');
  if (protocol === 'http:' && !isLoopbackHost(hostname))
    throw fault('must begin with https://: the session would be readable on the way');
  return origin;
}

function isLoopbackHost(host: string): boolean {
  return /^(?:127\.\d+\.\d+\.\d+|\[?::1\]?|(?:.+\.)?localhost)$/i.test(host);
}

/** The metrics key, from its file if that is configured. */
function metricsKeyOf(
  { metricsKey, metricsKeyFile }: RawConfig['api'],
  source: string | null,
): { metricsKey?: string } {
  if (metricsKeyFile === undefined) return metricsKey === undefined ? {} : { metricsKey };
  const fault = (message: string) => new ConfigFault(source, [{ key: 'api.metricsKeyFile', message }]);
  let text: string;
  try {
    text = readFileSync(metricsKeyFile, 'utf8').trim();
  } catch (error) {
    throw fault(`the file cannot be read: ${errorText(error)}`);
  }
  if (text.length < MIN_METRICS_KEY_LENGTH)
    throw fault(
      `the key in ${metricsKeyFile} has ${text.length} characters, at least ${MIN_METRICS_KEY_LENGTH} are required`,
    );
  return { metricsKey: text };
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const message = isDenied(error)
      ? `cannot be read: permission denied for ${thisUser()}. Run the command as root or as the user of the daemon; with the package, commands of root run as the user ${(installationAt(file) ?? installationOf(null)).user}, who must be able to read the file`
      : `cannot be read: ${errorText(error)}`;
    throw new ConfigFault(file, [{ key: '', message }]);
  }
}

function readToml(file: string): { text: string; tree: SettingsTree } {
  const text = readText(file);
  if (text.trim() === '' && statSync(file).isFile())
    throw new ConfigFault(file, [
      { key: '', message: 'is empty: write at least a comment into it if all defaults are meant' },
    ]);
  try {
    return { text, tree: parseToml(text) };
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    throw new ConfigFault(file, [
      { key: '', message: `not valid TOML: ${reasonOf(error)}`, line: error.line },
    ]);
  }
}

/** The parser's message without its prefix and the lines of the file that follow it. */
function reasonOf({ message }: TomlError): string {
  return (message.split('\n')[0] ?? '').replace(/^Invalid TOML document: /, '');
}

function issuesOf(issue: z.core.$ZodIssue): ConfigIssue[] {
  const path = issue.path
    .map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`))
    .join('')
    .replace(/^\./, '');
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({
      key: path === '' ? key : `${path}.${key}`,
      message: `unknown key${suggestion(issue.path, key)}; "postrider config example" prints all keys`,
    }));
  }
  return [{ key: path === '' ? 'the file' : path, message: issue.message.replace(/^Invalid input: /, '') }];
}

/** The setting that was probably meant: one of the same section, else one of the same name elsewhere. */
function suggestion(section: readonly PropertyKey[], key: string): string {
  let schema: unknown = configSchema;
  for (const step of section) schema = shapeOf(schema)?.[String(step)];
  const meant = closestWord(key, Object.keys(shapeOf(schema) ?? {})) ?? elsewhere(configSchema, [], key);
  return meant === null ? '' : ` (did you mean "${meant}"?)`;
}

/** The name of the first setting in any section whose last part is `key`, ignoring case; null: none. */
function elsewhere(schema: unknown, path: readonly string[], key: string): string | null {
  for (const [name, inner] of Object.entries(shapeOf(schema) ?? {})) {
    const at = [...path, name];
    if (name.toLowerCase() === key.toLowerCase()) return at.join('.');
    const found = elsewhere(inner, at, key);
    if (found !== null) return found;
  }
  return null;
}
