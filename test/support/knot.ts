import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { startChild } from './child.ts';
import { eventually } from './eventually.ts';
import { freePort } from './free-port.ts';
import { findProgram } from './required-programs.ts';

/**
 * A real authoritative name server (Knot DNS) on a loopback address, with its own folder and control socket. It serves
 * the records in the form that the product prints, so that a record that is invalid for real servers fails here:
 *
 *     const knot = await startKnot();
 *     await knot.serve('kunde.example', answer.data.dnsRecords);
 *     await knot.serve('example', []);            // a parent zone, so that its other names do not exist
 *     … POSTRIDER_DNS__RESOLVERS=["<knot.address>"] …
 *
 * It refuses queries for names outside of its zones.
 */
export interface Knot {
  /** `127.0.0.1:port`, for `dns.resolvers`. */
  address: string;
  host: string;
  port: number;
  /** Serves a zone, or a new version of it; resolves when it is loaded. */
  serve(zone: string, records: readonly PrintedRecord[]): Promise<void>;
  /** Serves a zone from the lines of a zone file; SOA and NS are added. */
  serveLines(zone: string, lines: readonly string[]): Promise<void>;
  stop(): Promise<void>;
}

/** A record as the API or `postrider zone --json` prints it. */
export interface PrintedRecord {
  type: string;
  name: string;
  value: string;
  ttl?: number;
  priority?: number;
  /** The strings of a TXT record that does not fit into one. */
  chunks?: string[];
}

/** One second, so that tests that change a zone need not wait for caches. */
const DEFAULT_TTL = 1;

const run = promisify(execFile);

export async function startKnot(): Promise<Knot> {
  const host = '127.0.0.1';
  const port = await freePort(host);
  const dir = await mkdtemp(join(tmpdir(), 'postrider-knot-'));
  const config = join(dir, 'knot.conf');
  const socket = join(dir, 'control');
  const zones = new Map<string, { serial: number }>();

  const writeConfig = () =>
    writeFile(config, configuration({ dir, host, port, socket, zones: [...zones.keys()] }));
  const control = (...args: string[]) => run(program('knotc'), ['--socket', socket, '--blocking', ...args]);

  await writeConfig();
  const knotd = startChild(program('knotd'), ['--config', config]);
  await eventually('knotd to answer on its control socket', async () => {
    if (!knotd.running) throw new Error(`knotd ended: ${knotd.output}`);
    return control('status').then(
      () => true,
      () => false,
    );
  });

  const serveLines = async (zone: string, lines: readonly string[]) => {
    const known = zones.get(zone);
    const serial = (known?.serial ?? 0) + 1;
    const file = join(dir, `${zone}.zone`);
    await writeFile(file, `${[...apex(zone, serial), ...lines].join('\n')}\n`);
    zones.set(zone, { serial });
    if (!known) await writeConfig();
    // Knot would continue to serve the previous version: an invalid zone must fail the test.
    await run(program('knotc'), ['--config', config, 'zone-check', zone]);
    if (!known) await control('reload');
    await control('zone-reload', zone);
  };

  return {
    address: `${host}:${port}`,
    host,
    port,
    serveLines,
    serve: (zone, records) => serveLines(zone, records.map(zoneLine)),
    stop: async () => {
      await knotd.kill('SIGTERM');
      await rm(dir, { recursive: true, force: true });
    },
  };
}

/** A line of a zone file. A TXT value is one string unless the record has `chunks`. */
function zoneLine({ type, name, value, ttl = DEFAULT_TTL, priority, chunks }: PrintedRecord): string {
  const data = {
    TXT: () => (chunks ?? [value]).map((string) => `"${string.replace(/["\\]/g, '\\$&')}"`).join(' '),
    MX: () => `${priority ?? ''} ${absolute(value)}`,
    CNAME: () => absolute(value),
  }[type];
  return `${absolute(name)} ${ttl} IN ${type} ${data ? data() : value}`;
}

function apex(zone: string, serial: number): string[] {
  const name = absolute(zone);
  const server = `ns.name-server.invalid.`;
  return [
    `${name} 1 IN SOA ${server} hostmaster.invalid. ${serial} 3600 600 86400 1`,
    `${name} 1 IN NS ${server}`,
  ];
}

function absolute(name: string): string {
  return name.endsWith('.') ? name : `${name}.`;
}

function configuration(options: {
  dir: string;
  host: string;
  port: number;
  socket: string;
  zones: string[];
}): string {
  const { dir, host, port, socket, zones } = options;
  return `
server:
    rundir: "${dir}"
    listen: "${host}@${port}"
    udp-workers: 1
    tcp-workers: 1
    background-workers: 1
control:
    listen: "${socket}"
log:
  - target: "stderr"
    any: "warning"
database:
    storage: "${dir}"
template:
  - id: "default"
    storage: "${dir}"
    file: "%s.zone"
    semantic-checks: "on"
    zonefile-sync: -1
    journal-content: "none"
${zones.length === 0 ? '' : 'zone:'}
${zones.map((zone) => `  - domain: "${zone}"`).join('\n')}
`;
}

function program(name: string): string {
  const file = findProgram(name);
  if (file === null) throw new Error(`${name} is not installed`);
  return file;
}
