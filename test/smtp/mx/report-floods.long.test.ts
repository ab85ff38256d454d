// Long: floods the parser with mail of few senders.
import { gzipSync } from 'node:zlib';
import { describe, expect, it, vi } from 'vitest';
import { DAY, HOUR } from '../../../src/core/clock.ts';
import type { SmtpClient } from '../../support/smtp-client.ts';
import { insertDomain } from '../../support/store.ts';
import { aggregateReport, dsn, PLAIN_MAIL } from './mails.ts';
import { HOST, RETURN, startMx } from './setup.ts';

/*
 * Floods of mail from few senders. Each sender has a share of the parser, of the stored mail and of the accepted reports,
 * and other senders are served as without the flood.
 */
const PERIOD = { from: 0, to: Date.UTC(2100, 0), limit: 5000 };

function reportMail(xml: string): string {
  const packed = gzipSync(Buffer.from(xml)).toString('base64').replaceAll(/.{76}/g, '$&\r\n');
  return `Subject: Report domain: example.com\r\nContent-Type: application/gzip\r\nContent-Transfer-Encoding: base64\r\n\r\n${packed}\r\n`;
}

/** 10 MB that compress to some 20 kB. */
const BOMB = reportMail(`<feedback>${'<a></a>'.repeat(1_490_000)}`);
/** Much work, with the compression ratio of genuine reports. */
const COSTLY = reportMail(
  `<feedback>${Array.from({ length: 100_000 }, (_, n) => `<a>${(n * 7919) % 100_003}</a>`).join('')}`,
);

/** Sends a mail without its final dot. */
async function upload(client: SmtpClient, to: string, mail: string): Promise<void> {
  await client.say('MAIL FROM:<>');
  await client.say(`RCPT TO:<${to}>`);
  await client.say('DATA');
  client.write(mail.endsWith('\r\n') ? mail : `${mail}\r\n`);
}

describe('many connections with packed XML', () => {
  it('to the token of one message: no attachment is opened, and a genuine bounce is accepted', async () => {
    const setup = await startMx({ mx: { connectionsPerAddress: 200 } });
    const [own, genuine] = [await setup.delivered(), await setup.delivered({ recipient: 'bob@example.net' })];
    const token = `${setup.tokens.of('acct_one').returnPath(own.message_id)}@${RETURN}`;
    const flood = await Promise.all(Array.from({ length: 100 }, () => setup.client()));
    await Promise.all(flood.map((client) => upload(client, token, BOMB)));
    const honest = await setup.client({ from: '127.0.7.1' });
    const to = `${setup.tokens.of('acct_one').returnPath(genuine.message_id)}@${RETURN}`;
    await upload(honest, to, dsn({ recipient: 'bob@example.net' }));
    const answers = Promise.all(flood.map((client) => client.say('.')));
    expect(await honest.say('.')).toMatch(/^250 /);
    const replies = await answers;
    // Above the share of one token they are rejected temporarily.
    for (const reply of replies) expect(reply).toMatch(/^(?:250|451 4\.3\.2) /);
    const taken = replies.filter((reply) => reply.startsWith('250')).length;
    expect(setup.kept().map(({ kind }) => kind)).toEqual(Array(taken).fill('dmarc-report'));
    expect(setup.status(genuine)).toBe('bounced');
    expect(setup.parserThreads()).toBe(1);
  });

  it('to dmarc@: a genuine bounce waits only for the report in progress', async () => {
    const setup = await startMx({ mx: { connectionsPerAddress: 200 } });
    const message = await setup.delivered();
    const flood = await Promise.all(Array.from({ length: 60 }, () => setup.client()));
    await Promise.all(flood.map((client) => upload(client, `dmarc@${RETURN}`, COSTLY)));
    const honest = await setup.client({ from: '127.0.7.1' });
    await upload(honest, `${setup.tokens.of('acct_one').returnPath(message.message_id)}@${RETURN}`, dsn());
    const replies: string[] = [];
    const answers = flood.map((client) => client.say('.').then((reply) => void replies.push(reply)));
    // The first reports have reached the parser.
    await expect.poll(() => replies.length).toBeGreaterThan(0);
    const parsed = () => replies.filter((reply) => reply.startsWith('250')).length;
    const before = parsed();
    expect(await honest.say('.')).toMatch(/^250 /);
    expect(parsed() - before).toBeLessThanOrEqual(2);
    await Promise.all(answers);
    // They are rejected by the parser's queue, the report limits, or the share of memory.
    expect(replies.filter((reply) => !/^(?:250 |451 4\.(?:3\.2|7\.1) |452 4\.3\.1 )/.test(reply))).toEqual(
      [],
    );
    // 30 of one network may wait.
    expect(parsed()).toBeLessThanOrEqual(32);
    expect(setup.parserThreads()).toBe(1);
  });
});

describe('reports of one sender', () => {
  it('are limited by the hour, and those of others are not', async () => {
    const setup = await startMx();
    const client = await setup.client();
    const send = (from: SmtpClient, id: string) =>
      from.mail(
        '',
        `dmarc@${RETURN}`,
        aggregateReport('example.com', id).replace('receiver.example', `r${id}.example`),
      );
    for (let n = 0; n < 60; n++) expect(await send(client, `${n}`)).toMatch(/^250 /);
    expect(await send(client, 'over')).toMatch(/^451 4\.7\.1 /);
    expect(await client.mail('', `tlsrpt@${RETURN}`, PLAIN_MAIL)).toMatch(/^451 4\.7\.1 /);
    // Other mail is accepted, and so are reports from other networks and on other domains.
    expect(await client.mail('', `postmaster@${HOST}`, PLAIN_MAIL)).toMatch(/^250 /);
    expect(await send(await setup.client({ from: '127.0.9.1' }), 'elsewhere')).toMatch(/^250 /);
    insertDomain(
      setup.tables,
      { account_id: 'acct_one', domain_id: 'two', name: 'two.example' },
      setup.clock.now(),
    );
    expect(await client.mail('', 'dmarc@return-a.two.example', aggregateReport('two.example'))).toMatch(
      /^250 /,
    );
    setup.clock.advance(HOUR);
    expect(await send(client, 'later')).toMatch(/^250 /);
    expect(setup.tables.dmarcReports.list('example.com', PERIOD)).toHaveLength(62);
  });

  it('are limited in one organization’s name, whatever networks they come from', async () => {
    const setup = await startMx();
    const clients = await Promise.all(
      Array.from({ length: 70 }, (_, n) => setup.client({ from: `127.1.${n}.1` })),
    );
    const replies: string[] = [];
    for (const [n, client] of clients.entries())
      replies.push(await client.mail('', `dmarc@${RETURN}`, aggregateReport('example.com', `${n}`)));
    expect(replies.map((reply) => reply.slice(0, 3))).toEqual([
      ...Array(60).fill('250'),
      ...Array(10).fill('451'),
    ]);
  });
});

describe('a TLS report with 10,000 policies', () => {
  const report = (hosts: readonly string[], count: number) => {
    const policies = Array.from({ length: count }, (_, n) => ({
      policy: { 'policy-type': `${n}`, 'policy-domain': hosts[n % hosts.length] },
    }));
    const packed = gzipSync(JSON.stringify({ 'report-id': 'r', policies }));
    const lines = packed.toString('base64').replaceAll(/.{76}/g, '$&\r\n');
    return `TLS-Report-Domain: example.com\r\nContent-Type: application/tlsrpt+gzip\r\nContent-Transfer-Encoding: base64\r\n\r\n${lines}\r\n`;
  };
  /** A listener for four domains, and the rows that each unit of work writes. */
  async function start() {
    const setup = await startMx();
    const { tables, writer, db, clock } = setup;
    const domains = ['example.com', 'two.example', 'three.example', 'four.example'];
    for (const name of domains.slice(1))
      insertDomain(tables, { account_id: 'acct_one', domain_id: name, name }, clock.now());
    const changes = db.prepare<[], number>('SELECT total_changes()').pluck();
    const written: number[] = [];
    const run = writer.run.bind(writer);
    vi.spyOn(writer, 'run').mockImplementation((unit, share) =>
      run((tx) => {
        const before = changes.get() ?? 0;
        const result = unit(tx);
        written.push((changes.get() ?? 0) - before);
        return result;
      }, share),
    );
    return { ...setup, domains, written };
  }

  it('is stored once, with a hundred of them, for a mail to four domains', async () => {
    const { client, domains, tables, written } = await start();
    const to = domains.flatMap((domain) => [`tlsrpt@return-a.${domain}`, `dmarc@return-a.${domain}`]);
    const insert = vi.spyOn(tables.tlsReports, 'insert');
    expect(await (await client()).mail('', to, report([RETURN], 10_000))).toMatch(/^250 /);
    expect(insert).toHaveBeenCalledTimes(1);
    expect(tables.tlsReports.list(RETURN, PERIOD)).toHaveLength(100);
    expect(written.reduce((sum, rows) => sum + rows)).toBe(100);
  });

  it('is stored in a unit of work for each host', async () => {
    const { client, domains, tables, written } = await start();
    const hosts = domains.map((domain) => `return-a.${domain}`);
    const mail = report([...hosts, 'return-a.unknown.example'], 10_000);
    expect(await (await client()).mail('', `tlsrpt@${RETURN}`, mail)).toMatch(/^250 /);
    for (const host of hosts) expect(tables.tlsReports.list(host, PERIOD)).toHaveLength(20);
    expect(written.filter((rows) => rows > 0)).toEqual([20, 20, 20, 20]);
  });
});

describe('a DMARC report to thirty domains', () => {
  it('is stored in a unit of work for each', async () => {
    const setup = await startMx();
    const { tables, writer, clock } = setup;
    const domains = Array.from({ length: 30 }, (_, n) => `d${n}.example.com`);
    for (const name of domains)
      insertDomain(tables, { account_id: 'acct_one', domain_id: name, name }, clock.now());
    const units = vi.spyOn(writer, 'run');
    const insert = vi.spyOn(tables.dmarcReports, 'insert');
    const to = domains.flatMap((name) => [`dmarc@return-a.${name}`, `tlsrpt@return-a.${name}`]);
    expect(await (await setup.client()).mail('', to, aggregateReport('example.com'))).toMatch(/^250 /);
    // Another one has the effects on messages and kept mail.
    expect(units).toHaveBeenCalledTimes(31);
    expect(insert).toHaveBeenCalledTimes(30);
    for (const name of domains) expect(tables.dmarcReports.list(name, PERIOD)).toHaveLength(1);
  });
});

describe('forged reports', () => {
  /** Their effect on storage: test/store/domains/report-shares.test.ts. */
  it('that end in the future are stored with the time of receipt, up to the limit of one sender', async () => {
    const setup = await startMx();
    const genuine = await setup.client({ from: '127.0.7.1' });
    expect(await genuine.mail('', `dmarc@${RETURN}`, aggregateReport('example.com', 'genuine'))).toMatch(
      /^250 /,
    );
    const future = `${(setup.clock.now() + DAY - HOUR) / 1000}`;
    const forged = (n: number) =>
      aggregateReport('example.com', `forged ${n}`)
        .replace('receiver.example', 'forged.example')
        .replace(/(?<=base64\r\n\r\n)[\s\S]*(?=\r\n--B--)/, (base64) =>
          Buffer.from(Buffer.from(base64, 'base64').toString().replace('1768435199', future)).toString(
            'base64',
          ),
        );
    const client = await setup.client();
    const replies: string[] = [];
    for (let n = 0; n < 80; n++) replies.push(await client.mail('', `dmarc@${RETURN}`, forged(n)));
    expect(replies.filter((reply) => reply.startsWith('250'))).toHaveLength(60);
    const stored = setup.tables.dmarcReports.list('example.com', PERIOD);
    expect(stored).toHaveLength(61);
    expect(stored.every(({ end_at, received_at }) => end_at <= received_at)).toBe(true);
  });
});

describe('mail for the operator', () => {
  it('is kept once, however its mailbox is spelled and wherever it is', async () => {
    const setup = await startMx();
    const spellings = ['abuse', 'Abuse', 'ABUSE', 'aBuse', 'abUse'].flatMap((local) => [
      `${local}@${HOST}`,
      `${local}@${RETURN}`,
      `${local}@${RETURN.toUpperCase()}`,
    ]);
    expect(
      await (await setup.client()).mail('', [...spellings, `postmaster@${HOST}`, 'Postmaster'], PLAIN_MAIL),
    ).toMatch(/^250 /);
    expect(setup.kept().map(({ box }) => box)).toEqual(['abuse', 'postmaster']);
  });

  it('with many tokens is one mail', async () => {
    const setup = await startMx();
    const messages = [await setup.delivered(), await setup.delivered({ recipient: 'bob@example.net' })];
    const to = messages.map(
      ({ message_id: id }) => `${setup.tokens.of('acct_one').returnPath(id)}@${RETURN}`,
    );
    expect(await (await setup.client()).mail('', to, PLAIN_MAIL)).toMatch(/^250 /);
    expect(setup.kept()).toMatchObject([{ box: 'bounce', message_seq: messages[0]?.seq }]);
  });

  it('is not displaced by 26 transactions under 32 spellings each', async () => {
    const setup = await startMx();
    const complaint = PLAIN_MAIL.replace('A question', 'A genuine complaint');
    const honest = await setup.client({ from: '127.0.7.1' });
    expect(await honest.mail('', `abuse@${HOST}`, complaint)).toMatch(/^250 /);
    const client = await setup.client();
    const spelled = (n: number) =>
      Array.from('abuse', (char, at) => ((n >> at) & 1 ? char.toUpperCase() : char)).join('');
    const spellings = Array.from({ length: 32 }, (_, n) => `${spelled(n)}@${n % 2 ? HOST : RETURN}`);
    for (let n = 0; n < 26; n++) expect(await client.mail('', spellings, PLAIN_MAIL)).toMatch(/^250 /);
    const kept = setup.tables.keptMail.list('abuse', 5000);
    expect(kept).toHaveLength(27);
    expect(setup.tables.keptMail.get(kept.at(-1)?.seq ?? 0)?.raw.toString()).toBe(complaint);
  });
});
