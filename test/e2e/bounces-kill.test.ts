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
 * The power goes off in the middle of a stream of bounces, while sending goes on.
 *
 *   test: 8 reporters ──DSN──▶ postrider (kill -9, start) ◀──HTTP── test: a sender
 *                                  └──SMTP──▶ sink
 *
 * A reporter that gets no answer sends its report again, as a mail server would.
 */
const BOUNCES = 600;
const REPORTERS = 8;
const KILL_AT = 250;

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

  it('loses none that was answered, and tells of none twice', async () => {
    for (let n = 0; n < BOUNCES; n += 20)
      await Promise.all(Array.from({ length: 20 }, (_, index) => send(`user${n + index}`)));
    const sent = await sink.waitFor(BOUNCES);
    const reports = sent.map(({ from, to }) => ({ from, recipient: to[0] ?? '' }));
    await eventually(
      'the queue to be empty',
      async () => (await daemon.metric('postrider_queue_messages')) === 0,
    );

    const answered = new Set<string>();
    const kill: { done: Promise<Set<string>> | null } = { done: null };
    const killAndRestart = async () => {
      await daemon.kill('SIGKILL');
      const known = new Set(answered);
      await daemon.restart();
      return known;
    };
    /** Over one connection as long as it holds. */
    const reporter = async () => {
      let client: Awaited<ReturnType<typeof smtpClient>> | null = null;
      for (let report = reports.pop(); report !== undefined; report = reports.pop()) {
        try {
          if (client === null || client.closed) {
            client = await smtpClient(mxPort);
            await client.say('EHLO reporter.example');
          }
          const answer = await client.mail('', report.from, dsn({ recipient: report.recipient }));
          if (!answer.startsWith('250')) throw new Error(answer);
          answered.add(report.recipient);
        } catch {
          // Broken off: nobody knows whether it was taken, so it goes again.
          reports.push(report);
          client?.destroy();
          client = null;
          await Promise.resolve(kill.done);
          await new Promise((resolve) => setTimeout(resolve, 20));
        }
        if (answered.size >= KILL_AT) kill.done ??= killAndRestart();
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
    const answeredBefore = await kill.done;

    const events = await daemon.api.allEvents({ event: 'email_bounced' });
    const told = events.map(({ recipient }) => recipient ?? '');
    expect([...answered].filter((recipient) => !told.includes(recipient))).toEqual([]);
    expect(told).toHaveLength(BOUNCES);
    expect(new Set(told).size).toBe(BOUNCES);
    expect(answeredBefore?.size).toBeGreaterThanOrEqual(KILL_AT);
    console.log(
      `killed after ${answeredBefore?.size} of ${BOUNCES} answers: every one of them is an event, none is one twice`,
    );
  });
});
