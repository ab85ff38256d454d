import { execFile } from 'node:child_process';
import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'smol-toml';
import { type ApiClient, type Credentials, createApiClient } from '../support/api-client.ts';
import { type Child, type Exit, startChild } from '../support/child.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { pause, type ScenarioContext, within } from './context.ts';

/**
 * The built program under a supervisor, as an operator runs it: configured by a TOML file, restarted when it exits.
 * `crashes` has the exits that the scenario did not cause.
 */
export interface Daemon {
  readonly baseUrl: string;
  readonly dataDir: string;
  readonly ports: Record<Listener, number>;
  /** A client with the keys of the first account. */
  readonly api: ApiClient;
  readonly running: boolean;
  readonly pid: number;
  readonly crashes: Crash[];
  cli(...args: string[]): Promise<string>;
  /** Creates another account; returns a client with its keys. */
  account(name: string): Promise<ApiClient>;
  /** The log since the last start. */
  log(): string;
  /** A value of `/metrics`; null when it cannot be read. */
  metric(name: string): Promise<number | null>;
  /** Status of an HTTP path; null: no response within `ms`. */
  probe(path: string, ms?: number): Promise<number | null>;
  /** kill -9. */
  kill(): Promise<void>;
  /** SIGTERM; kill -9 and null when it has not exited within `ms`. */
  terminate(ms?: number): Promise<Exit | null>;
  /** Starts it under the supervisor. */
  launch(): void;
  /** Starts it under the supervisor and waits until it is ready; throws when it is not. */
  start(): Promise<void>;
  /** Starts it without a supervisor and waits for its exit; kill -9 and null when it runs longer than `ms`. */
  tryStart(ms: number): Promise<{ exit: Exit | null; output: string }>;
}

export type Listener = 'api' | 'public' | 'mx' | 'submission';

export interface Crash extends Exit {
  /** The end of its log. */
  log: string;
}

/** A section of the configuration file. */
export interface Section {
  [key: string]: string | number | boolean | readonly (string | object)[] | Section;
}

export interface DaemonOptions {
  /** Merged over the defaults below. */
  config?: Section;
  dataDir?: string;
  env?: Record<string, string>;
  /** Options of Node itself. */
  nodeArgs?: readonly string[];
  /** Wraps the command line in another one: `['prlimit', …, ...command]`. */
  wrap?: (command: readonly string[]) => readonly string[];
}

/** The environment variable with the directory for the logs of all daemons. */
export const LOGS = 'POSTRIDER_CHAOS_LOGS';
/** The environment variable with the directory for CPU profiles of all daemons. */
export const PROFILES = 'POSTRIDER_CHAOS_PROFILES';

const PROGRAM = new URL('../../dist/main.js', import.meta.url).pathname;
const READY_TIMEOUT_MS = 30_000;
const STOP_TIMEOUT_MS = 45_000;
/** The pause of the supervisor before a restart, and the maximum number of restarts. */
const RESTART_DELAY_MS = 300;
const MAX_RESTARTS = 20;
/** Characters of a crashed daemon's log that are stored. */
const MAX_CRASH_LOG_LENGTH = 10_000;
/** The slowest retry schedule under which each scenario ends in time; the first suspension of a site is `first`, too. */
const RETRY = { first: '1s', greylisted: '1s', factor: 1.5, max: '3s' };

export async function startDaemon(context: ScenarioContext, options: DaemonOptions = {}): Promise<Daemon> {
  const {
    dataDir = join(context.dir, 'data'),
    env: extra = {},
    nodeArgs = [],
    wrap = (same) => same,
  } = options;
  const ports = {
    api: await freePort(),
    public: await freePort(),
    mx: await freePort(),
    submission: await freePort(),
  };
  const configFile = join(context.dir, 'postrider.toml');
  const config = merge(
    {
      hostname: 'mx.postrider.example',
      data: { dir: dataDir },
      api: { listen: `127.0.0.1:${ports.api}` },
      public: { listen: `127.0.0.1:${ports.public}` },
      console: { listen: 'off' },
      webhooks: { allowPrivateNetworks: true },
      mx: { listen: `127.0.0.1:${ports.mx}` },
      submission: { listen: `127.0.0.1:${ports.submission}` },
      delivery: {
        allowPrivateNetworks: true,
        workers: 2,
        egress: [{ name: 'main', publicAddress: '192.0.2.25' }],
        retry: RETRY,
      },
      // The scenarios fill disks of a few megabytes completely.
      limits: { freeDiskBytes: 0 },
      log: { level: 'warn' },
    },
    options.config ?? {},
  );
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  writeFileSync(configFile, stringify(config));
  const plainEnv = { PATH: process.env['PATH'] ?? '', HOME: process.env['HOME'] ?? '' };
  const program = [process.execPath, ...nodeArgs, PROGRAM, '--config', configFile];

  const baseUrl = `http://127.0.0.1:${ports.api}`;
  const crashes: Crash[] = [];
  let child: Child;
  let supervised = false;

  const spawn = () => {
    const profiles = process.env[PROFILES];
    const profiling =
      profiles === undefined ? [] : ['--cpu-prof', '--cpu-prof-dir', join(profiles, context.name)];
    const serve = [process.execPath, ...nodeArgs, ...profiling, PROGRAM, '--config', configFile, 'serve'];
    const [command = '', ...args] = wrap(serve);
    const started = startChild(command, args, { env: { ...plainEnv, ...extra }, cwd: context.dir });
    const logs = process.env[LOGS];
    if (logs !== undefined)
      void started.exited.then((exit) =>
        appendFileSync(join(logs, `${context.name}.log`), `${started.output}\n== ${JSON.stringify(exit)}\n`),
      );
    return started;
  };
  const supervise = () => {
    supervised = true;
    child = spawn();
    void child.exited.then(async (exit) => {
      if (!supervised) return;
      crashes.push({ ...exit, log: child.output.slice(-MAX_CRASH_LOG_LENGTH) });
      await pause(RESTART_DELAY_MS, context.signal);
      if (supervised && !context.signal.aborted && crashes.length <= MAX_RESTARTS) supervise();
    });
  };
  const probe = async (path: string, ms = 2000) => {
    try {
      const response = await fetch(baseUrl + path, { signal: AbortSignal.timeout(ms) });
      await response.arrayBuffer();
      return response.status;
    } catch {
      return null; // Refused, reset or late.
    }
  };
  const start = async () => {
    const before = crashes.length;
    supervise();
    await eventually(
      'the daemon to be ready',
      async () => {
        const crash = crashes[before + 2];
        if (crash !== undefined) throw new Error(`the daemon exits while it starts: ${crash.log}`);
        return (await probe('/readyz')) === 200;
      },
      { ms: READY_TIMEOUT_MS, everyMs: 50 },
    );
  };
  const end = async (signal: 'SIGTERM' | 'SIGKILL', ms: number) => {
    supervised = false;
    const exit = await within(ms, child.kill(signal));
    if (exit === null) await child.kill('SIGKILL');
    return exit;
  };
  const cli = async (...args: string[]) =>
    new Promise<string>((resolve, reject) => {
      const [command = '', ...rest] = [...program, ...args];
      execFile(command, rest, { env: plainEnv, cwd: context.dir }, (error, stdout, stderr) =>
        error === null
          ? resolve(stdout)
          : reject(new Error(`postrider ${args.join(' ')}: ${stdout}${stderr}`)),
      );
    });
  const account = async (name: string) => {
    const company = ['--company', name, '--address', 'Hauptstrasse 1, 10115 Berlin, DE'];
    const printed = await cli('account', 'create', '--name', name, ...company, '--json');
    const credentials: Credentials = JSON.parse(printed);
    return createApiClient(baseUrl, credentials);
  };

  context.defer(async () => {
    supervised = false;
    if (child?.running) await child.kill('SIGKILL');
  });
  await start();
  const api = await account('Kunde GmbH');
  return {
    baseUrl,
    dataDir,
    ports,
    api,
    crashes,
    get running() {
      return child.running;
    },
    get pid() {
      return child.pid;
    },
    cli,
    account,
    log: () => child.output,
    metric: async (name) => {
      try {
        const response = await fetch(`${baseUrl}/metrics`, { signal: AbortSignal.timeout(5000) });
        const text = await response.text();
        const value = new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'm').exec(text)?.[1];
        return value === undefined ? null : Number(value);
      } catch {
        return null; // Not running or not responding.
      }
    },
    probe,
    kill: async () => void (await end('SIGKILL', STOP_TIMEOUT_MS)),
    terminate: (ms = STOP_TIMEOUT_MS) => end('SIGTERM', ms),
    launch: supervise,
    start,
    tryStart: async (ms) => {
      child = spawn();
      const exit = await within(ms, child.exited);
      if (exit === null) await child.kill('SIGKILL');
      return { exit, output: child.output };
    },
  };
}

/** Merges the sections of `over` into those of `base`; other values replace those of `base`. */
export function merge(base: Section, over: Section): Section {
  const merged = { ...base };
  for (const [key, value] of Object.entries(over)) {
    const old = merged[key];
    merged[key] = isSection(old) && isSection(value) ? merge(old, value) : value;
  }
  return merged;
}

function isSection(value: Section[string] | undefined): value is Section {
  return typeof value === 'object' && !Array.isArray(value);
}
