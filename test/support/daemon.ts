import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ApiClient, type Credentials, createApiClient } from './api-client.ts';
import { type Child, type Exit, startChild } from './child.ts';
import { eventually } from './eventually.ts';
import { freePort } from './free-port.ts';
import { PATIENCE_MS } from './patience.ts';

/**
 * The built program as an operator runs it: `postrider serve` as a child process, configured by environment
 * variables, with a temporary data directory and an account created on the command line.
 *
 *     const daemon = await startDaemon({ 'dns.resolvers': [dns.address], 'delivery.port': sink.port });
 *     await daemon.api.put('/web-setup/domains', { … });
 *     await daemon.kill('SIGKILL');
 *     await daemon.restart();
 *     await daemon.stop();                         // SIGTERM; throws unless the exit code is 0
 */
export interface RunningDaemon {
  baseUrl: string;
  dataDir: string;
  /** The environment of the daemon and of its commands. */
  env: NodeJS.ProcessEnv;
  /** A client with the keys of the first account. */
  api: ApiClient;
  /** Runs a command with the same configuration; returns its stdout, throws when it fails. */
  cli(...args: string[]): Promise<string>;
  /** Like `cli`, but returns the exit code instead of throwing. */
  tryCli(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }>;
  /** The same with other environment variables. */
  tryCliWith(
    more: NodeJS.ProcessEnv,
    ...args: string[]
  ): Promise<{ code: number; stdout: string; stderr: string }>;
  /** Creates another account; returns a client with its keys. */
  account(name: string, options?: { company?: boolean }): Promise<ApiClient>;
  /** The output since the last start. */
  log(): string;
  /** A value of `/metrics`. */
  metric(name: string): Promise<number>;
  kill(signal: NodeJS.Signals): Promise<Exit>;
  /** Starts it again after it exited. */
  restart(): Promise<void>;
  /** Sends SIGTERM, waits for the exit and removes the data. */
  stop(): Promise<void>;
}

/** Settings by path, such as `delivery.port`. */
export type Settings = Record<string, unknown>;

export const HOSTNAME = 'mx.postrider.example';
/** The public address of the daemon in tests: a documentation address, as behind NAT. */
export const PUBLIC_ADDRESS = '192.0.2.25';

/**
 * The largest limits of lookups and of lists: a busy machine may be too slow for the default ones, and a message that is deferred
 * for a lookup waits for minutes. Tests of name servers that do not answer set a shorter timeout.
 */
export const PATIENT_SETTINGS = { 'dns.timeoutMs': 60_000, 'readers.budget': '60s' };

const PROGRAM = new URL('../../dist/main.js', import.meta.url).pathname;

/** `more`: further environment variables. */
export async function startDaemon(
  settings: Settings = {},
  more: NodeJS.ProcessEnv = {},
  /** Timeout of a start, which includes the migration of a large database. */
  { startMs = PATIENCE_MS }: { startMs?: number } = {},
): Promise<RunningDaemon> {
  const dir = await mkdtemp(join(tmpdir(), 'postrider-e2e-'));
  // A data directory that the caller names is not removed.
  const configured = settings['data.dir'];
  const dataDir = typeof configured === 'string' ? configured : join(dir, 'data');
  const chosen = settings['api.listen'];
  const listen = typeof chosen === 'string' ? chosen : `127.0.0.1:${await freePort()}`;
  const baseUrl = `http://${listen}`;
  const env = {
    ...more,
    ...environment({
      hostname: HOSTNAME,
      'data.dir': dataDir,
      'api.listen': listen,
      'public.listen': `127.0.0.1:${await freePort()}`,
      'console.listen': 'off',
      'webhooks.allowPrivateNetworks': true,
      ...PATIENT_SETTINGS,
      'mx.listen': `127.0.0.1:${await freePort()}`,
      'delivery.egress': [{ name: 'main', publicAddress: PUBLIC_ADDRESS }],
      'log.level': 'debug',
      ...settings,
    }),
  };

  const tryCliWith = async (more: NodeJS.ProcessEnv, ...args: string[]) =>
    new Promise<{ code: number; stdout: string; stderr: string }>((resolve) => {
      const options = { env: { ...env, ...more }, cwd: dir };
      execFile(process.execPath, [PROGRAM, ...args], options, (error, stdout, stderr) =>
        resolve({ code: exitCode(error), stdout, stderr }),
      );
    });
  const tryCli = (...args: string[]) => tryCliWith({}, ...args);
  const cli = async (...args: string[]) => {
    const { code, stdout, stderr } = await tryCli(...args);
    if (code !== 0) throw new Error(`postrider ${args.join(' ')} exited with ${code}: ${stdout}${stderr}`);
    return stdout;
  };
  const account = async (name: string, { company = true } = {}) => {
    const address = ['--company', name, '--address', 'Hauptstrasse 1, 10115 Berlin, DE'];
    const output = await cli('account', 'create', '--name', name, ...(company ? address : []), '--json');
    const credentials: Credentials = JSON.parse(output);
    return createApiClient(baseUrl, credentials);
  };

  let child = startServe(env, dir);
  try {
    await untilReady(child, baseUrl, startMs);
    const api = await account('Kunde GmbH');
    return {
      baseUrl,
      dataDir,
      env,
      api,
      cli,
      tryCli,
      tryCliWith,
      account,
      log: () => child.output,
      metric: async (name) => readMetric(await (await fetch(`${baseUrl}/metrics`)).text(), name),
      kill: (signal) => child.kill(signal),
      restart: async () => {
        if (child.running) throw new Error('the daemon is still running');
        child = startServe(env, dir);
        await untilReady(child, baseUrl, startMs);
      },
      stop: async () => {
        const exit = await child.kill('SIGTERM');
        await rm(dir, { recursive: true, force: true });
        if (exit.code !== 0)
          throw new Error(`the daemon exited with ${JSON.stringify(exit)}: ${child.output}`);
      },
    };
  } catch (error) {
    await child.kill('SIGKILL');
    await rm(dir, { recursive: true, force: true });
    throw error;
  }
}

/** As in .packaging/postrider.sh. */
const NODE_OPTIONS = [
  '--enable-source-maps',
  '--max-semi-space-size=8',
  '--initial-old-space-size=32',
  '--heap-growing-percent=100',
];

function startServe(env: NodeJS.ProcessEnv, cwd: string): Child {
  return startChild(process.execPath, [...NODE_OPTIONS, PROGRAM, 'serve'], { env, cwd });
}

async function untilReady(child: Child, baseUrl: string, startMs: number): Promise<void> {
  await eventually(
    'the daemon to be ready',
    () => {
      if (!child.running) throw new Error(`the daemon exited during the start: ${child.output}`);
      return fetch(`${baseUrl}/readyz`).then(
        ({ status }) => status === 200,
        () => false,
      );
    },
    { ms: startMs },
  );
}

/** The environment without the variables of the shell, so that tests do not depend on them. */
export function environment(settings: Settings): NodeJS.ProcessEnv {
  return { PATH: process.env['PATH'], HOME: process.env['HOME'], ...variables(settings) };
}

export function variables(settings: Settings): Record<string, string> {
  const named = Object.entries(settings).map(([path, value]) => [
    `POSTRIDER_${path.replaceAll('.', '__').toUpperCase()}`,
    toml(value),
  ]);
  return Object.fromEntries(named);
}

/** JSON's numbers, strings and arrays are valid TOML; objects become inline tables. */
export function toml(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map((item) => toml(item)).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  return `{ ${Object.entries(value)
    .map(([key, inner]) => `${key} = ${toml(inner)}`)
    .join(', ')} }`;
}

function exitCode(error: { code?: number | string | null } | null): number {
  if (error === null) return 0;
  return typeof error.code === 'number' ? error.code : 1;
}

function readMetric(text: string, name: string): number {
  const value = new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'm').exec(text)?.[1];
  if (value === undefined) throw new Error(`no metric ${name}`);
  return Number(value);
}
