import { execFile, execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, chown, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { findProgram } from '../support/required-programs.ts';

/**
 * A real Postfix as what we are compared with: takes mail on loopback, has a milter sign it, keeps it durably
 * and hands it on to one next hop. Its configuration and queue are in a temporary folder on the disk that the
 * benchmark uses; it is tuned for this work as its own documents say, and nothing that makes mail safe is
 * turned off.
 */
export interface PostfixReference {
  port: number;
  /** Of its master process. */
  pid: number;
  /** What `mail_version` says. */
  version: string;
  stop(): Promise<void>;
}

const run = promisify(execFile);

/** Why it cannot run here, null when it can. */
export function postfixReferenceFault(): string | null {
  const missing = ['postfix', 'postconf', 'smtp-source', 'opendkim'].filter(
    (name) => findProgram(name) === null,
  );
  if (missing.length > 0) return `${missing.join(', ')} not installed (packages postfix, opendkim)`;
  return process.getuid?.() === 0 ? null : 'Postfix can be started by root only';
}

export async function startPostfixReference(settings: {
  nextHop: { host: string; port: number };
  /** Connections to the next hop. */
  connections: number;
  /** Callers at once. */
  sessions: number;
  milter: string;
}): Promise<PostfixReference> {
  const port = await freePort();
  const dir = await mkdtemp(join(tmpdir(), 'postrider-reference-'));
  // Its user must get through to its folders; mkdtemp lets nobody.
  await chmod(dir, 0o755);
  const config = join(dir, 'etc');
  for (const folder of ['etc', 'queue', 'data']) await mkdir(join(dir, folder));
  const { stdout: user } = await run('id', ['-u', 'postfix']);
  await chown(join(dir, 'data'), Number(user), 0);
  const { nextHop, connections, sessions, milter } = settings;
  const hop = `[${nextHop.host}]:${nextHop.port}`;
  await writeFile(join(config, 'main.cf'), mainCf({ dir, hop, connections, milter }));
  await writeFile(join(config, 'master.cf'), masterCf({ port, connections, sessions }));

  const postfix = findProgram('postfix') ?? 'postfix';
  // It is a daemon of its own, so it would outlive a benchmark that forgot it.
  const stopWithUs = () => execFileSync(postfix, ['-c', config, 'abort'], { stdio: 'ignore' });
  await run(postfix, ['-c', config, 'start']);
  process.once('exit', stopWithUs);
  const { stdout: version } = await run('postconf', ['-c', config, '-h', 'mail_version']);
  const pid = Number(await readFile(join(dir, 'queue/pid/master.pid'), 'utf8'));
  return {
    port,
    pid,
    version: version.trim(),
    stop: async () => {
      process.off('exit', stopWithUs);
      await run(postfix, ['-c', config, 'abort']);
      await eventually('the end of Postfix', () => !existsSync(`/proc/${pid}`));
      await rm(dir, { recursive: true, force: true });
    },
  };
}

/** No host is looked up and nothing is logged to a file: what is left is the work that is compared. */
function mainCf(settings: { dir: string; hop: string; connections: number; milter: string }): string {
  const { dir, hop, connections, milter } = settings;
  return `
compatibility_level = 3.6
queue_directory = ${dir}/queue
data_directory = ${dir}/data
inet_interfaces = loopback-only
inet_protocols = ipv4
myhostname = reference.example
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
smtp_tls_security_level = none
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
`;
}
