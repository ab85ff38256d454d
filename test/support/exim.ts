import { existsSync } from 'node:fs';
import { chmod, chown, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { killIfRunning } from './child.ts';
import { eventually } from './eventually.ts';
import { freePort } from './free-port.ts';
import { startUnpackedServer, unpackedServerFault } from './unpacked-server.ts';

/**
 * A real Exim that accepts all mail for a domain and bounces it later: its mailboxes are over quota, mail to `slow` waits,
 * causes a warning and expires with `expireSlow`, and all other users are unknown. Its reports are sent to one host. Its
 * packages are unpacked in the folder EXIM_ROOT (`unpacked-server.ts`).
 */
export interface Exim {
  hostname: string;
  host: string;
  port: number;
  /** The text of a mailbox in mbox form; '' when it has no mail. Resolves when the queue is empty. */
  mailbox(user: string): Promise<string>;
  log(): Promise<string>;
  /** Lets the mail to `slow` expire: its next attempt is the last one. */
  expireSlow(): Promise<void>;
  stop(): Promise<void>;
}

/** An unused id, which is Exim's `Debian-exim`. */
export const EXIM_USER = 65_533;
const DELIVERY_USER = 65_534;
/** The file with which mail to `slow` expires. Not by a time, after which a slow machine would have sent no warning. */
const EXPIRED = 'expired';

/** Where its packages are unpacked. */
export function eximRoot(): string {
  return process.env['EXIM_ROOT'] ?? '/opt/exim';
}

/** Its program in that folder. */
export function eximProgram(): string {
  return join(eximRoot(), 'usr/sbin/exim4');
}

/** Why Exim cannot run here; null when it can. */
export function eximFault(): string | null {
  if (!existsSync(eximProgram()))
    return 'Exim (packages exim4-daemon-light and libidn12) is not unpacked at EXIM_ROOT';
  return unpackedServerFault('Exim');
}

/** Lines of its configuration. */
export interface EximConfiguration {
  /** Of the main part. */
  main?: string;
  /** Of the ACL at RCPT, before the others. */
  acl?: string;
  /** Of the ACL after the content. */
  dataAcl?: string;
  /** Drivers for AUTH. */
  authenticators?: string;
}

interface EximOptions extends EximConfiguration {
  hostname: string;
  domain: string;
  mailboxes: string[];
  host?: string;
  /** Default: a free one. */
  port?: number;
  /** The size of a mailbox in bytes. Default: 10, so that every mailbox is over quota. */
  quota?: number;
  reportsTo: { host: string; port: number };
}

export async function startExim(options: EximOptions): Promise<Exim> {
  const { hostname, host = '127.0.0.1' } = options;
  const port = options.port ?? (await freePort(host));
  const dir = await mkdtemp(join(tmpdir(), 'postrider-exim-'));
  await chmod(dir, 0o755);
  for (const folder of ['etc', 'etc/exim4', 'spool', 'log', 'mail']) await mkdir(join(dir, folder));
  for (const folder of ['spool', 'log']) await chown(join(dir, folder), EXIM_USER, EXIM_USER);
  await chown(join(dir, 'mail'), DELIVERY_USER, DELIVERY_USER);
  await writeFile(join(dir, 'etc/exim4/exim4.conf'), configuration({ ...options, dir, host, port }));
  const child = await startUnpackedServer({
    root: eximRoot(),
    dir,
    users: { 'Debian-exim': EXIM_USER },
    command: `${eximProgram()} -bdf -q1s`,
  });
  // There is no log before the first line.
  const log = () => readFile(join(dir, 'log/main'), 'utf8').catch(() => '');
  await eventually('Exim to listen', async () => {
    if (!child.running) throw new Error(`Exim ended: ${child.output}`);
    return (await log()).includes('listening for SMTP');
  });
  return {
    hostname,
    host,
    port,
    mailbox: async (user) => {
      await eventually('Exim to have an empty queue', async () => {
        const files = await readdir(join(dir, 'spool/input'), { recursive: true }).catch(() => []);
        return files.every((file) => !file.endsWith('-H') && !file.endsWith('-D'));
      });
      return readFile(join(dir, 'mail', user), 'latin1').catch(() => '');
    },
    log,
    expireSlow: () => writeFile(join(dir, EXPIRED), ''),
    stop: async () => {
      // A session ends with its connection only, which the client may keep.
      const sessions = await readFile(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8');
      child.signal('SIGTERM');
      for (const pid of sessions.split(' ').filter((text) => text !== '')) killIfRunning(Number(pid));
      await child.exited;
      await rm(dir, { recursive: true, force: true });
    },
  };
}

function configuration(options: EximOptions & { dir: string; host: string; port: number }): string {
  const {
    dir,
    hostname,
    domain,
    mailboxes,
    host,
    port,
    reportsTo,
    main = '',
    acl = '',
    dataAcl = '',
    authenticators = '',
    quota = 10,
  } = options;
  return `
primary_hostname = ${hostname}
exim_path = ${eximProgram()}
spool_directory = ${dir}/spool
log_file_path = ${dir}/log/%s
keep_environment =
local_interfaces = ${host}
daemon_smtp_ports = ${port}
${main.includes('tls_advertise_hosts') ? '' : 'tls_advertise_hosts ='}
host_lookup =
rfc1413_query_timeout = 0s
acl_smtp_rcpt = rcpt
acl_smtp_data = data
delay_warning = 1s:1h
${main}

begin acl
rcpt:
${acl}
  accept domains = ${domain}
  deny message = relay not permitted
data:
${dataAcl}
  accept

begin routers
waiting:
  driver = redirect
  domains = ${domain}
  local_parts = slow
  data = :defer: mailstore cannot be reached
  allow_defer
known:
  driver = accept
  domains = ${domain}
  local_parts = ${mailboxes.join(' : ')}
  transport = mailbox
back:
  driver = manualroute
  domains = ! ${domain}
  route_list = * ${reportsTo.host}
  self = send
  transport = reports

begin transports
mailbox:
  driver = appendfile
  file = ${dir}/mail/$local_part_data
  quota = ${quota}
  user = ${DELIVERY_USER}
  group = ${DELIVERY_USER}
reports:
  driver = smtp
  port = ${reportsTo.port}
  allow_localhost

begin retry
"\${if exists{${dir}/${EXPIRED}}{slow@${domain}}{none@${domain}}}" * F,1s,1s
* quota
* * F,1h,1s

begin authenticators
${authenticators}
`;
}
