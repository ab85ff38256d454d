import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { TimelineEntry } from '../support/api-client.ts';
import { type RunningDaemon, startDaemon } from '../support/daemon.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { eventually } from '../support/eventually.ts';
import { faultsInEvents, readLedger } from '../support/ledger.ts';
import { type Postfix, startPostfix } from '../support/postfix.ts';
import { SHORT_MAIL } from '../support/recipients.ts';
import { requirePrograms } from '../support/required-programs.ts';
import { verifiedDomain } from '../support/verified-domain.ts';

/*
 * What test/scenarios/ expects of programmable servers, with a real one: a Postfix that accepts small messages only, no
 * internationalized addresses, defers one recipient, and ends every session after two errors.
 *
 *   test ──HTTP──▶ postrider ──SMTP + STARTTLS──▶ Postfix ──▶ maildirs
 */
const required = requirePrograms('postfix');

const ADA = 'ada@empfang.example';
const FULL = 'full@empfang.example';
const MAX_OCTETS = 20_000;

describe.skipIf(required.missing)(`a Postfix that refuses${required.reason}`, () => {
  let dns: DnsServer;
  let postfix: Postfix;
  let daemon: RunningDaemon;

  beforeAll(async () => {
    postfix = await startPostfix({
      hostname: 'mx.empfang.example',
      mailboxes: [ADA, FULL],
      host: '127.0.0.3',
      parameters: {
        message_size_limit: String(MAX_OCTETS),
        smtputf8_enable: 'no',
        smtpd_hard_error_limit: '2',
        smtpd_error_sleep_time: '0',
        smtpd_recipient_restrictions: `check_recipient_access inline:{ {${FULL} = 452 4.2.2 Mailbox full} }, permit`,
      },
    });
    dns = await startDnsServer();
    daemon = await startDaemon({
      'dns.resolvers': [dns.address],
      'delivery.port': postfix.port,
      'delivery.allowPrivateNetworks': true,
      'delivery.shaping': [{ match: 'empfang.example', connections: 1 }],
    });
    dns.set('empfang.example', 'MX', [`10 ${postfix.hostname}`]);
    dns.set(postfix.hostname, 'A', [postfix.host]);
    await verifiedDomain(daemon, dns, 'kunde.example');
  });
  afterAll(async () => {
    await daemon?.stop();
    await postfix?.stop();
    await dns?.close();
  });

  const send = async (to: string, more: object = {}): Promise<string> =>
    (await daemon.api.send({ ...SHORT_MAIL, from: 'a@kunde.example', to, ...more })).data.messageId;
  /** The timeline once the message has the status. */
  const timelineOf = (messageId: string, status: string): Promise<TimelineEntry[]> =>
    eventually(`${messageId} to be ${status}`, async () => {
      const message = await daemon.api.message(messageId);
      return message.status === status ? message.timeline : null;
    });

  it('is not offered what exceeds its limit or needs SMTPUTF8; both bounce at the first attempt', async () => {
    const large = await send(ADA, { text: 'A line of text.\n'.repeat(MAX_OCTETS / 10) });
    const unicode = await send('jörg@empfang.example');
    for (const [messageId, enhancedCode] of [
      [large, '5.3.4'],
      [unicode, '5.6.7'],
    ] as const) {
      const timeline = await timelineOf(messageId, 'bounced');
      expect(timeline.filter(({ type }) => type === 'attempt')).toHaveLength(1);
      expect(timeline.at(-1)).toMatchObject({ event: 'email_rejected', source: 'local', enhancedCode });
    }
    expect(await postfix.log()).not.toMatch(/message size exceeds|SMTPUTF8 is required/);
  });

  it('gives each recipient its verdict although it ends the sessions, and the others get their mail once', async () => {
    const users = ['nobody1', 'nobody2', 'ada', 'nobody3', 'full', 'nobody4', 'ada'];
    const ids = new Map<string, string>();
    for (const [n, user] of users.entries()) ids.set(`${user} ${n}`, await send(`${user}@empfang.example`));
    for (const [user, messageId] of ids) {
      const expected = user.startsWith('nobody')
        ? 'bounced'
        : user.startsWith('full')
          ? 'deferred'
          : 'delivered';
      const last = (await timelineOf(messageId, expected)).at(-1);
      if (expected === 'bounced')
        expect(last).toMatchObject({
          event: 'email_bounced',
          smtpCode: 550,
          enhancedCode: '5.1.1',
          suppressed: true,
        });
      if (expected === 'deferred')
        expect(last).toMatchObject({ event: 'email_delayed', smtpCode: 452, classification: 'mailbox-full' });
    }
    expect(await postfix.waitForMail(ADA, 2)).toHaveLength(2);
    expect(await postfix.log()).toContain('too many errors after');
  });

  it('has received what the ledger states', async () => {
    expect(await readLedger(daemon.api)).toEqual({
      accepted: 9,
      delivered: 2,
      bounced: 6,
      failed: 0,
      queued: 1,
    });
    expect(await faultsInEvents(daemon.api)).toEqual([]);
    expect(await postfix.mail(ADA)).toHaveLength(2);
    expect(await postfix.mail(FULL)).toEqual([]);
  });
});
