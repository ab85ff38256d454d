import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, chown, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../support/free-port.ts';
import { fixedKey } from '../../support/rsa-keys.ts';
import { overlay, startUnpackedServer, unpackedServerFault } from '../../support/unpacked-server.ts';
import { controlGroupFault, createControlGroup } from './control-group.ts';
import type { PeerOptions, PeerServer } from './peer.ts';
import { untilReady } from './ready.ts';

/*
 * OpenSMTPD with the filter dkimsign; the packages of both are unpacked in OPENSMTPD_ROOT. What differs from its defaults:
 *
 * - smtp limit max-mails: the clients send all messages over their connections; by default a connection ends after 100.
 * - mta limit task-hiwat, task-lowat, task-release: it opens a connection for every two messages that wait, so twice the
 *   connections that the others have may wait. By default 50, of which 10 at a time are replaced.
 * - mta limit max-conn-…: above what that allows. By default 5 connections to a route; one that meets a limit is tried again
 *   after 5 or 10 seconds.
 * - mta limit conn-delay-…, reconn-delay-route, session-mail-max: no pauses of seconds between connections to one host,
 *   which has agreed to the load, and no end of a connection after 100 messages.
 * - resolv.conf `lookup file`: no DNS queries, as for the others.
 *
 * The queue is flushed to disk as always. It connects again only every ten seconds after it had nothing to do, so the rate
 * of a short run is lower than what it sustains for hours; its CPU time is the same.
 */

/** Unused ids. */
const USERS = { opensmtpd: 65_532, opensmtpq: 65_531, dkimsign: 65_530 };

/** Why OpenSMTPD cannot be compared with; null when it can. */
export function openSmtpdFault(): string | null {
  if (![program(), signer()].every((file) => existsSync(file)))
    return 'OpenSMTPD (packages opensmtpd, opensmtpd-filter-dkimsign, libopensmtpd0 and libevent-2.1-7) is not unpacked at OPENSMTPD_ROOT';
  return unpackedServerFault('OpenSMTPD') ?? controlGroupFault();
}

/** Starts OpenSMTPD, whose filter signs for the domain of the benchmark. */
export async function startOpenSmtpdWithDkimsign(options: PeerOptions): Promise<PeerServer> {
  const port = await freePort();
  const dir = await mkdtemp(join(tmpdir(), 'postrider-opensmtpd-'));
  // Its processes run under their own users; mkdtemp creates the directory for the owner only.
  await chmod(dir, 0o755);
  for (const folder of ['etc', 'run', 'spool', 'spool/smtpd', 'queue'])
    await mkdir(join(dir, folder), { mode: 0o711 });
  await writeFile(join(dir, 'key.pem'), fixedKey(0).export({ type: 'pkcs8', format: 'pem' }), {
    mode: 0o600,
  });
  await chown(join(dir, 'key.pem'), USERS.dkimsign, USERS.dkimsign);
  await writeFile(join(dir, 'etc/resolv.conf'), 'lookup file\n');
  await writeFile(join(dir, 'smtpd.conf'), configuration({ ...options, dir, port }), { mode: 0o600 });
  const group = createControlGroup('opensmtpd');
  const stop = async () => {
    await group.end();
    await rm(dir, { recursive: true, force: true });
  };
  try {
    const child = await startUnpackedServer({
      root: root(),
      dir,
      users: USERS,
      before: [
        group.enter,
        overlay('/var/lib', join(root(), 'var/lib')),
        overlay('/var/spool', join(dir, 'spool')),
        `mount --bind ${dir}/queue /var/spool/smtpd`,
        `mount --bind ${dir}/run /run`,
      ],
      command: `${program()} -F -f ${dir}/smtpd.conf`,
    });
    await untilReady('OpenSMTPD', child, port);
    return { name: `OpenSMTPD ${version()} + dkimsign`, port, cpu: group.cpu, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function root(): string {
  return process.env['OPENSMTPD_ROOT'] ?? '/opt/opensmtpd';
}

function program(): string {
  return join(root(), 'usr/sbin/smtpd');
}

/** As `6.8.0p2`. */
function version(): string {
  const env = { ...process.env, LD_LIBRARY_PATH: join(root(), 'usr/lib/x86_64-linux-gnu') };
  // It prints its version and usage to stderr.
  const { stderr } = spawnSync(program(), ['-h'], { env, encoding: 'utf8' });
  return /OpenSMTPD (\S+)/.exec(stderr)?.[1] ?? '';
}

function signer(): string {
  return join(root(), 'usr/libexec/opensmtpd/filter-dkimsign');
}

function configuration(options: PeerOptions & { dir: string; port: number }): string {
  const { dir, port, nextHop, connections, tls } = options;
  const scheme = tls ? 'smtp' : 'smtp+notls';
  return `
filter dkim proc-exec "${signer()} -c relaxed/relaxed -d sender.example -s bench -k ${dir}/key.pem" user dkimsign group dkimsign
smtp limit max-mails 1000000
mta limit ${['host', 'route', 'connector', 'relay', 'domain', 'source'].map((of) => `max-conn-per-${of} 1000`).join(' ')}
mta limit conn-delay-route 0 conn-delay-relay 0 reconn-delay-route 0 session-mail-max 1000 task-hiwat ${2 * connections} task-lowat ${connections} task-release ${connections}
listen on 127.0.0.1 port ${port} hostname opensmtpd.example filter dkim
action sink relay host ${scheme}://${nextHop.host}:${nextHop.port}
match from any for any action sink
`;
}
