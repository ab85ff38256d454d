import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dsn } from '../smtp/mx/mails.ts';
import type { MessageData } from '../support/api-client.ts';
import { type RunningDaemon, startDaemon } from '../support/daemon.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { eventually } from '../support/eventually.ts';
import { type Exim, eximFault, startExim } from '../support/exim.ts';
import { freePort } from '../support/free-port.ts';
import { faultsInEvents, readLedger } from '../support/ledger.ts';
import { type Postfix, startPostfix } from '../support/postfix.ts';
import { publishMailHost, SHORT_MAIL } from '../support/recipients.ts';
import { requirementsOf, requirePrograms } from '../support/required-programs.ts';
import { smtpClient } from '../support/smtp-client.ts';
import { type Sink, startSink } from '../support/smtp-sink.ts';
import { verifiedDomain } from '../support/verified-domain.ts';

/*
 * Asynchronous bounces: a server accepts every message and reports failures by DSN (RFC 3464).
 *
 *   test ──HTTP──▶ postrider ──SMTP──▶ Postfix at 127.0.0.2
 *                      ▲                  │ ada@ exists, full@ is over quota, slow@ cannot be reached for now,
 *                      └── DSN, STARTTLS ─┘ other users do not exist
 */
const required = requirePrograms('postfix');
const eximRequired = requirementsOf([eximFault()].filter((fault) => fault !== null));

describe.skipIf(required.missing)(`bounces from Postfix${required.reason}`, () => {
  let dns: DnsServer;
  let postfix: Postfix;
  let daemon: RunningDaemon;
  let mxPort: number;

  beforeAll(async () => {
    mxPort = await freePort();
    dns = await startDnsServer();
    postfix = await startPostfix({
      hostname: 'mx.empfang.example',
      mailboxes: ['ada@empfang.example'],
      host: '127.0.0.2',
      accepts: {
        reportsTo: { host: '127.0.0.1', port: mxPort },
        transports: {
          'full@empfang.example': 'error:5.2.2 The recipient mailbox is over quota',
          'slow@empfang.example': 'retry:4.4.1 connect to mailstore: Connection timed out',
        },
      },
    });
    daemon = await startDaemon({
      'dns.resolvers': [dns.address],
      'delivery.port': postfix.port,
      'delivery.allowPrivateNetworks': true,
      'mx.listen': `127.0.0.1:${mxPort}`,
    });
    publishMailHost(dns, 'empfang.example', postfix.host);
    await verifiedDomain(daemon, dns, 'kunde.example');
  });
  afterAll(async () => {
    await daemon?.stop();
    await postfix?.stop();
    await dns?.close();
  });

  const send = async (user: string) => {
    const mail = { ...SHORT_MAIL, from: 'a@kunde.example', to: `${user}@empfang.example` };
    return (await daemon.api.send(mail, { Prefer: 'wait=20' })).data.messageId;
  };
  const waitForEvent = (messageId: string, kind: string): Promise<MessageData> =>
    eventually(
      `${kind} of ${messageId}`,
      async () => {
        const message = await daemon.api.message(messageId);
        return message.timeline.some(({ event }) => event === kind) ? message : null;
      },
      { everyMs: 100 },
    ).catch(async (error: unknown) => {
      throw new Error(`Postfix logged: ${await postfix.log()}`, { cause: error });
    });
  const last = (message: MessageData, kind: string) =>
    message.timeline.findLast(({ event }) => event === kind);

  it('records a hard bounce for an unknown user after the delivery', async () => {
    const message = await waitForEvent(await send('niemand'), 'email_bounced');
    expect(message.status).toBe('bounced');
    expect(message.timeline.map(({ event }) => event)).toEqual([
      'email_sent',
      undefined,
      'email_delivered',
      'email_bounced',
    ]);
    expect(last(message, 'email_bounced')).toMatchObject({
      bounceType: 'hard',
      classification: 'invalid-recipient',
      enhancedCode: '5.1.1',
      source: 'dsn',
      suppressed: true,
      recipient: 'niemand@empfang.example',
    });
    const again = await daemon.api.send({
      ...SHORT_MAIL,
      from: 'a@kunde.example',
      to: 'niemand@empfang.example',
    });
    expect([again.status, again.error.code]).toEqual([403, 'RECIPIENT_SUPPRESSED']);
  });

  it('receives reports over TLS with its self-signed certificate', async () => {
    await expect.poll(postfix.log).toMatch(/Untrusted TLS connection established to 127\.0\.0\.1.*TLSv1\.3/);
  });

  it('records soft bounces for a mailbox over quota, and suppresses it after five', async () => {
    const suppressed: unknown[] = [];
    for (let n = 0; n < 5; n++) {
      const message = await waitForEvent(await send('full'), 'email_bounced');
      const bounce = last(message, 'email_bounced');
      expect(bounce).toMatchObject({
        bounceType: 'soft',
        classification: 'mailbox-full',
        enhancedCode: '5.2.2',
        source: 'dsn',
      });
      suppressed.push(bounce?.['suppressed']);
    }
    expect(suppressed).toEqual([false, false, false, false, true]);
    const again = await daemon.api.send({
      ...SHORT_MAIL,
      from: 'a@kunde.example',
      to: 'full@empfang.example',
    });
    expect(again.error).toMatchObject({
      code: 'RECIPIENT_SUPPRESSED',
      details: [{ reason: 'soft_bounces' }],
    });
  });

  it('records a delay report and the bounce after it', async () => {
    const id = await send('slow');
    const delayed = await waitForEvent(id, 'email_delayed');
    expect(delayed.status).toBe('delivered');
    expect(last(delayed, 'email_delayed')).toMatchObject({
      source: 'dsn',
      classification: 'network-error',
      enhancedCode: '4.4.1',
    });
    await postfix.expire('slow@empfang.example');
    const bounced = await waitForEvent(id, 'email_bounced');
    expect(last(bounced, 'email_bounced')).toMatchObject({ bounceType: 'soft', suppressed: false });
    expect(bounced.timeline.filter(({ event }) => event === 'email_delayed')).toHaveLength(1);
  });

  it('records a repeated report once', async () => {
    const id = await send('ada');
    const to = await eventually('the delivery', async () => {
      const log = await postfix.log();
      const queueId = /: ([0-9A-F]+): to=<ada@empfang\.example>/.exec(log)?.[1];
      return new RegExp(`: ${queueId}: from=<(b-[a-z0-9]+@[^>]+)>`).exec(log)?.[1] ?? null;
    });
    const client = await smtpClient(mxPort);
    await client.say('EHLO mx.empfang.example');
    const mail = dsn({ recipient: 'ada@empfang.example' });
    for (let n = 0; n < 2; n++) expect(await client.mail('', to, mail)).toMatch(/^250 /);
    client.destroy();
    const { status, timeline } = await daemon.api.message(id);
    expect(status).toBe('bounced');
    expect(timeline.filter(({ event }) => event === 'email_bounced')).toHaveLength(1);
  });

  it('agrees with Postfix on the outcome of every message', async () => {
    const ledger = await readLedger(daemon.api);
    expect(ledger).toEqual({ accepted: 8, delivered: 0, bounced: 8, failed: 0, queued: 0 });
    const bounces = await daemon.api.allEvents({ event: 'email_bounced' });
    expect(bounces).toHaveLength(8);
    expect(await faultsInEvents(daemon.api)).toEqual([]);
    const refused = [...(await postfix.log()).matchAll(/relay=127\.0\.0\.1.* status=(?!sent)\w+ .*/g)];
    expect(refused.map(([line]) => line)).toEqual([]);
  });
});

/*
 * Reports of Exim name the recipient in X-Failed-Recipients and have no status codes. A repeater sends each of them
 * twice, as a server does when the reply to the final dot is lost:
 *
 *   test ──HTTP──▶ postrider ──SMTP──▶ Exim at 127.0.0.3
 *                      ▲                  │
 *                      └═══ repeater ◀────┘
 */
describe.skipIf(eximRequired.missing)(`bounces from Exim, each sent twice${eximRequired.reason}`, () => {
  let dns: DnsServer;
  let server: Exim;
  let repeater: Sink;
  let daemon: RunningDaemon;
  /** The replies to both copies of each report. */
  const replies: Promise<string[]>[] = [];

  beforeAll(async () => {
    const mxPort = await freePort();
    const sendTwice = async ({ from, to, raw }: Sink['messages'][number]) => {
      const client = await smtpClient(mxPort);
      await client.say('EHLO mx.empfang.example');
      const both: string[] = [];
      for (let n = 0; n < 2; n++) both.push(await client.mail(from, to, raw));
      client.destroy();
      return both;
    };
    dns = await startDnsServer();
    repeater = await startSink({ onMessage: (report) => void replies.push(sendTwice(report)) });
    server = await startExim({
      hostname: 'mx.empfang.example',
      domain: 'empfang.example',
      mailboxes: ['full'],
      host: '127.0.0.3',
      reportsTo: { host: repeater.host, port: repeater.port },
    });
    daemon = await startDaemon({
      'dns.resolvers': [dns.address],
      'delivery.port': server.port,
      'delivery.allowPrivateNetworks': true,
      'mx.listen': `127.0.0.1:${mxPort}`,
    });
    publishMailHost(dns, 'empfang.example', server.host);
    await verifiedDomain(daemon, dns, 'kunde.example');
  });
  afterAll(async () => {
    // Senders of reports stop before the daemon; Exim waits for the daemon's idle connections.
    await repeater?.close();
    await Promise.allSettled(replies);
    await daemon?.stop();
    await server?.stop();
    await dns?.close();
  });

  const mailTo = (user: string) => ({
    ...SHORT_MAIL,
    from: 'a@kunde.example',
    to: `${user}@empfang.example`,
  });
  const send = async (user: string) =>
    (await daemon.api.send(mailTo(user), { Prefer: 'wait=20' })).data.messageId;
  /** Waits for the event and for the replies to both copies of the report. */
  const waitForBoth = async (messageId: string, kind: string): Promise<MessageData> => {
    await eventually(`${kind} of ${messageId}`, async () => {
      const { timeline } = await daemon.api.message(messageId);
      return timeline.some(({ event }) => event === kind);
    }).catch(async (error: unknown) => {
      throw new Error(`Exim logged: ${await server.log()}`, { cause: error });
    });
    await Promise.all(replies);
    return daemon.api.message(messageId);
  };
  const eventsOf = ({ timeline }: MessageData) => timeline.flatMap(({ event }) => event ?? []);
  const last = ({ timeline }: MessageData) => timeline.at(-1);

  it('records a hard bounce for an unknown user, and suppresses the address', async () => {
    const message = await waitForBoth(await send('niemand'), 'email_bounced');
    expect(message.status).toBe('bounced');
    expect(eventsOf(message)).toEqual(['email_sent', 'email_delivered', 'email_bounced']);
    expect(last(message)).toMatchObject({
      bounceType: 'hard',
      classification: 'invalid-recipient',
      source: 'dsn',
      recipient: 'niemand@empfang.example',
      suppressed: true,
    });
    const again = await daemon.api.send(mailTo('niemand'));
    expect(again.error).toMatchObject({
      code: 'RECIPIENT_SUPPRESSED',
      details: [{ reason: 'hard_bounce' }],
    });
  });

  it('counts each report of a mailbox over quota once', async () => {
    for (const suppressed of [false, false, false, false, true]) {
      const message = await waitForBoth(await send('full'), 'email_bounced');
      expect(eventsOf(message)).toEqual(['email_sent', 'email_delivered', 'email_bounced']);
      expect(last(message)).toMatchObject({
        bounceType: 'soft',
        classification: 'mailbox-full',
        suppressed,
      });
    }
    const again = await daemon.api.send(mailTo('full'));
    expect(again.error).toMatchObject({
      code: 'RECIPIENT_SUPPRESSED',
      details: [{ reason: 'soft_bounces' }],
    });
  });

  it('records one delay and the bounce after it', async () => {
    const id = await send('slow');
    const delayed = await waitForBoth(id, 'email_delayed');
    expect(eventsOf(delayed).filter((kind) => kind === 'email_delayed')).toHaveLength(1);
    await server.expireSlow();
    const bounced = await waitForBoth(id, 'email_bounced');
    expect(eventsOf(bounced)).toEqual(['email_sent', 'email_delivered', 'email_delayed', 'email_bounced']);
    expect(last(bounced)).toMatchObject({ bounceType: 'soft', source: 'dsn', suppressed: false });
  });

  it('has accepted every report and recorded each once', async () => {
    const all = await Promise.all(replies);
    expect(all.flat().filter((reply) => !reply.startsWith('250'))).toEqual([]);
    // Seven bounces and one delay.
    expect(all.length).toBeGreaterThanOrEqual(8);
    expect(await daemon.api.allEvents({ event: 'email_bounced' })).toHaveLength(7);
    expect(await daemon.api.allEvents({ event: 'email_delayed' })).toHaveLength(1);
    expect(await faultsInEvents(daemon.api)).toEqual([]);
  });
});
