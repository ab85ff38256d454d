// Long: kills the daemon while it receives a stream of bounces.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dsn } from '../smtp/mx/mails.ts';
import { type RunningDaemon, startDaemon } from '../support/daemon.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { publishMailHost, SHORT_MAIL } from '../support/recipients.ts';
import { smtpClient } from '../support/smtp-client.ts';
import { type Sink, startSink } from '../support/smtp-sink.ts';
import { verifiedDomain } from '../support/verified-domain.ts';

/*
 * The daemon is killed while it receives a stream of bounces and sends mail.
 *
 *   test: 8 reporters ──DSN──▶ postrider (kill -9, start) ◀──HTTP── test: a sender
 *                                  └──SMTP──▶ sink
 *
 * A reporter that gets no reply sends its report again, as a mail server does.
 */
const BOUNCES = 160;
const REPORTERS = 8;
const KILL_AT = 65;

describe('kill -9 in the middle of a stream of bounces', () => {
  let dns: DnsServer;
  let sink: Sink;
  let daemon: RunningDaemon;
  let mxPort: number;

  beforeAll(async () => {
    mxPort = await freePort();
    dns = await startDnsServer();
    sink = await startSink();
    daemon = await startDaemon({
      'dns.resolvers': [dns.address],
      'delivery.port': sink.port,
      'delivery.allowPrivateNetworks': true,
      'mx.listen': `127.0.0.1:${mxPort}`,
      'log.level': 'warn',
    });
    publishMailHost(dns, 'empfang.example');
    await verifiedDomain(daemon, dns, 'kunde.example');
  });
  afterAll(async () => {
    await daemon?.stop();
    await sink?.close();
    await dns?.close();
  });

  const send = (user: string) =>
    daemon.api.send({ ...SHORT_MAIL, from: 'a@kunde.example', to: `${user}@empfang.example` });

  it('loses no acknowledged report, and records none twice', async () => {
    for (let n = 0; n < BOUNCES; n += 20)
      await Promise.all(Array.from({ length: 20 }, (_, index) => send(`user${n + index}`)));
    const sent = await sink.waitFor(BOUNCES);
    const reports = sent.map(({ from, to }) => ({ from, recipient: to[0] ?? '' }));
    await eventually(
      'the queue to be empty',
      async () => (await daemon.metric('postrider_queue_messages')) === 0,
    );

    const acknowledged = new Set<string>();
    const kill: { done: Promise<number> | null } = { done: null };
    /** Returns the number of reports that were acknowledged before. */
    const killAndRestart = async () => {
      await daemon.kill('SIGKILL');
      const { size } = acknowledged;
      await daemon.restart();
      return size;
    };
    /** Reuses its connection until it breaks. */
    const reporter = async () => {
      let client: Awaited<ReturnType<typeof smtpClient>> | null = null;
      for (let report = reports.pop(); report !== undefined; report = reports.pop()) {
        try {
          if (client === null || client.closed) {
            client = await smtpClient(mxPort);
            await client.say('EHLO reporter.example');
          }
          const reply = await client.mail('', report.from, dsn({ recipient: report.recipient }));
          if (!reply.startsWith('250')) throw new Error(reply);
          acknowledged.add(report.recipient);
        } catch {
          // No reply: the report may or may not have been accepted, so it is sent again.
          reports.push(report);
          client?.destroy();
          client = null;
          await Promise.resolve(kill.done);
          await new Promise((resolve) => setTimeout(resolve, 20));
        }
        if (acknowledged.size >= KILL_AT) kill.done ??= killAndRestart();
      }
      client?.destroy();
    };
    const sending = new AbortController();
    const sender = async () => {
      for (let n = 0; !sending.signal.aborted; n++) await send(`later${n}`).catch(() => kill.done);
    };
    const sends = sender();
    await Promise.all(Array.from({ length: REPORTERS }, reporter));
    sending.abort();
    await sends;
    const acknowledgedBefore = await kill.done;

    const events = await daemon.api.allEvents({ event: 'email_bounced' });
    const recorded = events.map(({ recipient }) => recipient ?? '');
    expect([...acknowledged].filter((recipient) => !recorded.includes(recipient))).toEqual([]);
    expect(recorded).toHaveLength(BOUNCES);
    expect(new Set(recorded).size).toBe(BOUNCES);
    expect(acknowledgedBefore).toBeGreaterThanOrEqual(KILL_AT);
    console.log(`killed after ${acknowledgedBefore} of ${BOUNCES} replies: lost 0, recorded twice 0`);
  });
});
