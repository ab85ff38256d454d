import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ApiClient, type Credentials, createApiClient } from './api-client.ts';
import { type Child, type Exit, startChild } from './child.ts';
import { eventually } from './eventually.ts';
import { freePort } from './free-port.ts';

/**
 * The built program as an operator runs it: `postrider serve` as a process of its own, configured by
 * environment, with a data folder of its own and an account made on the command line.
 *
 *     const daemon = await startDaemon({ 'dns.resolvers': [dns.address], 'delivery.port': sink.port });
 *     await daemon.api.put('/web-setup/domains', { … });
 *     await daemon.kill('SIGKILL');
 *     await daemon.restart();
 *     await daemon.stop();                         // SIGTERM; fails unless it ends with 0
 */
export interface RunningDaemon {
  baseUrl: string;
  dataDir: string;
  /** With the keys of the account that was made at first. */
  api: ApiClient;
  /** Runs a command in the same surroundings; returns what it printed, fails when it does. */
  cli(...args: string[]): Promise<string>;
  /** The same, whatever comes of it. */
  tryCli(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }>;
  /** Another account, and a client with its keys. */
  account(name: string, options?: { company?: boolean }): Promise<ApiClient>;
  /** Everything logged since the last start. */
  log(): string;
  /** A value of `/metrics`. */
  metric(name: string): Promise<number>;
  kill(signal: NodeJS.Signals): Promise<Exit>;
  /** Starts it again after its end. */
  restart(): Promise<void>;
  /** Ends it in good order and removes its data. */
  stop(): Promise<void>;
}

/** Settings by path, `delivery.port`: JSON's forms of numbers, texts and lists are TOML's, too. */
export type Settings = Record<string, string | number | boolean | readonly string[] | readonly object[]>;

export const HOSTNAME = 'mx.postrider.example';
/** What the world sees of the machine in these tests: a documentation address, as behind an address translator. */
export const PUBLIC_ADDRESS = '192.0.2.25';

const PROGRAM = new URL('../../dist/main.js', import.meta.url).pathname;
const START_MS = 30_000;

/** `more`: further variables of its environment. */
export async function startDaemon(
  settings: Settings = {},
  more: NodeJS.ProcessEnv = {},
  /** How long a start may take: that of a large database migrates it. */
  { startMs = START_MS }: { startMs?: number } = {},
): Promise<RunningDaemon> {
  const dir = await mkdtemp(join(tmpdir(), 'postrider-e2e-'));
  // One that the caller names is the caller's: it is not removed.
  const chosen = settings['data.dir'];
  const dataDir = typeof chosen === 'string' ? chosen : join(dir, 'data');
  const apiPort = await freePort();
  const baseUrl = `http://127.0.0.1:${apiPort}`;
  const env = {
    ...more,
    ...environment({
      hostname: HOSTNAME,
      'data.dir': dataDir,
      'api.listen': `127.0.0.1:${apiPort}`,
      'public.listen': `127.0.0.1:${await freePort()}`,
      'mx.listen': `127.0.0.1:${await freePort()}`,
      'delivery.egress': [{ name: 'main', publicAddress: PUBLIC_ADDRESS }],
      'log.level': 'debug',
      ...settings,
    }),
  };

  const tryCli = async (...args: string[]) =>
    new Promise<{ code: number; stdout: string; stderr: string }>((resolve) => {
      execFile(process.execPath, [PROGRAM, ...args], { env, cwd: dir }, (error, stdout, stderr) =>
        resolve({ code: exitCode(error), stdout, stderr }),
      );
    });
  const cli = async (...args: string[]) => {
    const { code, stdout, stderr } = await tryCli(...args);
    if (code !== 0) throw new Error(`postrider ${args.join(' ')} ended with ${code}: ${stdout}${stderr}`);
    return stdout;
  };
  const account = async (name: string, { company = true } = {}) => {
    const address = ['--company', name, '--address', 'Hauptstrasse 1, 10115 Berlin, DE'];
    const printed = await cli('account', 'create', '--name', name, ...(company ? address : []), '--json');
    const credentials: Credentials = JSON.parse(printed);
    return createApiClient(baseUrl, credentials);
  };

  let child = startServe(env, dir);
  try {
    await untilReady(child, baseUrl, startMs);
    const api = await account('Kunde GmbH');
    return {
      baseUrl,
      dataDir,
      api,
      cli,
      tryCli,
      account,
      log: () => child.output,
      metric: async (name) => readMetric(await (await fetch(`${baseUrl}/metrics`)).text(), name),
      kill: (signal) => child.kill(signal),
      restart: async () => {
        if (child.running) throw new Error('it is still running');
        child = startServe(env, dir);
        await untilReady(child, baseUrl, startMs);
      },
      stop: async () => {
        const exit = await child.kill('SIGTERM');
        await rm(dir, { recursive: true, force: true });
        if (exit.code !== 0)
          throw new Error(`the daemon ended with ${JSON.stringify(exit)}: ${child.output}`);
      },
    };
  } catch (error) {
    await child.kill('SIGKILL');
    throw error;
  }
}

function startServe(env: NodeJS.ProcessEnv, cwd: string): Child {
  return startChild(process.execPath, ['--enable-source-maps', PROGRAM, 'serve'], { env, cwd });
}

async function untilReady(child: Child, baseUrl: string, startMs: number): Promise<void> {
  await eventually(
    'the daemon to be ready',
    () => {
      if (!child.running) throw new Error(`the daemon ended while starting: ${child.output}`);
      return fetch(`${baseUrl}/readyz`).then(
        ({ status }) => status === 200,
        () => false,
      );
    },
    { ms: startMs },
  );
}

/** Only what a program needs, so that a test does not depend on the shell it was started from. */
function environment(settings: Settings): NodeJS.ProcessEnv {
  const named = Object.entries(settings).map(([path, value]) => [
    `POSTRIDER_${path.replaceAll('.', '__').toUpperCase()}`,
    toml(value),
  ]);
  return { PATH: process.env['PATH'], HOME: process.env['HOME'], ...Object.fromEntries(named) };
}

function toml(value: Settings[string] | object): string {
  if (Array.isArray(value)) return `[${value.map((item) => toml(item)).join(', ')}]`;
  if (typeof value !== 'object') return JSON.stringify(value);
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
