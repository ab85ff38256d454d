import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { startChild } from './child.ts';
import { findProgram } from './required-programs.ts';

/**
 * A real secondary name server (Knot DNS) of a zone: it transfers the zone from its primary, validates it, and answers
 * from its own copy.
 */
export interface KnotSecondary {
  host: string;
  port: number;
  /** Starts the server. Its port is chosen before, because the primary has to know it. */
  start(): void;
  /** The output so far. */
  log(): string;
  stop(): Promise<void>;
}

export interface KnotSecondaryOptions {
  zone: string;
  port: number;
  primary: { host: string; port: number };
}

const HOST = '127.0.0.1';

export async function createKnotSecondary({
  zone,
  port,
  primary,
}: KnotSecondaryOptions): Promise<KnotSecondary> {
  const dir = await mkdtemp(join(tmpdir(), 'postrider-knot-secondary-'));
  const config = join(dir, 'knot.conf');
  await writeFile(
    config,
    `
server:
    rundir: "${dir}"
    listen: "${HOST}@${port}"
    udp-workers: 1
    tcp-workers: 1
    background-workers: 1
control:
    listen: "${dir}/control"
log:
  - target: "stderr"
    any: "info"
database:
    storage: "${dir}"
remote:
  - id: primary
    address: "${primary.host}@${primary.port}"
acl:
  - id: primary
    address: "${primary.host}"
    action: notify
zone:
  - domain: "${zone}"
    storage: "${dir}"
    file: "${zone}.zone"
    master: primary
    acl: primary
    semantic-checks: on
`,
  );
  let knotd: ReturnType<typeof startChild> | null = null;
  return {
    host: HOST,
    port,
    start: () => {
      knotd = startChild(findProgram('knotd') ?? 'knotd', ['--config', config]);
    },
    log: () => knotd?.output ?? '',
    stop: async () => {
      await knotd?.kill('SIGTERM');
      await rm(dir, { recursive: true, force: true });
    },
  };
}

/** The output of `kdig`, a line for each record, without comments. */
export async function kdig(server: { host: string; port: number }, ...args: string[]): Promise<string[]> {
  const all = [`@${server.host}`, '-p', String(server.port), '+noall', '+answer', ...args];
  const { stdout } = await promisify(execFile)('kdig', all);
  return stdout
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith(';'))
    .map((line) => line.replace(/\s+/g, ' '));
}

/** The whole output of `kdig`. */
export async function kdigOutput(server: { host: string; port: number }, ...args: string[]): Promise<string> {
  const all = [`@${server.host}`, '-p', String(server.port), ...args];
  return (await promisify(execFile)('kdig', all)).stdout;
}
