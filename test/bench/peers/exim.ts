import { chmod, chown, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EXIM_USER, eximFault, eximProgram, eximRoot } from '../../support/exim.ts';
import { freePort } from '../../support/free-port.ts';
import { fixedKey } from '../../support/rsa-keys.ts';
import { startUnpackedServer } from '../../support/unpacked-server.ts';
import { controlGroupFault, createControlGroup } from './control-group.ts';
import type { PeerOptions, PeerServer } from './peer.ts';
import { untilReady } from './ready.ts';

/*
 * Exim with its own DKIM, as an administrator sets it up on a host that only relays; its packages are unpacked in EXIM_ROOT.
 * What differs from its defaults, and why:
 *
 * - smtp_accept_max, smtp_accept_max_per_connection, smtp_accept_queue_per_connection: all clients are served, and each
 *   message is delivered when it arrives. By default the 11th of a connection waits for a queue runner. Runners
 *   (`-q1s`, `-qq1s`) took more CPU time, at no higher rate.
 * - deliver_drop_privilege: a delivery continues in the process that received the message, instead of a new start of
 *   Exim as root. It is possible on hosts without local deliveries.
 * - split_spool_directory: for long queues.
 * - log_file_path: syslog, which does not run here; Postfix logs there, too.
 *
 * The queue is flushed to disk as always. Each message has its own connection to the sink: Exim reuses a connection for
 * messages that had to wait.
 */

/** Why Exim cannot be compared with; null when it can. */
export function eximPeerFault(): string | null {
  return eximFault() ?? controlGroupFault();
}

/** Starts Exim, which signs for the domain of the benchmark. */
export async function startEximWithDkim(options: PeerOptions): Promise<PeerServer> {
  const port = await freePort();
  const dir = await mkdtemp(join(tmpdir(), 'postrider-exim-'));
  // Exim runs under its own user; mkdtemp creates the directory for the owner only.
  await chmod(dir, 0o755);
  for (const folder of ['etc', 'etc/exim4', 'spool']) await mkdir(join(dir, folder));
  await writeFile(join(dir, 'key.pem'), fixedKey(0).export({ type: 'pkcs8', format: 'pem' }), {
    mode: 0o600,
  });
  for (const path of ['spool', 'key.pem']) await chown(join(dir, path), EXIM_USER, EXIM_USER);
  await writeFile(join(dir, 'etc/exim4/exim4.conf'), configuration({ ...options, dir, port }));
  const group = createControlGroup('exim');
  const stop = async () => {
    await group.end();
    await rm(dir, { recursive: true, force: true });
  };
  try {
    const child = await startUnpackedServer({
      root: eximRoot(),
      dir,
      users: { 'Debian-exim': EXIM_USER },
      before: [group.enter],
      command: `${eximProgram()} -bdf`,
    });
    const greeting = await untilReady('Exim', child, port);
    return { name: `Exim ${/Exim (\S+)/.exec(greeting)?.[1]} with DKIM`, port, cpu: group.cpu, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function configuration(options: PeerOptions & { dir: string; port: number }): string {
  const { dir, port, nextHop, sessions, tls } = options;
  return `
primary_hostname = exim.example
exim_path = ${eximProgram()}
spool_directory = ${dir}/spool
split_spool_directory
log_file_path = syslog
keep_environment =
local_interfaces = 127.0.0.1
daemon_smtp_ports = ${port}
tls_advertise_hosts =
host_lookup =
acl_smtp_rcpt = relay
smtp_accept_max = ${2 * sessions}
smtp_accept_max_per_connection = 0
smtp_accept_queue_per_connection = 0
deliver_drop_privilege

begin acl
relay:
  accept

begin routers
sink:
  driver = manualroute
  route_list = * ${nextHop.host}
  self = send
  transport = sink

begin transports
sink:
  driver = smtp
  port = ${nextHop.port}
  allow_localhost
  ${tls ? '' : 'hosts_avoid_tls = *'}
  dkim_domain = sender.example
  dkim_selector = bench
  dkim_private_key = ${dir}/key.pem
  dkim_canon = relaxed

begin retry
* * F,1h,1s
`;
}
