import { Resolver } from 'node:dns/promises';
import { dkimVerify } from 'mailauth/lib/dkim/verify.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RunningDaemon, startDaemon } from '../support/daemon.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { eventually } from '../support/eventually.ts';
import { type Exim, eximFault, startExim } from '../support/exim.ts';
import { freePort } from '../support/free-port.ts';
import { faultsInEvents, readLedger } from '../support/ledger.ts';
import { type Postfix, startPostfix } from '../support/postfix.ts';
import { requirePrograms } from '../support/required-programs.ts';
import { verifiedDomain } from '../support/verified-domain.ts';

/*
 * A burst over one connection: the first message with DATA, the next ones with BDAT in one write (RFC 3030). Real servers store each of
 * them unchanged, and discard the chunks of recipients that they refuse.
 *
 *   test ──HTTP──▶ postrider ──SMTP──▶ Postfix    postfix.example    also refuses clients that pipeline what they must not
 *                            └─SMTP──▶ Exim       exim.example
 */
const required = requirePrograms('postfix');
const fault = eximFault();
const reason = required.reason || (fault === null ? '' : ` (${fault})`);

const MESSAGES = 20;
/** Every fifth message. */
const REFUSED = 4;
/** Lines with dots, which BDAT does not double. */
const HTML = '<p>.</p>\n.\n..\n<p>{{company_address_html}}{{unsubscribe_email_html}}</p>';

describe.skipIf(required.missing || fault !== null)(`delivery with BDAT${reason}`, () => {
  let dns: DnsServer;
  let postfix: Postfix;
  let exim: Exim;
  let daemon: RunningDaemon;

  beforeAll(async () => {
    dns = await startDnsServer();
    const port = await freePort('127.0.0.3');
    postfix = await startPostfix({
      hostname: 'mx.postfix.example',
      mailboxes: ['ada@postfix.example'],
      host: '127.0.0.2',
      port,
      parameters: { smtpd_data_restrictions: 'reject_unauth_pipelining' },
    });
    exim = await startExim({
      hostname: 'mx.exim.example',
      domain: 'exim.example',
      mailboxes: ['ada'],
      host: '127.0.0.3',
      port,
      quota: 10_000_000,
      acl: '  deny local_parts = ! ada\n       message = unknown user',
      reportsTo: { host: '127.0.0.1', port: 9 },
    });
    for (const { hostname, host } of [postfix, exim]) {
      dns.set(hostname.slice('mx.'.length), 'MX', [`10 ${hostname}`]);
      dns.set(hostname, 'A', [host]);
    }
    daemon = await startDaemon({
      'dns.resolvers': [dns.address],
      'delivery.port': port,
      'delivery.allowPrivateNetworks': true,
      'delivery.shaping': ['postfix.example', 'exim.example'].map((match) => ({
        match,
        connections: 1,
        idleSeconds: 2,
      })),
    });
    await verifiedDomain(daemon, dns, 'kunde.example');
  });
  afterAll(async () => {
    await daemon?.stop();
    await exim?.stop();
    await postfix?.stop();
    await dns?.close();
  });

  async function sendBurst(domain: string): Promise<void> {
    const accepted = Array.from({ length: MESSAGES }, (_, number) =>
      daemon.api.send({
        from: 'a@kunde.example',
        to: `${number % 5 === 4 ? `unknown${number}` : 'ada'}@${domain}`,
        subject: `Message ${number}`,
        html: HTML,
      }),
    );
    await Promise.all(accepted);
    await eventually('an empty queue', async () => (await readLedger(daemon.api)).queued === 0);
  }

  /** `mails`: as stored, with lines that end with LF. */
  async function expectUnchanged(mails: readonly string[]): Promise<void> {
    expect(mails).toHaveLength(MESSAGES - REFUSED);
    const names = new Resolver();
    names.setServers([dns.address]);
    for (const mail of mails) {
      expect(mail).toContain('<p>.</p>\n.\n..\n<p>');
      const { results } = await dkimVerify(Buffer.from(mail.replaceAll('\n', '\r\n'), 'latin1'), {
        resolver: (name: string) => names.resolveTxt(name),
      });
      expect(results.map(({ status }) => status.result)).toEqual(['pass']);
    }
  }

  it('stores every message unchanged in a Postfix, which discards the refused ones', async () => {
    await sendBurst('postfix.example');
    const mails = await postfix.waitForMail('ada@postfix.example', MESSAGES - REFUSED);
    await expectUnchanged(mails.map((mail) => mail.toString('latin1')));
    // It is logged when the connection is closed: `bdat=12/16`, of which twelve were accepted.
    const bdat = await eventually('the number of BDAT commands', async () =>
      / bdat=(\d+)\/(\d+) /.exec(await postfix.log()),
    );
    expect(Number(bdat[1])).toBeGreaterThan(REFUSED);
    expect(Number(bdat[2]) - Number(bdat[1])).toBeGreaterThan(0);
    expect(await postfix.log()).not.toMatch(/improper|too many errors/i);
  });

  it('stores every message unchanged in an Exim, which discards the refused ones', async () => {
    await sendBurst('exim.example');
    const mailbox = await exim.mailbox('ada');
    await expectUnchanged(
      mailbox
        .split(/^From .*\n/m)
        .slice(1)
        .map((mail) => mail.replace(/\n$/, '')),
    );
    const received = (await exim.log()).split('\n').filter((line) => line.includes(' <= '));
    expect(received).toHaveLength(MESSAGES - REFUSED);
    // K: received with BDAT.
    expect(received.filter((line) => / K /.test(line)).length).toBeGreaterThan(REFUSED);
  });

  it('accounts for every message', async () => {
    const { accepted, delivered, bounced } = await readLedger(daemon.api);
    expect([accepted, delivered, bounced]).toEqual([2 * MESSAGES, 2 * (MESSAGES - REFUSED), 2 * REFUSED]);
    expect(await faultsInEvents(daemon.api)).toEqual([]);
  });
});
