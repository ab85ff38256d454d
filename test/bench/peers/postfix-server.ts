import { execFile, execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, chown, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { eventually } from '../../support/eventually.ts';
import { freePort } from '../../support/free-port.ts';
import { findProgram } from '../../support/required-programs.ts';
import type { PeerOptions } from './peer.ts';

/**
 * Postfix for the benchmark: accepts mail on loopback, stores it durably, has a milter sign it, and
 * relays it to one next hop. Its configuration and queue are in a temporary directory on the disk that the benchmark
 * uses; it is tuned as its documentation recommends, without any loss of durability.
 */
export interface PostfixServer {
  port: number;
  /** The pid of its master process. */
  pid: number;
  /** `mail_version`. */
  version: string;
  stop(): Promise<void>;
}

const run = promisify(execFile);

/** Why the reference cannot run on this machine; null when it can. */
export function postfixFault(): string | null {
  const missing = ['postfix', 'postconf', 'smtp-source', 'opendkim'].filter(
    (name) => findProgram(name) === null,
  );
  if (missing.length > 0) return `${missing.join(', ')} not installed (packages postfix, opendkim)`;
  return process.getuid?.() === 0 ? null : 'Postfix can be started by root only';
}

export async function startPostfixServer(options: PeerOptions & { milter: string }): Promise<PostfixServer> {
  const port = await freePort();
  const dir = await mkdtemp(join(tmpdir(), 'postrider-postfix-'));
  // Postfix runs under its own user; mkdtemp creates the directory for the owner only.
  await chmod(dir, 0o755);
  const config = join(dir, 'etc');
  for (const folder of ['etc', 'queue', 'data']) await mkdir(join(dir, folder));
  const { stdout: user } = await run('id', ['-u', 'postfix']);
  await chown(join(dir, 'data'), Number(user), 0);
  const { nextHop, connections, sessions, milter, tls } = options;
  const hop = `[${nextHop.host}]:${nextHop.port}`;
  await writeFile(join(config, 'main.cf'), mainCf({ dir, hop, connections, milter, tls }));
  await writeFile(join(config, 'master.cf'), masterCf({ port, connections, sessions }));

  const postfix = findProgram('postfix') ?? 'postfix';
  // Postfix detaches itself and would outlive the benchmark.
  const abortOnExit = () => execFileSync(postfix, ['-c', config, 'abort'], { stdio: 'ignore' });
  await run(postfix, ['-c', config, 'start']);
  process.once('exit', abortOnExit);
  const { stdout: version } = await run('postconf', ['-c', config, '-h', 'mail_version']);
  const pid = Number(await readFile(join(dir, 'queue/pid/master.pid'), 'utf8'));
  return {
    port,
    pid,
    version: version.trim(),
    stop: async () => {
      process.off('exit', abortOnExit);
      await run(postfix, ['-c', config, 'abort']);
      await eventually('the end of Postfix', () => !existsSync(`/proc/${pid}`));
      await rm(dir, { recursive: true, force: true });
    },
  };
}

/** Without DNS queries and log files, which the comparison does not include. */
function mainCf(settings: {
  dir: string;
  hop: string;
  connections: number;
  milter: string;
  tls: boolean;
}): string {
  const { dir, hop, connections, milter, tls } = settings;
  return `
compatibility_level = 3.6
queue_directory = ${dir}/queue
data_directory = ${dir}/data
inet_interfaces = loopback-only
inet_protocols = ipv4
myhostname = postfix.example
mydestination =
mynetworks = 127.0.0.0/8
alias_maps =
alias_database =
local_recipient_maps =
smtpd_relay_restrictions = permit_mynetworks, reject
smtpd_peername_lookup = no
disable_dns_lookups = yes
smtp_host_lookup = native
smtputf8_enable = no
smtpd_milters = ${milter}
relayhost = ${hop}
smtp_connection_cache_destinations = ${hop}
smtp_tls_security_level = ${tls ? 'may' : 'none'}
smtp_tls_connection_reuse = yes
smtp_destination_concurrency_limit = ${connections}
initial_destination_concurrency = ${connections}
default_process_limit = 200
in_flow_delay = 0
`;
}

function masterCf(settings: { port: number; connections: number; sessions: number }): string {
  const { port, connections, sessions } = settings;
  return `
127.0.0.1:${port} inet n - n - ${sessions} smtpd
cleanup   unix n - n -   0 cleanup
qmgr      unix n - n 300 1 qmgr
rewrite   unix - - n -   - trivial-rewrite
bounce    unix - - n -   0 bounce
defer     unix - - n -   0 bounce
trace     unix - - n -   0 bounce
proxymap  unix - - n -   - proxymap
smtp      unix - - n -   ${connections} smtp
error     unix - - n -   - error
retry     unix - - n -   - error
anvil     unix - - n -   1 anvil
scache    unix - - n -   1 scache
tlsproxy  unix - - n -   0 tlsproxy
tlsmgr    unix - - n 1000? 1 tlsmgr
`;
}
