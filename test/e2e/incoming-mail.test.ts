import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AUTO_REPLY, aggregateReport, arf, dsn, PLAIN_MAIL } from '../smtp/mx/mails.ts';
import type { CreatedDomain } from '../support/api-client.ts';
import { HOSTNAME, type RunningDaemon, startDaemon } from '../support/daemon.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { publishMailHost, SHORT_MAIL } from '../support/recipients.ts';
import { SIGNING_RECORD, signMail } from '../support/signed-mail.ts';
import { smtpClient } from '../support/smtp-client.ts';
import { type Sink, startSink } from '../support/smtp-sink.ts';
import { verifiedDomain } from '../support/verified-domain.ts';

/*
 * Incoming mail: the addresses and ids come from the delivered message alone.
 *
 *   test ──HTTP──▶ postrider ──SMTP──▶ sink: Return-Path, CFBL-Address, List-Unsubscribe, X-Postrider-Id
 *                      ▲                 │
 *                      └──── SMTP ───────┘ test, as the recipient's server or mail client
 */
type SinkMessage = Sink['messages'][number];

describe('incoming mail', () => {
  let dns: DnsServer;
  let sink: Sink;
  let daemon: RunningDaemon;
  let domain: CreatedDomain;
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
    });
    publishMailHost(dns, 'empfang.example');
    domain = await verifiedDomain(daemon, dns, 'kunde.example');
  });
  afterAll(async () => {
    await daemon?.stop();
    await sink?.close();
    await dns?.close();
  });

  const mailTo = (user: string) => ({
    ...SHORT_MAIL,
    from: 'a@kunde.example',
    to: `${user}@empfang.example`,
  });
  /** Sends; returns the message's id and the delivered message. */
  const send = async (user: string): Promise<{ id: string; mail: SinkMessage }> => {
    const { data } = await daemon.api.send(mailTo(user), { Prefer: 'wait=20' });
    const mail = sink.messages.find(({ to }) => to.includes(`${user}@empfang.example`));
    if (mail === undefined) throw new Error(`no mail for ${user} arrived`);
    return { id: data.messageId, mail };
  };
  /** Sends a message to the daemon; returns the reply to the final dot. */
  const deliver = async (to: string, content: string, from = '') => {
    const client = await smtpClient(mxPort);
    await client.say('EHLO mx.empfang.example');
    const reply = await client.mail(from, to, content);
    client.destroy();
    return reply;
  };
  const eventsOf = async (id: string) =>
    (await daemon.api.message(id)).timeline.flatMap(({ event }) => event ?? []);
  const field = ({ raw }: SinkMessage, name: string) =>
    new RegExp(`^${name}: (.*(?:\\r\\n[ \\t].*)*)`, 'im').exec(raw)?.[1]?.replaceAll(/\r\n[ \t]+/g, ' ') ??
    '';

  it('suppresses only the marketing stream after an unsigned complaint', async () => {
    const { id, mail } = await send('unsigned');
    const [, to = ''] = /^(\S+@\S+); report=arf$/.exec(field(mail, 'CFBL-Address')) ?? [];
    expect(await deliver(to, arf('abuse'), 'fbl@empfang.example')).toMatch(/^250 /);
    const { timeline } = await daemon.api.message(id);
    expect(timeline.at(-1)).toMatchObject({ event: 'email_complained', verified: false, suppressed: true });
    expect((await daemon.api.send(mailTo('unsigned'))).status).toBe(200);
  });

  it('suppresses the recipient after a complaint to CFBL-Address that their provider signed', async () => {
    dns.set('s1._domainkey.empfang.example', 'TXT', [SIGNING_RECORD.match(/.{1,255}/g) ?? []]);
    const { id, mail } = await send('cfbl');
    const [, to = ''] = /^(\S+@\S+); report=arf$/.exec(field(mail, 'CFBL-Address')) ?? [];
    const report = signMail(arf('abuse'), 'fbl@empfang.example', 'empfang.example');
    expect(await deliver(to, report, 'fbl@empfang.example')).toMatch(/^250 /);
    const message = await daemon.api.message(id);
    expect(message.status).toBe('complained');
    expect(message.timeline.at(-1)).toMatchObject({
      event: 'email_complained',
      source: 'arf',
      feedbackType: 'abuse',
      verified: true,
      suppressed: true,
    });
    const again = await daemon.api.send(mailTo('cfbl'));
    expect(again.error).toMatchObject({ code: 'RECIPIENT_SUPPRESSED', details: [{ reason: 'complaint' }] });
  });

  it('unsubscribes the recipient after a message to the mailto URL of List-Unsubscribe, once', async () => {
    const { id, mail } = await send('leaver');
    const [, to = ''] = /<mailto:([^>?]+)/.exec(field(mail, 'List-Unsubscribe')) ?? [];
    for (let n = 0; n < 2; n++)
      expect(await deliver(to, PLAIN_MAIL, 'leaver@empfang.example')).toMatch(/^250 /);
    const { timeline } = await daemon.api.message(id);
    const events = timeline.filter(({ event }) => event === 'email_unsubscribed');
    expect(events).toMatchObject([{ method: 'mailto' }]);
    const again = await daemon.api.send(mailTo('leaver'));
    expect(again.error.code).toBe('RECIPIENT_UNSUBSCRIBED');
  });

  it('records a bounce to the postmaster by the signed id in the returned message', async () => {
    const { id, mail } = await send('misdirected');
    const returned = `X-Postrider-Id: ${field(mail, 'X-Postrider-Id')}`;
    const report = dsn({ recipient: 'misdirected@empfang.example', returned });
    expect(await deliver(`postmaster@${HOSTNAME}`, report)).toMatch(/^250 /);
    expect(await eventsOf(id)).toEqual(['email_sent', 'email_delivered', 'email_bounced']);
  });

  it('records a bounce that arrives before the reply to its message', async () => {
    sink.program({ script: { dot: { reply: '250 2.0.0 OK', delayMs: 1500 } } });
    const { data } = await daemon.api.send(mailTo('hasty'));
    const verp = await eventually('the transaction to begin', () => {
      const all = sink.sessions.flatMap(({ commands }) => commands);
      const at = all.findIndex((command) => command.includes('hasty@empfang.example'));
      return at < 0 ? null : (/<(b-[^>]+)>/.exec(all[at - 1] ?? '')?.[1] ?? null);
    });
    expect(await deliver(verp, dsn({ recipient: 'hasty@empfang.example' }))).toMatch(/^250 /);
    expect((await daemon.api.message(data.messageId)).status).toBe('bounced');
    await sink.waitFor(sink.count + 1);
    sink.program({ script: {} });
    // The late 250 is stored as an attempt, but not as a delivery.
    await eventually('the attempt', async () => {
      const { timeline } = await daemon.api.message(data.messageId);
      return timeline.some(({ type }) => type === 'attempt');
    });
    expect(await eventsOf(data.messageId)).toEqual(['email_sent', 'email_bounced']);
    expect(await daemon.metric('postrider_queue_messages')).toBe(0);
    await send('after');
  });

  it('ignores an automatic reply', async () => {
    const { id, mail } = await send('away');
    expect(await deliver(mail.from, AUTO_REPLY, 'away@empfang.example')).toMatch(/^250 /);
    expect(await eventsOf(id)).toEqual(['email_sent', 'email_delivered']);
  });

  it('stores a DMARC report for its domain', async () => {
    expect(await deliver('dmarc@return-a.kunde.example', aggregateReport('kunde.example'))).toMatch(/^250 /);
    const { data } = await daemon.api.get(
      `/web-setup/domains/${domain.domainId}/reports?from=2026-01-01T00:00:00Z&to=2027-01-01T00:00:00Z`,
    );
    expect(data).toMatchObject({
      dmarc: { messages: 15, passed: 10, sources: [{ sourceIp: '192.0.2.25' }, { sourceIp: '203.0.113.9' }] },
    });
  });

  it('counts messages by purpose and result', async () => {
    const metrics = await (await fetch(`${daemon.baseUrl}/metrics`)).text();
    expect(metrics).toContain('postrider_mail_in_total{purpose="feedback",result="recorded"} 2');
    expect(metrics).toContain('postrider_mail_in_total{purpose="unsubscribe",result="opted-out"} 2');
    expect(metrics).toContain('postrider_mail_in_total{purpose="bounce",result="kept"} 1');
  });
});
