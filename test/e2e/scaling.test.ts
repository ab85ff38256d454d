import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { dkimVerify } from 'mailauth/lib/dkim/verify.js';
import { simpleParser } from 'mailparser';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dsn } from '../smtp/mx/mails.ts';
import {
  type ApiClient,
  type CreatedDomain,
  createApiClient,
  type VerifiedDomain,
} from '../support/api-client.ts';
import { type RunningDaemon, startDaemon } from '../support/daemon.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { codeBlocks } from '../support/documentation.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { type Haproxy, startHaproxy } from '../support/haproxy.ts';
import { publishMailHost } from '../support/recipients.ts';
import { requirePrograms } from '../support/required-programs.ts';
import { smtpClient } from '../support/smtp-client.ts';
import { type Sink, startSink } from '../support/smtp-sink.ts';
import { publishPlatform, verifiedDomain } from '../support/verified-domain.ts';

/*
 * Two daemons behind HAProxy with the configuration of docs/scaling.md. An account moves from the first to the second.
 *
 *                    ┌─▶ mx1: account "shop", later moved ──SMTP──┐
 *   test ──▶ HAProxy ┤      │ export, import                      ├──▶ sink
 *                    └─▶ mx2: account "news" ─────────────SMTP────┘
 */
const required = requirePrograms('haproxy');
const DOMAIN = 'shop.example';
const RECEIVER = 'empfang.example';

interface AccountRecord {
  accountId: string;
  linkPrefix: string;
  status: string;
}

describe.skipIf(required.missing)(`two machines behind HAProxy${required.reason}`, () => {
  let dir: string;
  let dns: DnsServer;
  let sink: Sink;
  let one: RunningDaemon;
  let two: RunningDaemon;
  let proxy: Haproxy;
  let shop: ApiClient;
  let news: ApiClient;
  let mxPort: number;
  let pages: string;
  let domain: CreatedDomain;

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'postrider-scaling-'));
    dns = await startDnsServer();
    sink = await startSink();
    publishMailHost(dns, RECEIVER, sink.host);
    const [apiPort, pagesPort] = [await freePort(), await freePort()];
    pages = `http://127.0.0.1:${pagesPort}`;
    const ports = { one: await freePort(), two: await freePort() };
    mxPort = await freePort();
    const settings = (name: string, publicPort: number) => ({
      hostname: `${name}.postrider.example`,
      'dns.resolvers': [dns.address],
      'delivery.port': sink.port,
      'delivery.allowPrivateNetworks': true,
      'delivery.returnPath': 'customer',
      'public.listen': `127.0.0.1:${publicPort}`,
      'public.url': pages,
      'public.trustedProxies': ['127.0.0.1'],
      'api.trustedProxies': ['127.0.0.1'],
      'webhooks.allowPrivateNetworks': true,
    });
    one = await startDaemon(settings('mx1', ports.one));
    two = await startDaemon({ ...settings('mx2', ports.two), 'mx.listen': `127.0.0.1:${mxPort}` });
    const documented = codeBlocks(readFileSync(new URL('../../docs/scaling.md', import.meta.url), 'utf8'));
    const configuration = documented.find(({ language }) => language === 'haproxy')?.text ?? '';
    const api = `http://127.0.0.1:${apiPort}`;
    proxy = await startHaproxy({
      configuration,
      replace: [
        [':443 ssl crt /etc/haproxy/certs/api.example.net.pem', `127.0.0.1:${apiPort}`],
        [':8443 ssl crt /etc/haproxy/certs/click.example.net.pem', `127.0.0.1:${pagesPort}`],
        ['example.net', 'postrider.example'],
        ['10.0.0.1:8080', new URL(one.baseUrl).host],
        ['10.0.0.2:8080', new URL(two.baseUrl).host],
        ['10.0.0.1:8081', `127.0.0.1:${ports.one}`],
        ['10.0.0.2:8081', `127.0.0.1:${ports.two}`],
      ],
      isReady: () =>
        fetch(`${api}/healthz`).then(
          ({ status }) => status === 200,
          () => false,
        ),
    });
    shop = createApiClient(api, one.api);
    news = createApiClient(api, two.api);
    await proxy.setMap('accounts', news.accountId, 'mx2');
    domain = await verifiedDomain(one, dns, DOMAIN, { api: shop });
    await verifiedDomain(two, dns, 'news.example', { api: news });
    await writeFile(join(dir, 'passphrase'), 'a passphrase for this test\n');
  }, 120_000);
  afterAll(async () => {
    await proxy?.stop();
    await one?.stop();
    await two?.stop();
    await sink?.close();
    await dns?.close();
    await rm(dir, { recursive: true, force: true });
  });

  /** Sends to a user of the receiver; returns the message and its mail as it arrived. */
  async function send(api: ApiClient, from: string, user: string) {
    const response = await api.send({
      from: `a@${from}`,
      to: `${user}@${RECEIVER}`,
      subject: user,
      html: '<p><a href="https://shop.example/offer">Offer</a> {{company_address_html}} {{unsubscribe_email_html}}</p>',
      enableClickTracking: true,
    });
    const { messageId } = response.data;
    const message = await eventually(
      `the mail to ${user}`,
      () => sink.messages.find(({ to }) => to.includes(`${user}@${RECEIVER}`)) ?? null,
    );
    return { messageId, message, mail: await simpleParser(message.raw, { skipTextLinks: true }) };
  }

  const linkIn = (html: string | false, kind: string): string =>
    new RegExp(`http://[^"'\\s>]*/${kind}/[^"'\\s>]+`).exec(html || '')?.[0] ?? '';

  /** Requests a URL from the load balancer, whatever host it names; follows no redirect. With `body`: POST. */
  function visit(url: string, body?: string) {
    const { host, pathname } = new URL(url);
    return new Promise<{ status: number; location: string | undefined }>((resolve, reject) => {
      const form = { 'Content-Type': 'application/x-www-form-urlencoded' };
      request(`${pages}${pathname}`, {
        method: body === undefined ? 'GET' : 'POST',
        headers: { Host: host, ...(body === undefined ? {} : form) },
      })
        .on('error', reject)
        .on('response', (response) => {
          response.resume();
          resolve({ status: response.statusCode ?? 0, location: response.headers.location });
        })
        .end(body);
    });
  }

  /** What the API returns for an account, without fields that differ between machines. */
  async function contents(api: ApiClient): Promise<Record<string, unknown>> {
    const paths = [
      '/web-setup/account',
      '/web-setup/domain-groups',
      '/web-setup/templates',
      '/web-setup/compliance-templates',
      '/web-setup/contacts',
      '/web-setup/contacts/subscription-groups',
      '/web-setup/suppressions',
      '/web-setup/webhooks',
      '/web-setup/campaigns',
    ];
    const all = paths.map(async (path) => {
      const { status, data, text } = await api.get<unknown>(path);
      if (status !== 200) throw new Error(`${path}: ${text}`);
      return [path, data] as const;
    });
    const found: Record<string, unknown> = Object.fromEntries(await Promise.all(all));
    const json = JSON.stringify(found, (key, value) => (key === 'updatedAt' ? undefined : value));
    return JSON.parse(json);
  }

  async function prepare(api: ApiClient): Promise<void> {
    const post = async (path: string, body: unknown) => {
      const response = await api.post<unknown>(path, body);
      if (response.status >= 300) throw new Error(`${path}: ${response.text}`);
    };
    await post('/web-setup/templates', { name: 'Order', subject: 'Order', html: '<p>Order</p>' });
    await post('/web-setup/contacts/subscription-groups', { name: 'News' });
    await post('/web-setup/webhooks', { url: 'http://127.0.0.1:9/hooks', events: ['*'] });
    await post('/web-setup/campaigns', { name: 'January' });
    for (const user of ['ada', 'bob'])
      await post('/web-setup/contacts', {
        email: `${user}@${RECEIVER}`,
        consent: { method: 'double_opt_in', details: 'form' },
      });
    await post('/web-setup/suppressions', { email: `gone@${RECEIVER}` });
  }

  it('sends, moves an account, and continues', async () => {
    await prepare(shop);
    const first = await send(shop, DOMAIN, 'first');
    const second = await send(shop, DOMAIN, 'second');
    await send(news, 'news.example', 'other');
    // Each account is on its own machine.
    expect(await one.metric('postrider_queue_messages')).toBe(0);
    expect((await shop.allMessages()).map(({ recipient }) => recipient)).toHaveLength(2);
    expect(await news.allMessages()).toHaveLength(1);
    const wrong = await createApiClient(two.baseUrl, shop).get('/web-setup/account');
    expect(wrong.status).toBe(401);

    // The move.
    const before = await contents(shop);
    const records: AccountRecord[] = JSON.parse(await one.cli('account', 'list', '--json'));
    const prefix = records.find(({ accountId }) => accountId === shop.accountId)?.linkPrefix ?? '';
    const click = linkIn(first.mail.html, 'c');
    expect(new URL(click).pathname.slice(3, 11)).toBe(prefix);
    await proxy.setMap('accounts', shop.accountId, 'moving');
    const moving = await shop.send({ from: `a@${DOMAIN}`, to: `never@${RECEIVER}` });
    expect([moving.status, moving.error.code, moving.headers.get('retry-after')]).toEqual([
      503,
      'UNAVAILABLE',
      '60',
    ]);
    await eventually(
      'the first machine to have sent everything',
      async () => (await one.metric('postrider_queue_messages')) === 0,
    );
    const file = join(dir, 'shop.account.gz');
    const passphrase = ['--passphrase-file', join(dir, 'passphrase')];
    const exported = JSON.parse(
      await one.cli('account', 'export', shop.accountId, '--output', file, ...passphrase, '--json'),
    );
    expect(exported).toMatchObject({
      disabled: true,
      queued: 0,
      counts: { account: 1, api_key: 3, domain: 1, contact: 2, moved_message: 2 },
    });
    const checked = JSON.parse(
      await two.cli('account', 'import', file, ...passphrase, '--dry-run', '--json'),
    );
    expect(checked).toMatchObject({ accountId: shop.accountId, dryRun: true, counts: exported.counts });
    const imported = JSON.parse(await two.cli('account', 'import', file, ...passphrase, '--json'));
    expect(imported).toMatchObject({ resumed: false, records: exported.records });
    const again = await two.tryCli('account', 'import', file, ...passphrase);
    expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('exists already')]);
    await two.cli('account', 'enable', shop.accountId);
    await publishPlatform(two, dns);
    await proxy.setMap('accounts', shop.accountId, 'mx2');
    await proxy.setMap('links', prefix, 'mx2');

    // The account, its API keys and its DKIM records are the same.
    expect(await contents(shop)).toEqual(before);
    const { data: moved } = await shop.get<Pick<CreatedDomain, 'dnsRecords'>>(
      `/web-setup/domains/${domain.domainId}/dns-records`,
    );
    const dkim = (records: CreatedDomain['dnsRecords']) =>
      records.filter(({ name, type }) => name.endsWith(`_domainkey.${DOMAIN}`) && type === 'TXT');
    expect(dkim(moved.dnsRecords)).toEqual(dkim(domain.dnsRecords));
    expect(dkim(moved.dnsRecords)).not.toEqual([]);
    const third = await send(shop, DOMAIN, 'third');
    // With the record that was published for the first machine.
    const { results } = await dkimVerify(Buffer.from(third.message.raw, 'latin1'), {
      resolver: async (name: string) =>
        dkim(domain.dnsRecords).flatMap((record) => (record.name === name ? [[record.value]] : [])),
    });
    const own = results.find(({ signingDomain }) => signingDomain === DOMAIN);
    expect(own?.status.result).toBe('pass');
    expect((await createApiClient(one.baseUrl, shop).get('/web-setup/account')).error.code).toBe(
      'ACCOUNT_DISABLED',
    );
    // After the DNS records are changed as documented, the domain is verified.
    for (const { name } of moved.dnsRecords) dns.remove(name);
    dns.publish(moved.dnsRecords);
    const verified = await shop.post<VerifiedDomain>(`/web-setup/domains/${domain.domainId}/verify`);
    expect(verified.data.status).toBe('SUCCESS');

    // Links in the mail of the first machine.
    const clicked = await visit(click);
    expect([clicked.status, clicked.location]).toEqual([302, 'https://shop.example/offer']);
    const unsubscribe = linkIn(first.mail.html, 'u');
    const unsubscribed = await visit(unsubscribe, 'List-Unsubscribe=One-Click');
    expect(unsubscribed.status).toBe(200);
    const refused = await shop.send({
      from: `a@${DOMAIN}`,
      to: `first@${RECEIVER}`,
      subject: 'x',
      html: '<p>{{company_address_html}} {{unsubscribe_email_html}}</p>',
    });
    expect(refused.error.code).toBe('RECIPIENT_UNSUBSCRIBED');

    // A bounce of a message of the first machine arrives at the second, twice.
    for (let copy = 0; copy < 2; copy++) {
      const client = await smtpClient(mxPort);
      await client.say('EHLO mx.empfang.example');
      const report = dsn({ recipient: `second@${RECEIVER}` });
      expect(await client.mail('', second.message.from, report)).toMatch(/^250 /);
      client.destroy();
    }
    const bounces = await shop.allEvents({ event: 'email_bounced' });
    expect(bounces).toHaveLength(1);
    expect(bounces[0]).toMatchObject({ bounceType: 'hard', suppressed: true, source: 'dsn' });
    const suppressed = await shop.send({
      from: `a@${DOMAIN}`,
      to: `second@${RECEIVER}`,
      subject: 'x',
      html: '<p>{{company_address_html}} {{unsubscribe_email_html}}</p>',
    });
    expect(suppressed.error.code).toBe('RECIPIENT_SUPPRESSED');

    // The ledger: every accepted message arrived once.
    const recipients = sink.messages.flatMap(({ to }) => to);
    expect(recipients.toSorted()).toEqual(
      ['first', 'other', 'second', 'third'].map((user) => `${user}@${RECEIVER}`),
    );
  }, 120_000);
});
