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
 * What a recipient's side does with a mail, by nothing but what stands in the mail.
 *
 *   test ──HTTP──▶ postrider ──SMTP──▶ sink: Return-Path, CFBL-Address, List-Unsubscribe, X-Postrider-Id
 *                      ▲                 │
 *                      └──── SMTP ───────┘ test, as the recipient's server or mail program
 */
type SinkMessage = Sink['messages'][number];

describe('mail that comes back', () => {
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
  /** Sends, and returns the message's id and the mail as it arrived. */
  const send = async (user: string): Promise<{ id: string; mail: SinkMessage }> => {
    const { data } = await daemon.api.send(mailTo(user), { Prefer: 'wait=20' });
    const mail = sink.messages.find(({ to }) => to.includes(`${user}@empfang.example`));
    if (mail === undefined) throw new Error('it did not arrive');
    return { id: data.messageId, mail };
  };
  /** The server's answer to the final dot. */
  const comeBack = async (to: string, content: string, from = '') => {
    const client = await smtpClient(mxPort);
    await client.say('EHLO mx.empfang.example');
    const answer = await client.mail(from, to, content);
    client.destroy();
    return answer;
  };
  const kinds = async (id: string) =>
    (await daemon.api.message(id)).timeline.flatMap(({ event }) => event ?? []);
  const field = ({ raw }: SinkMessage, name: string) =>
    new RegExp(`^${name}: (.*(?:\\r\\n[ \\t].*)*)`, 'im').exec(raw)?.[1]?.replaceAll(/\r\n[ \t]+/g, ' ') ??
    '';

  it('a complaint without a signature suppresses the marketing stream only', async () => {
    const { id, mail } = await send('unsigned');
    const [, to = ''] = /^(\S+@\S+); report=arf$/.exec(field(mail, 'CFBL-Address')) ?? [];
    expect(await comeBack(to, arf('abuse'), 'fbl@empfang.example')).toMatch(/^250 /);
    const { timeline } = await daemon.api.message(id);
    expect(timeline.at(-1)).toMatchObject({ event: 'email_complained', verified: false, suppressed: true });
    expect((await daemon.api.send(mailTo('unsigned'))).status).toBe(200);
  });

  it('a complaint, sent where CFBL-Address says and signed by the recipient’s provider', async () => {
    dns.set('s1._domainkey.empfang.example', 'TXT', [SIGNING_RECORD.match(/.{1,255}/g) ?? []]);
    const { id, mail } = await send('cfbl');
    const [, to = ''] = /^(\S+@\S+); report=arf$/.exec(field(mail, 'CFBL-Address')) ?? [];
    const report = signMail(arf('abuse'), 'fbl@empfang.example', 'empfang.example');
    expect(await comeBack(to, report, 'fbl@empfang.example')).toMatch(/^250 /);
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

  it('an opt-out, mailed where List-Unsubscribe says', async () => {
    const { id, mail } = await send('leaver');
    const [, to = ''] = /<mailto:([^>?]+)/.exec(field(mail, 'List-Unsubscribe')) ?? [];
    for (let n = 0; n < 2; n++)
      expect(await comeBack(to, PLAIN_MAIL, 'leaver@empfang.example')).toMatch(/^250 /);
    const { timeline } = await daemon.api.message(id);
    const events = timeline.filter(({ event }) => event === 'email_unsubscribed');
    expect(events).toMatchObject([{ method: 'mailto' }]);
    const again = await daemon.api.send(mailTo('leaver'));
    expect(again.error.code).toBe('RECIPIENT_UNSUBSCRIBED');
  });

  it('a bounce to the postmaster, with our signed id in it', async () => {
    const { id, mail } = await send('mislaid');
    const returned = `X-Postrider-Id: ${field(mail, 'X-Postrider-Id')}`;
    const report = dsn({ recipient: 'mislaid@empfang.example', returned });
    expect(await comeBack(`postmaster@${HOSTNAME}`, report)).toMatch(/^250 /);
    expect(await kinds(id)).toEqual(['email_sent', 'email_delivered', 'email_bounced']);
  });

  it('a bounce that overtakes the answer to its mail', async () => {
    sink.program({ script: { dot: { reply: '250 2.0.0 taken at last', delayMs: 1500 } } });
    const { data } = await daemon.api.send(mailTo('hasty'));
    const verp = await eventually('the transaction to begin', () => {
      const all = sink.sessions.flatMap(({ commands }) => commands);
      const at = all.findIndex((command) => command.includes('hasty@empfang.example'));
      return at < 0 ? null : (/<(b-[^>]+)>/.exec(all[at - 1] ?? '')?.[1] ?? null);
    });
    expect(await comeBack(verp, dsn({ recipient: 'hasty@empfang.example' }))).toMatch(/^250 /);
    expect((await daemon.api.message(data.messageId)).status).toBe('bounced');
    await sink.waitFor(sink.count + 1);
    sink.program({ script: {} });
    // What the late 250 says is kept as an attempt, and is no delivery any more.
    await eventually('the attempt', async () => {
      const { timeline } = await daemon.api.message(data.messageId);
      return timeline.some(({ type }) => type === 'attempt');
    });
    expect(await kinds(data.messageId)).toEqual(['email_sent', 'email_bounced']);
    expect(await daemon.metric('postrider_queue_messages')).toBe(0);
    await send('after');
  });

  it('an automatic answer changes nothing', async () => {
    const { id, mail } = await send('away');
    expect(await comeBack(mail.from, AUTO_REPLY, 'away@empfang.example')).toMatch(/^250 /);
    expect(await kinds(id)).toEqual(['email_sent', 'email_delivered']);
  });

  it('a DMARC report is shown with the domain', async () => {
    expect(await comeBack('dmarc@return-a.kunde.example', aggregateReport('kunde.example'))).toMatch(/^250 /);
    const { data } = await daemon.api.get(
      `/web-setup/domains/${domain.domainId}/reports?from=2026-01-01T00:00:00Z&to=2027-01-01T00:00:00Z`,
    );
    expect(data).toMatchObject({
      dmarc: { messages: 15, passed: 10, sources: [{ sourceIp: '192.0.2.25' }, { sourceIp: '203.0.113.9' }] },
    });
  });

  it('is counted by what it was for', async () => {
    const metrics = await (await fetch(`${daemon.baseUrl}/metrics`)).text();
    expect(metrics).toContain('postrider_mail_in_total{purpose="feedback",result="recorded"} 2');
    expect(metrics).toContain('postrider_mail_in_total{purpose="unsubscribe",result="opted-out"} 2');
    expect(metrics).toContain('postrider_mail_in_total{purpose="bounce",result="kept"} 1');
  });
});
