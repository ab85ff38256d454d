import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HOSTNAME, type RunningDaemon, startDaemon } from '../support/daemon.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { eventually } from '../support/eventually.ts';
import { faultsInEvents, readLedger } from '../support/ledger.ts';
import { SHORT_MAIL } from '../support/recipients.ts';
import { type Sink, startSink } from '../support/smtp-sink.ts';
import { verifiedDomain } from '../support/verified-domain.ts';

/*
 * Simulator addresses produce a given outcome, so that a caller can try every event; no message leaves the machine.
 *
 *   test ──HTTP──▶ postrider ──(never)──▶ sink, to which a route directs all mail
 */
const DOMAIN = `simulator.${HOSTNAME}`;

let dns: DnsServer;
let sink: Sink;
let daemon: RunningDaemon;

beforeAll(async () => {
  dns = await startDnsServer();
  sink = await startSink();
  daemon = await startDaemon({
    'dns.resolvers': [dns.address],
    'delivery.routes': [{ match: '*', host: sink.host, port: sink.port }],
  });
  await verifiedDomain(daemon, dns, 'kunde.example');
});
afterAll(async () => {
  await daemon?.stop();
  await sink?.close();
  await dns?.close();
});

let accepted = 0;
const send = async (to: string, headers: Record<string, string> = {}) => {
  const { data } = await daemon.api.send({ ...SHORT_MAIL, from: 'a@kunde.example', to }, headers);
  accepted += data.totalRecipients;
  return data;
};

/** The events of a message, once there are `count`. */
const eventsOf = (messageId: string, count: number) =>
  eventually(`${count} events of ${messageId}`, async () => {
    const events = await daemon.api.allEvents({ messageId });
    return events.length >= count ? events : null;
  });

describe('the simulator', () => {
  it.each<[string, string, string[], object]>([
    ['delivered', 'delivered', ['email_sent', 'email_delivered'], { smtpCode: 250 }],
    ['deferred', 'delivered', ['email_sent', 'email_delayed', 'email_delivered'], { smtpCode: 250 }],
    [
      'bounced',
      'bounced',
      ['email_sent', 'email_bounced'],
      {
        bounceType: 'hard',
        classification: 'invalid-recipient',
        smtpCode: 550,
        enhancedCode: '5.1.1',
        source: 'smtp',
      },
    ],
    ['blocked', 'bounced', ['email_sent', 'email_bounced'], { bounceType: 'block', source: 'smtp' }],
    [
      'complained',
      'complained',
      ['email_sent', 'email_delivered', 'email_complained'],
      { source: 'arf', feedbackType: 'abuse' },
    ],
    [
      'asyncbounced',
      'bounced',
      ['email_sent', 'email_delivered', 'email_bounced'],
      { bounceType: 'hard', enhancedCode: '5.1.1', source: 'dsn' },
    ],
    [
      'clicked',
      'delivered',
      ['email_sent', 'email_delivered', 'email_opened', 'email_clicked'],
      { url: expect.stringMatching(/^https?:/), isBot: false, isFirst: true },
    ],
  ])('simulates %s@ with the final status %s', async (user, status, kinds, last) => {
    const locals = [user, `${user}+order-7`, user.toUpperCase()];
    await Promise.all(
      locals.map(async (local) => {
        const { messageId } = await send(`${local}@${DOMAIN}`);
        const events = await eventsOf(messageId, kinds.length);
        expect(events.map(({ event }) => event)).toEqual(kinds);
        expect(events.at(-1)).toMatchObject({ messageId, ...last });
        expect((await daemon.api.message(messageId)).status).toBe(status);
      }),
    );
  });

  it('bounces an unknown address', async () => {
    const { delivery } = await send(`anybody@${DOMAIN}`, { Prefer: 'wait=10' });
    expect(delivery).toMatchObject({ status: 'bounced', smtpReply: expect.stringMatching(/^550 5\.1\.1 /) });
  });

  it('suppresses no address', async () => {
    for (const user of ['bounced', 'complained', 'asyncbounced']) await send(`${user}@${DOMAIN}`);
    expect(await daemon.api.allEvents({ event: 'email_suppressed' })).toEqual([]);
  });
});

describe('Prefer: wait', () => {
  it.each([
    ['delivered', 'delivered', /^250 /],
    ['deferred', 'deferred', /^451 4\./],
    ['bounced', 'bounced', /^550 5\.1\.1 /],
    ['blocked', 'bounced', /^554 5\.7\.1 /],
  ])('returns the first outcome of %s@: %s', async (user, status, reply) => {
    const response = await daemon.api.send(
      { ...SHORT_MAIL, from: 'a@kunde.example', to: `${user}@${DOMAIN}` },
      { Prefer: 'wait=10' },
    );
    accepted++;
    expect(response.status).toBe(200);
    expect(response.headers.get('Preference-Applied')).toMatch(/^wait/);
    expect(response.data).toMatchObject({
      status: 'sent',
      delivery: { status, smtpReply: expect.stringMatching(reply) },
    });
  });

  it.each(['respond-async', 'wait=soon', 'wait=-1', 'return=minimal'])('ignores "%s"', async (prefer) => {
    const data = await send(`delivered@${DOMAIN}`, { Prefer: prefer });
    expect(data.delivery).toBeUndefined();
  });

  it.each(['wait=10, respond-async', 'respond-async; foo, wait=10', 'WAIT = 10'])(
    'applies "%s"',
    async (prefer) => {
      expect((await send(`delivered@${DOMAIN}`, { Prefer: prefer })).delivery).toMatchObject({
        status: 'delivered',
      });
    },
  );
});

describe('after all messages', () => {
  it('every message has an outcome, and none left the machine', async () => {
    await eventually(
      'the queue to be empty',
      async () => (await daemon.metric('postrider_queue_messages')) === 0,
    );
    const ledger = await readLedger(daemon.api);
    expect(ledger).toMatchObject({ accepted, failed: 0, queued: 0 });
    expect(ledger.delivered + ledger.bounced).toBe(accepted);
    expect(await faultsInEvents(daemon.api)).toEqual([]);
    expect(sink.sessions).toEqual([]);
    expect(dns.questions.filter(({ name }) => name.endsWith('simulator.mx.postrider.example'))).toEqual([]);
  });
});
