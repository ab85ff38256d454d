import { describe, expect, it } from 'vitest';
import { DAY } from '../../../src/core/clock.ts';
import type { MessageRow } from '../../../src/store/messages/messages.ts';
import { exampleEvent } from '../../support/events.ts';
import { SIGNING_RECORD, signMail } from '../../support/signed-mail.ts';
import { enqueue } from '../../support/store.ts';
import { aggregateReport, arf, dsn, tlsReport } from './mails.ts';
import { createTestResolver, HOST, RETURN, startMx } from './setup.ts';

/*
 * Which reports about our messages are verified, over a real listener with real signatures: an unverified complaint ends
 * marketing mail only, and an unverified bounce suppresses only when it is repeated.
 */
const NOW = Date.UTC(2026, 0, 15, 12);
const unchanged = (mail: string) => mail;

function signed(report: string, from: string, domain: string, tamper = unchanged): string {
  return tamper(signMail(report, from, domain, NOW));
}

async function start(options: Parameters<typeof startMx>[0] & { records?: Record<string, string> } = {}) {
  const resolver = createTestResolver(
    options.records ?? {
      's1._domainkey.example.net': SIGNING_RECORD,
      's1._domainkey.arf.example.net': SIGNING_RECORD,
      's1._domainkey.yahoo.com': SIGNING_RECORD,
      's1._domainkey.provider.example': SIGNING_RECORD,
      's1._domainkey.receiver.example': SIGNING_RECORD,
      's1._domainkey.evil.example': SIGNING_RECORD,
    },
  );
  const setup = await startMx({ deps: { resolver }, ...options });
  return {
    ...setup,
    asked: resolver.asked,
    lastEvent: (message: MessageRow) =>
      JSON.parse(setup.tables.events.ofMessage(message.seq).at(-1)?.data ?? '{}'),
    streams: (message: MessageRow) =>
      setup.tables.suppressions.of('acct_one', message.recipient_hash).map(({ stream }) => stream),
  };
}

describe('a complaint about transactional mail', () => {
  it.each<[string, (report: string) => string, boolean]>([
    [
      'signed by the recipient’s provider',
      (report) => signed(report, 'abuse@example.net', 'example.net'),
      true,
    ],
    [
      'signed by a subdomain of it',
      (report) => signed(report, 'x17@arf.example.net', 'arf.example.net'),
      true,
    ],
    [
      'signed by an operator of feedback loops',
      (report) => signed(report, 'feedback@arf.mail.yahoo.com', 'yahoo.com'),
      true,
    ],
    ['without a signature', (report) => report, false],
    [
      'signed by another organization',
      (report) => signed(report, 'abuse@evil.example', 'evil.example'),
      false,
    ],
    [
      'signed for another domain than its From',
      (report) => signed(report, 'abuse@example.net', 'evil.example'),
      false,
    ],
    [
      'from another user of the recipient’s provider',
      (report) => signed(report, 'eve@example.net', 'example.net'),
      false,
    ],
    [
      'changed after it was signed',
      (report) =>
        signed(report, 'abuse@example.net', 'example.net', (mail) =>
          mail.replace('abuse report', 'abuse!report'),
        ),
      false,
    ],
    [
      'with a second From field',
      (report) =>
        signed(report, 'abuse@example.net', 'example.net', (mail) => `From: abuse@example.net\r\n${mail}`),
      false,
    ],
    [
      'whose key does not exist',
      (report) => signed(report, 'abuse@other.example.net', 'other.example.net'),
      false,
    ],
  ])('%s', async (_, make, verified) => {
    const setup = await start();
    const message = await setup.delivered();
    const returned = `X-Postrider-Id: ${setup.tokens.of('acct_one').signedId(message.message_id)}`;
    const to = [`fbl@${HOST}`];
    expect(await (await setup.client()).mail('', to, make(arf('abuse', returned)))).toMatch(/^250 /);
    expect(setup.lastEvent(message)).toMatchObject({ source: 'arf', verified, suppressed: true });
    expect(setup.streams(message)).toEqual([verified ? 'all' : 'mk']);
  });

  it('is verified for the provider of the host that received the message', async () => {
    const setup = await start();
    const message = await setup.writer.run((tx) => {
      const { seq } = enqueue(tx, NOW, { recipient: 'ada@hosted.example' });
      const current = () => tx.messages.bySeq(seq) ?? expect.unreachable();
      setup.recorder.message(tx, current(), exampleEvent('email_sent'));
      const fields = { remoteHost: 'mx1.provider.example' };
      setup.recorder.message(tx, current(), exampleEvent('email_delivered', fields));
      return current();
    });
    const to = `${setup.tokens.of('acct_one').feedback(message.message_id)}@${RETURN}`;
    const report = signed(arf(), 'fbl@provider.example', 'provider.example');
    expect(await (await setup.client()).mail('', to, report)).toMatch(/^250 /);
    expect(setup.lastEvent(message)).toMatchObject({ verified: true });
  });

  it('causes at most three DNS queries, and none when the signature has no effect', async () => {
    const setup = await start();
    const message = await setup.delivered();
    const many = signed(arf(), 'abuse@example.net', 'example.net', (mail) =>
      Array.from(
        { length: 50 },
        (_, n) => `DKIM-Signature: v=1; a=rsa-sha256; d=example.net; s=x${n}; h=from; bh=; b=`,
      )
        .concat(mail)
        .join('\r\n'),
    );
    const client = await setup.client();
    const unknown = `fbl@${HOST}`;
    expect(await client.mail('', unknown, many)).toMatch(/^250 /);
    expect(setup.asked).toEqual([]);
    const to = `${setup.tokens.of('acct_one').feedback(message.message_id)}@${RETURN}`;
    expect(await client.mail('', to, many)).toMatch(/^250 /);
    expect(setup.asked).toEqual([0, 1, 2].map((n) => `x${n}._domainkey.example.net`));
    expect(setup.lastEvent(message)).toMatchObject({ verified: false });
  });

  it('counts as unsigned without a DNS answer, and delays no other mail', async () => {
    const asked: string[] = [];
    const resolver = {
      txt: (name: string, options?: { signal?: AbortSignal | undefined }) => {
        asked.push(name);
        return new Promise<never>((_, reject) =>
          options?.signal?.addEventListener('abort', () => reject(options.signal?.reason)),
        );
      },
    };
    const setup = await start({ deps: { resolver } });
    const [message, other] = [
      await setup.delivered(),
      await setup.delivered({ recipient: 'bob@example.net' }),
    ];
    const order: string[] = [];
    const to = `${setup.tokens.of('acct_one').feedback(message.message_id)}@${RETURN}`;
    const report = signed(arf(), 'abuse@example.net', 'example.net');
    const complaint = (await setup.client()).mail('', to, report).then((reply) => order.push(reply));
    await expect.poll(() => asked.length).toBe(1);
    const bounce = `${setup.tokens.of('acct_one').returnPath(other.message_id)}@${RETURN}`;
    order.push(await (await setup.client()).mail('', bounce, dsn({ recipient: 'bob@example.net' })));
    expect(order).toHaveLength(1);
    await complaint;
    expect(order.map((reply) => reply.slice(0, 3))).toEqual(['250', '250']);
    expect(setup.lastEvent(message)).toMatchObject({ verified: false });
  });
});

const ALWAYS = { from: 0, to: Date.UTC(2100, 0), limit: 10 };

describe('a report on a domain', () => {
  it.each<[string, (report: string) => string, verified: 0 | 1, signer: string]>([
    [
      'signed by the organization that it names',
      (report) => signed(report, 'noreply-dmarc@receiver.example', 'receiver.example'),
      1,
      'receiver.example',
    ],
    ['without a signature', (report) => report, 0, ''],
    [
      'signed by another organization',
      (report) => signed(report, 'dmarc@evil.example', 'evil.example'),
      0,
      'evil.example',
    ],
    [
      'from a user of the organization',
      (report) => signed(report, 'eve@receiver.example', 'receiver.example'),
      0,
      'receiver.example',
    ],
  ])('%s', async (_, signedBy, verified, signer) => {
    const setup = await start();
    const client = await setup.client();
    const reports = [aggregateReport('example.com', '1'), tlsReport('return-a.example.com', '1')];
    for (const report of reports) {
      const mail = signedBy(report);
      expect(
        await client.mail('', ['dmarc@return-a.example.com', 'tlsrpt@return-a.example.com'], mail),
      ).toMatch(/^250 /);
    }
    const { dmarcReports, tlsReports } = setup.tables;
    expect(dmarcReports.list('example.com', ALWAYS)).toMatchObject([{ verified, signer }]);
    expect(tlsReports.list('return-a.example.com', ALWAYS)).toMatchObject([{ verified, signer }]);
    const { firstAt, unverified } = dmarcReports.history('example.com');
    expect([firstAt !== null, unverified]).toEqual([verified === 1, 1 - verified]);
  });
});

describe('a TLS report signed with a key for TLS reports only', () => {
  it.each([
    ['tlsrpt', tlsReport('return-a.example.com', '1'), 1],
    ['dmarc', aggregateReport('example.com', '1'), 0],
  ] as const)('is verified, unlike other mail with that key: %s', async (address, report, verified) => {
    const record = SIGNING_RECORD.replace('; p=', '; s=tlsrpt; p=');
    const setup = await start({ records: { 's1._domainkey.receiver.example': record } });
    const mail = signed(report, 'noreply-tlsrpt@receiver.example', 'receiver.example');
    expect(await (await setup.client()).mail('', `${address}@return-a.example.com`, mail)).toMatch(/^250 /);
    const { dmarcReports, tlsReports } = setup.tables;
    const stored = [
      ...dmarcReports.list('example.com', ALWAYS),
      ...tlsReports.list('return-a.example.com', ALWAYS),
    ];
    expect(stored).toMatchObject([{ verified }]);
  });
});

describe('a bounce', () => {
  it.each([
    ['the return path', true],
    ['the address for complaints, which is in the header', false],
    ['the postmaster, with our signed id', false],
  ])('to %s: verified %s', async (to, verified) => {
    const setup = await start();
    const message = await setup.delivered();
    const { tokens } = setup;
    const address = to.startsWith('the return')
      ? `${tokens.of('acct_one').returnPath(message.message_id)}@${RETURN}`
      : to.startsWith('the address')
        ? `${tokens.of('acct_one').feedback(message.message_id)}@${RETURN}`
        : `postmaster@${HOST}`;
    const returned = `X-Postrider-Id: ${tokens.of('acct_one').signedId(message.message_id)}`;
    expect(await (await setup.client()).mail('', address, dsn({ returned }))).toMatch(/^250 /);
    expect(setup.status(message)).toBe('bounced');
    expect(setup.lastEvent(message)).toMatchObject({ verified, suppressed: verified });
    expect(setup.suppressed(message)).toEqual(verified ? ['hard_bounce'] : []);
  });

  it('matched by the signed id alone suppresses when it is repeated on another day', async () => {
    const setup = await start();
    const client = await setup.client();
    const seen: string[][] = [];
    for (const days of [0, 0, 1]) {
      setup.clock.advance(days * DAY);
      const message = await setup.delivered();
      const returned = `X-Postrider-Id: ${setup.tokens.of('acct_one').signedId(message.message_id)}`;
      expect(await client.mail('', `postmaster@${HOST}`, dsn({ returned }))).toMatch(/^250 /);
      seen.push(setup.suppressed(message));
    }
    expect(seen).toEqual([[], [], ['hard_bounce']]);
  });

  it('to the return path is verified although the postmaster is the first recipient', async () => {
    const setup = await start();
    const message = await setup.delivered();
    const returned = `X-Postrider-Id: ${setup.tokens.of('acct_one').signedId(message.message_id)}`;
    const to = [
      `postmaster@${HOST}`,
      `${setup.tokens.of('acct_one').returnPath(message.message_id)}@${RETURN}`,
    ];
    expect(await (await setup.client()).mail('', to, dsn({ returned }))).toMatch(/^250 /);
    expect(setup.suppressed(message)).toEqual(['hard_bounce']);
  });
});
