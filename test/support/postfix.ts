import { execFile, execFileSync } from 'node:child_process';
import { chmod, chown, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { isIPv6 } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type Certificate, selfSigned } from './certificates.ts';
import { eventually } from './eventually.ts';
import { freePort } from './free-port.ts';
import { findProgram } from './required-programs.ts';

/**
 * A real Postfix as the recipient's mail server, with configuration, queue and log in a temporary folder, on a loopback
 * address, with STARTTLS and a self-signed certificate. It delivers to maildirs and rejects unknown users at RCPT:
 *
 *     const postfix = await startPostfix({ hostname: 'mx.empfang.example', mailboxes: ['ada@empfang.example'] });
 *     … an MX record to postfix.hostname, an A record to postfix.host, delivery.port = postfix.port …
 *     const [mail] = await postfix.waitForMail('ada@empfang.example', 1);
 *
 * With `accepts` it accepts mail for all users and bounces it later: unknown users, and others as configured in a
 * transport map (`error:5.2.2 full`, `retry:4.4.1 down`). Its reports are sent to one host, over TLS.
 *
 * Needs root, as every Postfix does; deliveries are made by an ordinary user.
 */
export interface Postfix {
  hostname: string;
  host: string;
  port: number;
  /** The messages stored for a mailbox, byte for byte, in no order. */
  mail(mailbox: string): Promise<Buffer[]>;
  /** Waits until the mailbox has `count` messages. */
  waitForMail(mailbox: string, count: number): Promise<Buffer[]>;
  /** Lets the mail to `recipient`, which Postfix has deferred, expire: the next attempt is the last one. */
  expire(recipient: string): Promise<void>;
  /** Resolves when everything that was accepted is delivered. */
  idle(): Promise<void>;
  log(): Promise<string>;
  stop(): Promise<void>;
}

/** `nobody` on Debian: any user except root, for which `virtual` does not deliver. */
const DELIVERY_USER = 65534;

const run = promisify(execFile);

export interface PostfixOptions {
  hostname: string;
  mailboxes: string[];
  host?: string;
  /** Default: a free one. */
  port?: number;
  /** Of its certificate. Default: a self-signed one. */
  certificate?: Certificate;
  /** Further parameters of main.cf. */
  parameters?: Record<string, string>;
  accepts?: {
    /** The destination of its reports. */
    reportsTo: { host: string; port: number };
    /** Recipient to transport. */
    transports: Record<string, string>;
  };
}

export async function startPostfix(options: PostfixOptions): Promise<Postfix> {
  const { hostname, mailboxes, host = '127.0.0.1', parameters = {}, accepts } = options;
  const port = options.port ?? (await freePort(host));
  const dir = await mkdtemp(join(tmpdir(), 'postrider-postfix-'));
  const config = join(dir, 'etc');
  const logFile = join(dir, 'log');
  // Postfix's users need access to their folders, which mkdtemp denies.
  await chmod(dir, 0o755);
  for (const folder of ['etc', 'queue', 'data', 'mail']) await mkdir(join(dir, folder));
  await chown(join(dir, 'mail'), DELIVERY_USER, DELIVERY_USER);
  await chown(join(dir, 'data'), await numericId('postfix'), 0);

  const { key, cert } = options.certificate ?? selfSigned([hostname]);
  await writeFile(join(config, 'server.pem'), key + cert, { mode: 0o600 });
  await writeFile(
    join(config, 'mailboxes'),
    mailboxes.map((mailbox) => `${mailbox} ${folderOf(mailbox)}\n`).join(''),
  );
  await writeFile(
    join(config, 'transports'),
    Object.entries(accepts?.transports ?? {})
      .map(([recipient, transport]) => `${recipient} ${transport}\n`)
      .join(''),
  );
  const domains = domainsOf(mailboxes);
  await writeFile(
    join(config, 'main.cf'),
    mainCf({ dir, hostname, domains, protocol: isIPv6(host) ? 'ipv6' : 'ipv4' }) +
      (accepts === undefined ? '' : acceptingCf(dir, accepts.reportsTo)) +
      Object.entries(parameters)
        .map(([name, value]) => `${name} = ${value}\n`)
        .join(''),
  );
  await writeFile(join(config, 'master.cf'), masterCf(host, port));

  const postfix = findProgram('postfix') ?? 'postfix';
  // There is no log before the first line.
  const log = () => readFile(logFile, 'utf8').catch(() => '');
  // A separate daemon, which would outlive a test that does not stop it.
  const abortOnExit = () => execFileSync(postfix, ['-c', config, 'abort']);
  await run(postfix, ['-c', config, 'start']).catch(async (error: unknown) => {
    throw new Error(`Postfix does not start: ${await log()}`, { cause: error });
  });
  process.once('exit', abortOnExit);
  const mail = (mailbox: string) => readMaildir(join(dir, 'mail', folderOf(mailbox)));
  return {
    hostname,
    host,
    port,
    mail,
    waitForMail: async (mailbox, count) => {
      await eventually(
        `${count} messages for ${mailbox}`,
        async () => (await mail(mailbox)).length >= count,
      ).catch(async (error: unknown) => {
        throw new Error(`Postfix logged:\n${await log()}`, { cause: error });
      });
      return mail(mailbox);
    },
    expire: async (recipient) => {
      const deferral = new RegExp(
        `: ([0-9A-F]+): to=<${recipient.replaceAll('.', '\\.')}>, .*status=deferred`,
      );
      const id = await eventually(
        `Postfix to defer mail to ${recipient}`,
        async () => deferral.exec(await log())?.[1] ?? null,
      );
      await run(findProgram('postsuper') ?? 'postsuper', ['-c', config, '-e', id]);
    },
    idle: () =>
      eventually('Postfix to have an empty queue', async () => {
        const queues = ['maildrop', 'incoming', 'active', 'deferred'].map((name) => join(dir, 'queue', name));
        const files = await Promise.all(queues.map((queue) => readdir(queue)));
        return files.flat().length === 0;
      }).then(() => undefined),
    log,
    stop: async () => {
      process.off('exit', abortOnExit);
      await run(postfix, ['-c', config, 'stop']);
      await rm(dir, { recursive: true, force: true });
    },
  };
}

async function numericId(user: string): Promise<number> {
  const { stdout } = await run('id', ['-u', user]);
  return Number(stdout);
}

function domainsOf(mailboxes: string[]): string[] {
  return [...new Set(mailboxes.map((mailbox) => mailbox.slice(mailbox.lastIndexOf('@') + 1)))];
}

/** The slash at its end makes it a maildir. */
function folderOf(mailbox: string): string {
  return `${mailbox}/`;
}

async function readMaildir(folder: string): Promise<Buffer[]> {
  // Postfix creates the folder with the first message.
  const names = await readdir(join(folder, 'new')).catch(() => []);
  return Promise.all(names.map((name) => readFile(join(folder, 'new', name))));
}

function mainCf(options: {
  dir: string;
  hostname: string;
  domains: string[];
  protocol: 'ipv4' | 'ipv6';
}): string {
  const { dir, hostname, domains, protocol } = options;
  return `
compatibility_level = 3.6
queue_directory = ${dir}/queue
data_directory = ${dir}/data
maillog_file = ${dir}/log
maillog_file_prefixes = ${dir}
inet_interfaces = loopback-only
inet_protocols = ${protocol}
myhostname = ${hostname}
mydestination =
mynetworks =
alias_maps =
alias_database =
local_recipient_maps =
virtual_mailbox_domains = ${domains.join(' ')}
virtual_mailbox_maps = texthash:${dir}/etc/mailboxes
virtual_mailbox_base = ${dir}/mail
virtual_uid_maps = static:${DELIVERY_USER}
virtual_gid_maps = static:${DELIVERY_USER}
smtpd_relay_restrictions = reject_unauth_destination
smtpd_tls_security_level = may
smtpd_tls_chain_files = ${dir}/etc/server.pem
smtpd_tls_received_header = yes
disable_dns_lookups = yes
smtpd_peername_lookup = no
`;
}

/** Retries every second, and warns after one. Nothing expires by itself: a slow machine must not decide what is reported. */
function acceptingCf(dir: string, { host, port }: { host: string; port: number }): string {
  return `
smtpd_reject_unlisted_recipient = no
transport_maps = texthash:${dir}/etc/transports
relayhost = [${isIPv6(host) ? `ipv6:${host}` : host}]:${port}
smtp_tls_security_level = encrypt
smtp_tls_loglevel = 1
queue_run_delay = 1s
minimal_backoff_time = 1s
maximal_backoff_time = 1s
delay_warning_time = 1s
maximal_queue_lifetime = 1d
bounce_queue_lifetime = 1d
`;
}

function masterCf(host: string, port: number): string {
  return `
${isIPv6(host) ? `[${host}]` : host}:${port} inet n - n - - smtpd
pickup    unix n - n 60  1 pickup
cleanup   unix n - n -   0 cleanup
qmgr      unix n - n 300 1 qmgr
tlsmgr    unix - - n 1000? 1 tlsmgr
rewrite   unix - - n -   - trivial-rewrite
bounce    unix - - n -   0 bounce
defer     unix - - n -   0 bounce
trace     unix - - n -   0 bounce
verify    unix - - n -   1 verify
proxymap  unix - - n -   - proxymap
error     unix - - n -   - error
retry     unix - - n -   - error
discard   unix - - n -   - discard
virtual   unix - n n -   - virtual
smtp      unix - - n -   - smtp
anvil     unix - - n -   1 anvil
postlog   unix-dgram n - n - 1 postlogd
`;
}
