import { chmodSync, mkdtempSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type EximConfiguration, startExim } from '../../support/exim.ts';
import { startPostfix } from '../../support/postfix.ts';
import type { PostfixService } from '../../support/postfix-services.ts';
import { AUTHORITY } from './environment.ts';
import type { RealServer, ReceivedMail } from './hosts.ts';

/** A real mail server as a host of a scenario, for the mailboxes of these users. */
interface RealServerOptions {
  /** The destination. */
  domain: string;
  users: readonly string[];
  /** The label of the host. Default: `mx`. */
  label?: string;
}

/**
 * A Postfix with a valid certificate. `parameters`: those of main.cf. `service`: a service that Postfix queries, and the
 * parameters with its endpoint.
 */
export function postfix(
  options: RealServerOptions & {
    parameters?: Record<string, string>;
    service?: { start(): Promise<PostfixService>; parameters(endpoint: string): Record<string, string> };
  },
) {
  const { domain, users, service, label = 'mx' } = options;
  const mailboxes = users.map((user) => `${user}@${domain}`);
  const hostname = `${label}.${domain}`;
  return {
    start: async (at: { host: string; port: number }): Promise<RealServer> => {
      const certificate = AUTHORITY.issue([hostname]);
      const started = (await service?.start()) ?? null;
      const parameters = {
        ...options.parameters,
        ...(started === null ? {} : service?.parameters(started.endpoint)),
      };
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
        stop: async () => {
          await server.stop();
          await started?.close();
        },
      };
    },
  };
}

/** An Exim that offers TLS with a valid certificate. */
export function exim(options: RealServerOptions & EximConfiguration) {
  const { domain, users, main = '', acl = '', dataAcl = '', authenticators = '', label = 'mx' } = options;
  const hostname = `${label}.${domain}`;
  return {
    start: async (at: { host: string; port: number }): Promise<RealServer> => {
      const { key, cert } = AUTHORITY.issue([hostname]);
      const folder = mkdtempSync(join(tmpdir(), 'postrider-exim-certificate-'));
      // Exim reads the file as another user.
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
        dataAcl,
        authenticators,
        quota: 10_000_000,
        // No scenario makes it send a report.
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
