import { chmodSync, mkdtempSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startExim } from '../../support/exim.ts';
import { startPostfix } from '../../support/postfix.ts';
import { AUTHORITY } from './environment.ts';
import type { RealServer, ReceivedMail } from './hosts.ts';

/** A real mail server as a host of a scenario, for the mailboxes of these users. */
interface RealServerOptions {
  /** The destination. */
  domain: string;
  users: readonly string[];
}

/** A Postfix whose certificate is valid. `parameters`: of main.cf. */
export function postfix(options: RealServerOptions & { parameters?: Record<string, string> }) {
  const { domain, users, parameters = {} } = options;
  const mailboxes = users.map((user) => `${user}@${domain}`);
  const hostname = `mx.${domain}`;
  return {
    start: async (at: { host: string; port: number }): Promise<RealServer> => {
      const certificate = AUTHORITY.issue([hostname]);
      const server = await startPostfix({ hostname, mailboxes, certificate, parameters, ...at });
      return {
        received: async () => {
          await server.idle();
          const mails = await Promise.all(
            mailboxes.map(async (mailbox) =>
              (await server.mail(mailbox)).map((mail) => received(mailbox, mail.toString('latin1'))),
            ),
          );
          return mails.flat();
        },
        stop: server.stop,
      };
    },
  };
}

/** An Exim that offers TLS with a valid certificate. `main`, `acl`: lines of its configuration. */
export function exim(options: RealServerOptions & { main?: string; acl?: string }) {
  const { domain, users, main = '', acl = '' } = options;
  const hostname = `mx.${domain}`;
  return {
    start: async (at: { host: string; port: number }): Promise<RealServer> => {
      const { key, cert } = AUTHORITY.issue([hostname]);
      const folder = mkdtempSync(join(tmpdir(), 'postrider-exim-certificate-'));
      // Exim reads it as another user.
      chmodSync(folder, 0o755);
      const file = join(folder, 'server.pem');
      await writeFile(file, cert + key, { mode: 0o644 });
      const tls = `tls_advertise_hosts = *\ntls_certificate = ${file}\n`;
      const server = await startExim({
        ...at,
        hostname,
        domain,
        mailboxes: [...users],
        main: tls + main,
        acl,
        quota: 10_000_000,
        // It has nothing to report.
        reportsTo: { host: '127.0.0.1', port: 9 },
      });
      return {
        received: async () => {
          const boxes = await Promise.all(
            users.map(async (user) => [user, await server.mailbox(user)] as const),
          );
          return boxes.flatMap(([user, text]) => {
            const mails = text.split(/^From .*\n/m).filter((mail) => mail.trim() !== '');
            return mails.map((mail) => received(`${user}@${domain}`, mail));
          });
        },
        stop: server.stop,
      };
    },
  };
}

function received(mailbox: string, mail: string): ReceivedMail {
  return { to: [mailbox], raw: mail.replace(/\r?\n/g, '\r\n') };
}
