// Long: sends 2,000 hostile mails, or 10,000 with FUZZ=1.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openDatabase } from '../../src/store/database/database.ts';
import type { ApiClient } from '../support/api-client.ts';
import { type RunningDaemon, startDaemon } from '../support/daemon.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { hostileMail } from '../support/hostile-mails.ts';
import { inboundAddress, receivedMails } from '../support/inbound.ts';
import { LONG_PATIENCE_MS } from '../support/patience.ts';
import { type SmtpClient, smtpClient } from '../support/smtp-client.ts';
import { verifiedDomain } from '../support/verified-domain.ts';

/*
 * Hostile mail for several accounts, and ordinary mail for another one meanwhile.
 *
 *   test: 4 networks for each of 6 accounts ──SMTP──▶ postrider ──▶ records of 6 accounts
 *         1 mail server                     ──SMTP──▶           ──▶ records of the other account
 *
 * The networks stay below the limits of an account: 500 mails of a network, 2,000 in all.
 */
const MAILS = process.env['FUZZ'] === undefined ? 2000 : 10_000;
const SEED = 1;
const ACCOUNTS = 6;
const NETWORKS = 4;
/** One of so many mails of the first half has an author whose name servers do not answer. */
const SILENT_INTERVAL = 101;
/** Ordinary mails: a network may send 500. */
const MAX_ORDINARY = 300;
/** Many times what an idle daemon needs, and below what all of this mail has. */
const MAX_RSS_BYTES = 1.5 * 1024 ** 3;
/** Replies after which a server sends a mail again. */
const MAX_TRIES = 50;

const PLAIN = 'From: Ada <ada@ordinary.example>\r\nSubject: ordinary\r\n\r\nThank you.\r\n> quoted\r\n';

describe(`${MAILS} hostile mails`, () => {
  let dns: DnsServer;
  let daemon: RunningDaemon;
  let mxPort: number;
  let healthy: ApiClient;
  const accounts: ApiClient[] = [];

  beforeAll(async () => {
    mxPort = await freePort();
    dns = await startDnsServer();
    dns.set('silent.example', '*', 'silent');
    dns.set('_dmarc.silent.example', '*', 'silent');
    // A record that includes itself (RFC 7208 §4.6.4).
    dns.set('hostile.example', 'TXT', ['v=spf1 include:hostile.example include:hostile.example -all']);
    dns.set('s1._domainkey.hostile.example', 'TXT', [
      `v=DKIM1; p=${'A'.repeat(4000)}`.match(/.{1,255}/g) ?? [],
    ]);
    daemon = await startDaemon({
      'dns.resolvers': [dns.address],
      'mx.listen': `127.0.0.1:${mxPort}`,
      'log.level': 'warn',
    });
    healthy = daemon.api;
    await inboundAddress(healthy, await verifiedDomain(daemon, dns, 'kunde.example'), 'support');
    for (let n = 0; n < ACCOUNTS; n++) {
      const api = await daemon.account(`Account ${n}`);
      await inboundAddress(api, await verifiedDomain(daemon, dns, `target${n}.example`, { api }), '*');
      accounts.push(api);
    }
  });
  afterAll(async () => {
    await daemon?.stop();
    await dns?.close();
  });

  /** A server that sends mails one after the other, over as many connections as it needs; returns the last reply to each. */
  async function server(
    from: string,
    mails: AsyncIterable<{ sender: string; to: string; content: string | Buffer }>,
  ): Promise<Map<string, string>> {
    const replies = new Map<string, string>();
    let client: SmtpClient | null = null;
    for await (const { sender, to, content } of mails) {
      let reply = '';
      for (let tries = 0; tries < MAX_TRIES; tries++) {
        if (client === null || client.closed) {
          client = await smtpClient(mxPort, { from });
          await client.say('EHLO mx.hostile.example');
        }
        reply = await client.mail(sender, to, content).catch(() => 'closed');
        if (/^[25]/.test(reply)) break;
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      replies.set(to, reply);
    }
    client?.destroy();
    return replies;
  }

  const accountOf = (n: number) => n % ACCOUNTS;
  const recipientOf = (n: number) => `m${n}@in.target${accountOf(n)}.example`;

  async function* hostileMails(account: number, network: number) {
    const step = ACCOUNTS * NETWORKS;
    for (let n = account + ACCOUNTS * network; n < MAILS; n += step) {
      const isSilent = n % SILENT_INTERVAL === 0 && n < MAILS / 2;
      const domain = isSilent ? 'silent.example' : 'hostile.example';
      yield { sender: `eve${n}@${domain}`, to: recipientOf(n), content: hostileMail(SEED, n).content };
    }
  }

  const ordinary = async () =>
    (await receivedMails(healthy)).filter(
      ({ subject, parseError }) => subject === 'ordinary' && parseError === null,
    );

  it('are received, parsed or reported as unreadable, and delay no other account', async () => {
    /** Aborted when all hostile mail is parsed. */
    const over = new AbortController();
    const { signal } = over;
    let largest = 0;
    const watchMemory = async () => {
      while (!signal.aborted) {
        largest = Math.max(largest, await daemon.metric('process_resident_memory_bytes'));
        await new Promise((resolve) => setTimeout(resolve, 200));
      }
    };
    /** Ordinary mails that were parsed while hostile mail arrived or waited. */
    let parsedMeanwhile = 0;
    async function* ordinaryMails() {
      for (let n = 0; !signal.aborted && n < MAX_ORDINARY; n++) {
        yield { sender: `ada${n}@ordinary.example`, to: 'support@in.kunde.example', content: PLAIN };
        await eventually(`ordinary mail ${n} to be parsed`, async () => (await ordinary()).length > n);
        if (!signal.aborted) parsedMeanwhile++;
      }
    }
    const begun = Date.now();
    const flood = Array.from({ length: ACCOUNTS * NETWORKS }, (_, n) => {
      const [account, network] = [n % ACCOUNTS, Math.floor(n / ACCOUNTS)];
      return server(`127.${1 + account}.${network}.1`, hostileMails(account, network));
    });
    const others = [server('127.99.0.1', ordinaryMails()), watchMemory()];
    const replies = new Map((await Promise.all(flood)).flatMap((each) => [...each]));
    const received = Date.now();
    const db = openDatabase(daemon.dataDir);
    const waiting = db
      .prepare<[], number>("SELECT count(*) FROM inbound_mails WHERE status = 'received'")
      .pluck();
    await eventually('all hostile mail to be parsed', () => waiting.get() === 0, { ms: LONG_PATIENCE_MS });
    db.close();
    const parsed = Date.now();
    over.abort();
    await Promise.all(others);

    const stored = (await Promise.all(accounts.map((api) => receivedMails(api)))).flat();
    const accepted = [...replies].filter(([, reply]) => reply.startsWith('250')).map(([to]) => to);
    const refused = [...replies].filter(([, reply]) => !reply.startsWith('250'));
    expect(refused).toEqual([]);
    expect(stored.filter(({ status }) => status !== 'parsed')).toEqual([]);
    expect(stored.flatMap(({ to }) => to).toSorted()).toEqual(accepted.toSorted());
    const unreadable = stored.filter(({ parseError }) => parseError !== null);
    const reasons = new Set(unreadable.map(({ parseError }) => parseError));
    expect([...reasons].filter((reason) => reason !== 'failed' && reason !== 'too-long')).toEqual([]);
    // The parser refuses some kinds; that it cannot be used any more would refuse all.
    expect(unreadable.length).toBeLessThan(MAILS / 4);
    expect(stored.every(({ authentication }) => authentication?.['dmarc'] !== 'pass')).toBe(true);
    for (const [n, api] of accounts.entries()) {
      const events = await api.allEvents({ event: 'email_received' });
      expect(events).toHaveLength(accepted.filter((to) => to.endsWith(`.target${n}.example`)).length);
    }
    expect(parsedMeanwhile).toBeGreaterThan(0);
    expect(largest).toBeLessThan(MAX_RSS_BYTES);
    expect(daemon.log()).not.toMatch(/trying again|uncaught|unhandled/i);

    const before = (await ordinary()).length;
    const plain = (async function* () {
      yield { sender: 'ada@ordinary.example', to: 'support@in.kunde.example', content: PLAIN };
    })();
    await server('127.98.0.1', plain);
    await eventually('an ordinary mail to be parsed', async () => (await ordinary()).length > before);
    console.log(
      `${accepted.length} mails received after ${received - begun} ms and parsed after ${parsed - begun} ms, ` +
        `${unreadable.length} unreadable (${[...reasons].join(', ')}), ` +
        `${parsedMeanwhile} ordinary mails parsed meanwhile, at most ${Math.round(largest / 1024 ** 2)} MB`,
    );
  });
});
