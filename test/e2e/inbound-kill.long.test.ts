// Long: kills the daemon three times while it receives and parses mail for an account.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openDatabase } from '../../src/store/database/database.ts';
import { type RunningDaemon, startDaemon } from '../support/daemon.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { inboundAddress, receivedMails } from '../support/inbound.ts';
import { smtpClient } from '../support/smtp-client.ts';
import { verifiedDomain } from '../support/verified-domain.ts';

/*
 * The daemon is killed while it receives mail for an account and parses what it has received.
 *
 *   test: 8 mail servers ──SMTP──▶ postrider (kill -9, start) ──▶ event email_received
 *
 * A server that gets no reply sends its mail again. Each fourth mail has several parts in the database.
 */
const MAILS = 240;
const SERVERS = 8;
const KILLS_AT = [40, 100, 160];
const LONG_BYTES = 700_000;

describe('kill -9 while mail for an account is received', () => {
  let dns: DnsServer;
  let daemon: RunningDaemon;
  let mxPort: number;
  let address: string;

  beforeAll(async () => {
    mxPort = await freePort();
    dns = await startDnsServer();
    daemon = await startDaemon({
      'dns.resolvers': [dns.address],
      'mx.listen': `127.0.0.1:${mxPort}`,
      'log.level': 'warn',
    });
    const domain = await verifiedDomain(daemon, dns, 'kunde.example');
    address = await inboundAddress(daemon.api, domain, 'support');
  });
  afterAll(async () => {
    await daemon?.stop();
    await dns?.close();
  });

  const contentOf = (n: number) =>
    `From: ada${n}@absender.example\r\nSubject: mail ${n}\r\n\r\n${
      n % 4 === 0 ? `${'x'.repeat(70)}\r\n`.repeat(LONG_BYTES / 72) : `text ${n}\r\n`
    }`;

  it('loses no accepted mail, and reports each', async () => {
    const waiting = Array.from({ length: MAILS }, (_, n) => n);
    const accepted = new Set<number>();
    const kills: number[] = [];
    const restart: { done: Promise<void> | null } = { done: null };
    const killAndRestart = async () => {
      kills.push(accepted.size);
      await daemon.kill('SIGKILL');
      await daemon.restart();
      restart.done = null;
    };
    /** Reuses its connection until it breaks. */
    const server = async (own: number) => {
      let client: Awaited<ReturnType<typeof smtpClient>> | null = null;
      for (let n = waiting.shift(); n !== undefined; n = waiting.shift()) {
        try {
          if (client === null || client.closed) {
            client = await smtpClient(mxPort, { from: `127.0.${own}.1` });
            await client.say('EHLO mx.absender.example');
          }
          const reply = await client.mail(`ada${n}@absender.example`, address, contentOf(n));
          if (!reply.startsWith('250')) throw new Error(reply);
          accepted.add(n);
        } catch {
          // No reply: the mail may or may not have been accepted, so it is sent again.
          waiting.push(n);
          client?.destroy();
          client = null;
          await Promise.resolve(restart.done);
          await new Promise((resolve) => setTimeout(resolve, 20));
        }
        if (restart.done === null && accepted.size >= (KILLS_AT[kills.length] ?? Number.POSITIVE_INFINITY))
          restart.done = killAndRestart();
      }
      client?.destroy();
    };
    await Promise.all(Array.from({ length: SERVERS }, (_, own) => server(own)));
    await Promise.resolve(restart.done);
    expect(kills).toHaveLength(KILLS_AT.length);

    const mails = await eventually('all mail to be parsed', async () => {
      const found = await receivedMails(daemon.api);
      return found.every(({ status }) => status === 'parsed') ? found : null;
    });
    const numberOf = ({ subject }: { subject: unknown }) => Number(/^mail (\d+)$/.exec(String(subject))?.[1]);
    const stored = new Set(mails.map(numberOf));
    expect([...accepted].filter((n) => !stored.has(n))).toEqual([]);
    expect(accepted.size).toBe(MAILS);
    // Twice at most when the reply to the first one was lost.
    expect(mails.length).toBeLessThanOrEqual(MAILS + kills.length * SERVERS);

    const events = await daemon.api.allEvents({ event: 'email_received' });
    expect(events).toHaveLength(mails.length);
    expect(new Set(events.map(({ inboundId }) => inboundId))).toEqual(
      new Set(mails.map(({ inboundId }) => inboundId)),
    );
    for (const mail of mails.filter((mail) => numberOf(mail) % 10 === 0)) {
      const source = await daemon.api.call('GET', `/web-setup/inbound/${mail.inboundId}/raw`);
      expect(source.text).toBe(contentOf(numberOf(mail)));
    }
    // Sources whose mail was not accepted are removed.
    const db = openDatabase(daemon.dataDir);
    const sources = db.prepare<[], number>('SELECT count(*) FROM inbound_sources').pluck();
    await eventually('the sources of lost mail to be removed', () => sources.get() === mails.length);
    db.close();
    console.log(
      `killed after ${kills.join(', ')} of ${MAILS} replies: lost 0, stored twice ${mails.length - MAILS}`,
    );
  });
});
