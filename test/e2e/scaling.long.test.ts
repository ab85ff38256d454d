// Long: runs two daemons behind a load balancer and moves an account between them.
import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
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
import { type Caddy, startCaddy } from '../support/caddy.ts';
import { type RunningDaemon, startDaemon } from '../support/daemon.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { type Haproxy, startHaproxy } from '../support/haproxy.ts';
import { createMachine, type Machine } from '../support/machine.ts';
import { blocksOf } from '../support/reader.ts';
import { publishMailHost } from '../support/recipients.ts';
import { requirePrograms } from '../support/required-programs.ts';
import { smtpClient } from '../support/smtp-client.ts';
import { type Sink, startSink } from '../support/smtp-sink.ts';
import { publishPlatform, verifiedDomain } from '../support/verified-domain.ts';

/*
 * docs/scaling.md: two daemons behind HAProxy with its configuration, and then behind Caddy. Its commands move an account
 * from the first to the second.
 *
 *                    ┌─▶ mx1: account "shop", later moved ──SMTP──┐
 *   test ──▶ HAProxy ┤      │ export, import                      ├──▶ sink
 *                    └─▶ mx2: account "news" ─────────────SMTP────┘
 */
const required = requirePrograms('haproxy', 'caddy', 'socat');
const DOMAIN = 'shop.example';
const RECEIVER = 'empfang.example';
const BLOCKS = ['docs/scaling.md', 'docs/reference/load-balancers.md'].flatMap(blocksOf);
/** Accounts and link prefixes of the document: one that moves, and one that is on the second machine. */
const MOVED = { account: 'acct_8f3k2m9x0q1z', prefix: 'olW3x9aQ' };
const OTHER = { account: 'acct_5h1w8c4v7n2d', prefix: 'Qz7RkP2m' };

/** The block of the document in a language, or with commands for a machine that contain a text. */
function documented(language: string, text = ''): string {
  const found = BLOCKS.filter((block) => block.language === language && block.text.includes(text));
  const [block] = found;
  if (block === undefined || found.length > 1)
    throw new Error(`${found.length} blocks with ${language} ${text}`);
  return block.text;
}

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
  let caddy: Caddy | null = null;
  let publicListeners: Record<'one' | 'two', string>;
  let machines: Record<'the load balancer' | 'the old machine' | 'the new machine', Machine>;
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
    publicListeners = { one: `127.0.0.1:${ports.one}`, two: `127.0.0.1:${ports.two}` };
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
    const otherPrefix = await prefixOf(two, two.api.accountId);
    const mapOf = (name: string) =>
      (new RegExp(`^# /etc/haproxy/${name}.map\n([^#]+)`, 'm').exec(documented('', '.map'))?.[1] ?? '')
        .replace(OTHER.account, two.api.accountId)
        .replace(OTHER.prefix, otherPrefix);
    const api = `http://127.0.0.1:${apiPort}`;
    proxy = await startHaproxy({
      configuration: documented('haproxy'),
      maps: { accounts: mapOf('accounts'), links: mapOf('links') },
      replace: [
        [':443 ssl crt /etc/haproxy/certs/api.example.net.pem', `127.0.0.1:${apiPort}`],
        [':8443 ssl crt /etc/haproxy/certs/click.example.net.pem', `127.0.0.1:${pagesPort}`],
        ['example.net', 'postrider.example'],
        ['10.0.0.1:8080', new URL(one.baseUrl).host],
        ['10.0.0.2:8080', new URL(two.baseUrl).host],
        ['10.0.0.1:8081', publicListeners.one],
        ['10.0.0.2:8081', publicListeners.two],
      ],
      isReady: () =>
        fetch(`${api}/healthz`).then(
          ({ status }) => status === 200,
          () => false,
        ),
    });
    shop = createApiClient(api, one.api);
    news = createApiClient(api, two.api);
    const paths = { '/etc/haproxy': proxy.dir, '/run/haproxy': proxy.dir };
    const moved = {
      [MOVED.account]: shop.accountId,
      [MOVED.prefix]: await prefixOf(one, shop.accountId),
    };
    const machine = (name: string, env: NodeJS.ProcessEnv, replace: Record<string, string>) =>
      createMachine({
        dir: join(dir, name),
        env,
        replace: { ...moved, ...replace },
        // The data directory of the other machine is one of this machine.
        programs: { scp: 'exec sh -c "cp -p $2 $3"' },
      });
    machines = {
      'the load balancer': machine('balancer', {}, paths),
      'the old machine': machine('old', one.env, { '/var/lib/postrider': one.dataDir }),
      'the new machine': machine('new', two.env, {
        'root@mx1.example.net:/var/lib/postrider': one.dataDir,
        '/var/lib/postrider': two.dataDir,
      }),
    };
    domain = await verifiedDomain(one, dns, DOMAIN, { api: shop });
    await verifiedDomain(two, dns, 'news.example', { api: news });
  });
  afterAll(async () => {
    await caddy?.stop();
    await proxy?.stop();
    await one?.stop();
    await two?.stop();
    await sink?.close();
    await dns?.close();
    await rm(dir, { recursive: true, force: true });
  });

  /** Runs the commands of the document that contain a text, on the machine that their first line names. */
  function follow(text: string): Promise<string> {
    const commands = documented('sh', text);
    const name = /^# on (.+)$/m.exec(commands)?.[1] ?? '';
    const machine = Object.entries(machines).find(([known]) => known === name)?.[1];
    if (machine === undefined) throw new Error(`no machine is named in ${commands}`);
    return machine.run(commands);
  }

  async function prefixOf(daemon: RunningDaemon, accountId: string): Promise<string> {
    const records: AccountRecord[] = JSON.parse(await daemon.cli('account', 'list', '--json'));
    return records.find((record) => record.accountId === accountId)?.linkPrefix ?? '';
  }

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
    // The contents of messages stay on the machine that has sent them, and do not count on the other one.
    const omitted = ['updatedAt', 'storedBytes'];
    const json = JSON.stringify(found, (key, value) => (omitted.includes(key) ? undefined : value));
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

  it('has a configuration for each machine that the program accepts', async () => {
    const file = join(dir, 'machine.toml');
    await writeFile(file, documented('toml'));
    await machines['the load balancer'].run(`postrider config check --config '${file}'`);
  });

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
    const prefix = await prefixOf(one, shop.accountId);
    const click = linkIn(first.mail.html, 'c');
    expect(new URL(click).pathname.slice(3, 11)).toBe(prefix);
    expect(await follow('--live')).toMatch(
      new RegExp(`^Exported account ${shop.accountId}: \\d+ records, 2 contacts, 1 domains\n$`),
    );
    expect(await follow('shop.account.gz --passphrase-file')).toMatch(
      /^Imported account .+ 2 contacts, 1 domains\.$/m,
    );
    // Still in use.
    await send(shop, DOMAIN, 'between');
    const before = await contents(shop);
    expect(await follow('--difference')).toMatch(/^Exported account .+ 0 contacts, 1 domains\n$/);
    const moving = await shop.send({ from: `a@${DOMAIN}`, to: `never@${RECEIVER}` });
    expect([moving.status, moving.error.code, moving.headers.get('retry-after')]).toEqual([
      503,
      'UNAVAILABLE',
      '10',
    ]);
    const kept = ['shop.account.gz', 'shop.passphrase'].map((name) => join(dir, name));
    const [file = '', passphrase = ''] = kept;
    for (const to of kept) await copyFile(join(one.dataDir, basename(to)), to);
    const imported = await follow('--enable');
    expect(imported).toMatch(/^Imported account .+ 1 domains\. Its requests were refused for \d+\.\d s\.$/m);
    expect(imported).toContain(`"linkPrefix": "${prefix}"`);
    const again = await two.tryCli('account', 'import', file, '--passphrase-file', passphrase);
    expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('already exists')]);
    await publishPlatform(two, dns);
    await follow('add map /etc/haproxy/accounts.map');
    expect(await readFile(join(proxy.dir, 'accounts.map'), 'utf8')).toMatch(
      new RegExp(`^${news.accountId} mx2\n\\s*${shop.accountId} mx2\n$`),
    );

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
      'UNAVAILABLE',
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

    // What arrives at the first machine is added at the second.
    await one.cli('suppression', 'add', `late@${RECEIVER}`, '--account', shop.accountId);
    await follow('--late');
    const late = ['account', 'import', join(one.dataDir, 'shop.late.gz'), '--passphrase-file', passphrase];
    expect(await two.cli(...late)).toMatch(/^Added 1 of 1 opt-outs and suppressions/);
    expect((await shop.get<unknown>('/web-setup/suppressions')).text).toContain(`late@${RECEIVER}`);

    // The same with Caddy, whose configuration has both accounts of the second machine by the name of one.
    const ports = { api: await freePort(), pages: await freePort() };
    caddy = await startCaddy({
      configuration: documented('caddyfile'),
      replace: [
        ['api.example.net', `http://127.0.0.1:${ports.api}`],
        ['click.example.net', `http://127.0.0.1:${ports.pages}`],
        [OTHER.account, shop.accountId],
        [OTHER.prefix, prefix],
        ['10.0.0.1:8080', new URL(one.baseUrl).host],
        ['10.0.0.2:8080', new URL(two.baseUrl).host],
        ['10.0.0.1:8081', publicListeners.one],
        ['10.0.0.2:8081', publicListeners.two],
      ],
      isReady: () =>
        fetch(`http://127.0.0.1:${ports.api}/healthz`).then(
          ({ status }) => status === 200,
          () => false,
        ),
    });
    const viaCaddy = (api: ApiClient) =>
      createApiClient(`http://127.0.0.1:${ports.api}`, api).get('/web-setup/account');
    expect((await viaCaddy(shop)).status).toBe(200);
    // It is not in Caddy's map, and the default machine does not have it.
    expect((await viaCaddy(news)).status).toBe(401);
    const page = `http://127.0.0.1:${ports.pages}${new URL(click).pathname}`;
    expect((await fetch(page, { redirect: 'manual' })).headers.get('location')).toBe(
      'https://shop.example/offer',
    );

    // The ledger: every accepted message arrived once.
    const recipients = sink.messages.flatMap(({ to }) => to);
    expect(recipients.toSorted()).toEqual(
      ['between', 'first', 'other', 'second', 'third'].map((user) => `${user}@${RECEIVER}`),
    );
  });
});
