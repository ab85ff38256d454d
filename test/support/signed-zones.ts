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
 * DNSSEC with real programs: zones that Knot DNS signs, behind a validating Unbound with a trust anchor for each. All other
 * names are forwarded to another resolver and are insecure.
 *
 *     const dnssec = await startSignedZones(dns.address, { 'signed.example': ['mx.signed.example. 60 A 127.0.0.2'] });
 *     … POSTRIDER_DNS__RESOLVERS=["<dnssec.address>"] …
 */
export interface SignedZones {
  /** `127.0.0.1:port` of the validating resolver. */
  address: string;
  stop(): Promise<void>;
}

export interface SignedZonesOptions {
  /** Zones whose trust anchor is wrong: all of their answers are bogus. */
  bogus?: readonly string[];
}

const HOST = '127.0.0.1';
/** A digest that matches no key. */
const WRONG_DIGEST = 'ab'.repeat(32);

const run = promisify(execFile);

/** `zones`: the lines of each zone file; SOA and NS are added. `forwardTo`: `ip:port`. */
export async function startSignedZones(
  forwardTo: string,
  zones: Record<string, readonly string[]>,
  { bogus = [] }: SignedZonesOptions = {},
): Promise<SignedZones> {
  const dir = await mkdtemp(join(tmpdir(), 'postrider-signed-'));
  const names = Object.keys(zones);
  const knotPort = await freePort(HOST);
  const knotConfig = join(dir, 'knot.conf');
  await writeFile(knotConfig, knotConfiguration(dir, knotPort, names));
  for (const [zone, lines] of Object.entries(zones))
    await writeFile(join(dir, `${zone}.zone`), `${[...apex(zone), ...lines].join('\n')}\n`);
  const knotd = startChild(program('knotd'), ['--config', knotConfig]);
  const control = (...args: string[]) =>
    run(program('knotc'), ['--socket', join(dir, 'control'), '--blocking', ...args]);
  await eventually('knotd to have signed its zones', async () => {
    if (!knotd.running) throw new Error(`knotd ended: ${knotd.output}`);
    return Promise.all(names.map((zone) => control('zone-read', zone, '@', 'RRSIG'))).then(
      () => true,
      () => false,
    );
  });

  const anchors = await Promise.all(
    names.map(async (zone) => {
      const { stdout } = await run(program('keymgr'), ['--config', knotConfig, zone, 'ds']);
      const sha256 = stdout.split('\n').find((line) => / 2 [0-9a-f]{64}$/.test(line));
      if (sha256 === undefined) throw new Error(`keymgr printed no DS of ${zone}: ${stdout}`);
      return bogus.includes(zone) ? sha256.replace(/[0-9a-f]{64}$/, WRONG_DIGEST) : sha256;
    }),
  );
  const port = await freePort(HOST);
  const unboundConfig = join(dir, 'unbound.conf');
  await writeFile(unboundConfig, unboundConfiguration({ dir, port, knotPort, forwardTo, names, anchors }));
  const unbound = startChild(program('unbound'), ['-d', '-c', unboundConfig]);
  await eventually('unbound to answer', async () => {
    if (!unbound.running) throw new Error(`unbound ended: ${unbound.output}`);
    return run(program('kdig'), [
      `@${HOST}`,
      '-p',
      String(port),
      '+time=1',
      '+retry=0',
      names[0] ?? '.',
      'SOA',
    ]).then(
      ({ stdout }) => stdout.includes('NOERROR') || stdout.includes('SERVFAIL'),
      () => false,
    );
  });
  return {
    address: `${HOST}:${port}`,
    stop: async () => {
      await unbound.kill('SIGTERM');
      await knotd.kill('SIGTERM');
      await rm(dir, { recursive: true, force: true });
    },
  };
}

function apex(zone: string): string[] {
  return [
    `${zone}. 60 IN SOA ns.${zone}. hostmaster.${zone}. 1 3600 600 86400 60`,
    `${zone}. 60 IN NS ns.${zone}.`,
    `ns.${zone}. 60 IN A ${HOST}`,
  ];
}

function knotConfiguration(dir: string, port: number, zones: readonly string[]): string {
  return `
server:
    rundir: "${dir}"
    listen: "${HOST}@${port}"
    udp-workers: 1
    tcp-workers: 1
    background-workers: 1
control:
    listen: "${join(dir, 'control')}"
log:
  - target: "stderr"
    any: "warning"
database:
    storage: "${dir}"
policy:
  - id: "single"
    single-type-signing: on
    algorithm: "ecdsap256sha256"
template:
  - id: "default"
    storage: "${dir}"
    file: "%s.zone"
    zonefile-sync: -1
    zonefile-load: "difference-no-serial"
    journal-content: "all"
    dnssec-signing: on
    dnssec-policy: "single"
zone:
${zones.map((zone) => `  - domain: "${zone}"`).join('\n')}
`;
}

interface UnboundOptions {
  dir: string;
  port: number;
  knotPort: number;
  forwardTo: string;
  names: readonly string[];
  anchors: readonly string[];
}

function unboundConfiguration({ dir, port, knotPort, forwardTo, names, anchors }: UnboundOptions): string {
  return `
server:
    directory: "${dir}"
    chroot: ""
    username: ""
    pidfile: ""
    use-syslog: no
    interface: ${HOST}
    port: ${port}
    access-control: 127.0.0.0/8 allow
    do-not-query-localhost: no
    do-ip6: no
    num-threads: 1
    module-config: "validator iterator"
    cache-max-ttl: 0
    cache-max-negative-ttl: 0
    harden-below-nxdomain: no
    aggressive-nsec: no
    qname-minimisation: no
    local-zone: "example." nodefault
    local-zone: "test." nodefault
    local-zone: "invalid." nodefault
${anchors.map((anchor) => `    trust-anchor: "${anchor}"`).join('\n')}
remote-control:
    control-enable: no
${names.map((name) => `stub-zone:\n    name: "${name}"\n    stub-addr: ${HOST}@${knotPort}`).join('\n')}
forward-zone:
    name: "."
    forward-addr: ${forwardTo.replace(':', '@')}
`;
}

function program(name: string): string {
  const file = findProgram(name);
  if (file === null) throw new Error(`${name} is not installed`);
  return file;
}
