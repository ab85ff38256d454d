import { afterAll, beforeAll, expect, it } from 'vitest';
import { runProgram } from '../cli/run.ts';
import { dsn } from '../smtp/mx/mails.ts';
import type { ApiClient } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { type InProcess, startInProcess } from '../support/in-process-daemon.ts';
import { inboundAddress, receivedMails } from '../support/inbound.ts';
import { smtpClient } from '../support/smtp-client.ts';
import { type Sink, startSink } from '../support/smtp-sink.ts';
import { insertDomainOf } from '../support/store.ts';

/* Inbound mail of accounts over the settings and limits of a whole daemon; the sink is the mail server of everyone else. */
let daemon: InProcess;
let sink: Sink;
let mxPort: number;

beforeAll(async () => {
  mxPort = await freePort();
  sink = await startSink();
  daemon = await startInProcess({
    'mx.listen': `127.0.0.1:${mxPort}`,
    'delivery.port': sink.port,
    'delivery.allowPrivateNetworks': true,
  });
  daemon.dns.set('recipient.test', 'MX', ['10 mx.recipient.test']);
  daemon.dns.set('mx.recipient.test', 'A', [sink.host]);
});
afterAll(async () => {
  await daemon?.stop();
  await sink?.close();
});

it('two accounts whose programs answer each other stop at the first answer', async () => {
  const [one, two] = [await daemon.account('One'), await daemon.account('Two')];
  const html = '<p>{{company_address_html}}{{unsubscribe_email_html}}</p>';
  for (const [api, domain] of [
    [one, 'one.test'],
    [two, 'two.test'],
  ] as const) {
    insertDomainOf(daemon, api, { domain_id: domain, name: domain });
    daemon.dns.set(domain, 'MX', ['10 mx.recipient.test']);
    const route = { name: 'Support', match: `support@${domain}`, domainId: domain };
    expect((await api.post('/web-setup/inbound-routes', route)).status).toBe(201);
  }
  const client = await smtpClient(mxPort);
  await client.say('EHLO mx.recipient.test');
  const send = async (api: ApiClient, from: string, to: string, headers: Record<string, string>) => {
    const before = sink.count;
    const { status, text } = await api.send({ from, to, subject: 'Hello', html, headers });
    expect(status, text).toBe(200);
    const sent = (await sink.waitFor(before + 1)).at(-1);
    expect(await client.mail(sent?.from ?? '', to, Buffer.from(sent?.raw ?? '', 'latin1'))).toMatch(/^250 /);
  };
  /** Answers what the account receives, if it may; the result of the last mail. */
  const answer = async (api: ApiClient, own: string) => {
    const { automatic, loop, from } = await eventually('the mail to be parsed', async () => {
      const { data } = await api.get<{ mails: Received[] }>('/web-setup/inbound');
      return data.mails[0]?.status === 'parsed' ? data.mails[0] : null;
    });
    if (automatic === null && !loop) await send(api, own, from, { 'Auto-Submitted': 'auto-replied' });
    return automatic;
  };
  await send(one, 'support@one.test', 'support@two.test', {});
  expect(await answer(two, 'support@two.test')).toBeNull();
  expect(await answer(one, 'support@one.test')).toBe('reply');
  expect(sink.count).toBe(2);
  client.destroy();
});

interface Received {
  status: string;
  automatic: string | null;
  loop: boolean;
  from: string;
}

it('a full account and a full disk get no mail for now, others and bounces do', async () => {
  const [full, other] = [await daemon.account('Full'), await daemon.account('Other')];
  const addresses: string[] = [];
  for (const [n, api] of [full, other].entries()) {
    const domain = { domainId: `domain_${n}`, domain: `shop${n}.test` };
    insertDomainOf(daemon, api, { domain_id: domain.domainId, name: domain.domain });
    addresses.push(await inboundAddress(api, domain, 'support'));
  }
  const [toFull = '', toOther = ''] = addresses;
  const before = sink.count;
  const sent = await other.send({
    from: 'orders@shop1.test',
    to: 'ada@recipient.test',
    subject: 'Your order',
    html: '<p>{{company_address_html}}{{unsubscribe_email_html}}</p>',
  });
  expect(sent.status, sent.text).toBe(200);
  const returnPath = (await sink.waitFor(before + 1)).at(-1)?.from ?? '';
  const statusOf = async () =>
    (await other.get<{ status: string }>(`/web-setup/messages/${sent.data.messageId}`)).data.status;
  await expect.poll(statusOf).toBe('delivered');

  await full.post('/web-setup/contacts', { email: 'ada@example.net' });
  const { status, err } = await runProgram(['account', 'limits', full.accountId, '--stored-bytes', '1'], {
    POSTRIDER_DATA__DIR: daemon.dataDir,
  });
  expect(status, err).toBe(0);
  const client = await smtpClient(mxPort);
  await client.say('EHLO mx.recipient.test');
  const mail = (to: string, subject: string) =>
    client.mail(
      'grace@recipient.test',
      to,
      `From: grace@recipient.test\r\nSubject: ${subject}\r\n\r\nHello\r\n`,
    );
  const inOneEnvelope = async () => {
    const replies: string[] = [];
    for (const command of [
      'MAIL FROM:<grace@recipient.test>',
      ...addresses.map((address) => `RCPT TO:<${address}>`),
      'RSET',
    ])
      replies.push((await client.say(command)).slice(0, 9));
    return replies.slice(1, -1);
  };
  expect(await mail(toFull, 'too much')).toMatch(/^452 4\.2\.2 /);
  expect(await mail(toOther, 'one')).toMatch(/^250 /);
  expect(await inOneEnvelope()).toEqual(['452 4.2.2', expect.stringMatching(/^250/)]);

  await daemon.reload({ 'limits.freeDiskBytes': 1e15 });
  const stored = async () => (await other.post('/web-setup/contacts', { email: 'bo@recipient.test' })).status;
  await expect.poll(stored).toBe(503);
  expect(await inOneEnvelope()).toEqual(['452 4.2.2', '452 4.3.1']);
  expect(await mail(toOther, 'while the disk is full')).toMatch(/^452 4\.3\.1 /);
  expect(await statusOf()).toBe('delivered');
  expect(await client.mail('', returnPath, dsn({ recipient: 'ada@recipient.test' }))).toMatch(/^250 /);
  expect(await statusOf()).toBe('bounced');

  expect((await receivedMails(other)).length).toBe(1);
  expect(await receivedMails(full)).toEqual([]);
  client.destroy();
});
