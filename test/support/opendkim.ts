import { existsSync } from 'node:fs';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startChild } from './child.ts';
import { eventually } from './eventually.ts';
import { findProgram } from './required-programs.ts';
import { fixedKey } from './rsa-keys.ts';

/**
 * A real OpenDKIM that signs for one domain: a milter on a socket in a temporary folder. It signs as Postrider does: RSA of
 * 2048 bits, relaxed/relaxed, `From` oversigned. It sends no DNS queries.
 */
export interface OpenDkim {
  /** The value of Postfix's `smtpd_milters`. */
  milter: string;
  /** The configuration file, which identifies the process. */
  config: string;
  stop(): Promise<void>;
}

/** Starts OpenDKIM for a domain; resolves when its socket exists. */
export async function startOpenDkim(domain: string): Promise<OpenDkim> {
  const dir = await mkdtemp(join(tmpdir(), 'postrider-opendkim-'));
  // The mail server's user needs access to the socket, which mkdtemp denies.
  await chmod(dir, 0o711);
  const config = join(dir, 'opendkim.conf');
  const socket = join(dir, 'socket');
  await writeFile(join(dir, 'key.pem'), fixedKey(0).export({ type: 'pkcs8', format: 'pem' }), {
    mode: 0o600,
  });
  await writeFile(config, configuration(dir, domain, socket));

  const child = startChild(findProgram('opendkim') ?? 'opendkim', ['-f', '-x', config]);
  const stop = async () => {
    await child.kill('SIGKILL');
    await rm(dir, { recursive: true, force: true });
  };
  try {
    await eventually('the socket of OpenDKIM', () => {
      if (!child.running) throw new Error(`OpenDKIM ended: ${child.output}`);
      return existsSync(socket);
    });
  } catch (error) {
    await stop();
    throw error;
  }
  return { milter: `unix:${socket}`, config, stop };
}

function configuration(dir: string, domain: string, socket: string): string {
  return `
Background no
Socket local:${socket}
UMask 000
Mode s
Domain ${domain}
Selector bench
KeyFile ${dir}/key.pem
RequireSafeKeys no
Canonicalization relaxed/relaxed
OversignHeaders From
InternalHosts 127.0.0.1
SyslogSuccess no
`;
}
