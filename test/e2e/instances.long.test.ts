// Long: installs the package on a Debian system that it boots, and runs four daemons there.
import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { simpleParser } from 'mailparser';
import { parse as parseToml } from 'smol-toml';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ApiClient, type Credentials, createApiClient } from '../support/api-client.ts';
import { variables } from '../support/daemon.ts';
import { DEBIAN_PACKAGES, type DebianSystem, installDebian, listFiles } from '../support/debian-system.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { eventually } from '../support/eventually.ts';
import { type Haproxy, startHaproxy } from '../support/haproxy.ts';
import { builtPackages, withVersion } from '../support/packages.ts';
import { blocksOf } from '../support/reader.ts';
import { publishMailHost } from '../support/recipients.ts';
import { requirePrograms } from '../support/required-programs.ts';
import { smtpClient } from '../support/smtp-client.ts';
import { type Sink, startSink } from '../support/smtp-sink.ts';
import { verifiedDomain } from '../support/verified-domain.ts';

/*
 * docs/reference/several-daemons.md: four instances of the package on one Debian system, behind HAProxy with the documented
 * configuration.
 *
 *                    ┌─▶ postrider@shop  ──┐
 *   test ──▶ HAProxy ┼─▶ postrider@news  ──┼──SMTP──▶ sink
 *                    ├─▶ postrider@lists ──┤
 *                    └─▶ postrider@tx    ──┘
 */
const required = requirePrograms('dpkg-deb', 'mmdebstrap', 'systemd-nspawn', 'compiler', 'haproxy', 'root');
const DOCUMENT = 'docs/reference/several-daemons.md';
const BLOCKS = blocksOf(DOCUMENT);
/** The first two are those of the document. */
const NAMES = ['shop', 'news', 'lists', 'tx'] as const;
type Name = (typeof NAMES)[number];
const OLDER_VERSION = '0.0.1';
const RECEIVER = 'empfang.example';
/** Listeners and the configured ports of the first instance; each other one has the next four. */
const PORTS = { api: 8083, pages: 8084, console: 8085, submission: 8086 };
const PORTS_EACH = Object.keys(PORTS).length;

/** Addresses of the shared loopback interface that no other test uses, also not in another run. */
const loopback = (n: number) => `127.${90 + n}.${(process.pid >> 8) & 255}.${process.pid & 255}`;
const FRONT = loopback(9);
const addressOf = (name: Name) => loopback(NAMES.indexOf(name));
const unitOf = (name: Name) => `postrider@${name}.service`;

/** The only block of the document in a language that contains a text. */
function documented(language: string, text = ''): string {
  const found = BLOCKS.filter((block) => block.language === language && block.text.includes(text));
  const [block] = found;
  if (block === undefined || found.length > 1) throw new Error(`${found.length} blocks: ${language} ${text}`);
  return block.text;
}

/** A text of the document about the first instance, for this one. */
function forInstance(name: Name, text: string): string {
  return text
    .replaceAll('shop', name)
    .replaceAll(/127\.0\.0\.1:(\d+)/g, (_, port) => `${addressOf(name)}:${portOf(name, Number(port))}`)
    .replaceAll('192.0.2.11', addressOf(name))
    .replaceAll('example.net', 'postrider.example');
}

const portOf = (name: Name, first: number) => first + PORTS_EACH * NAMES.indexOf(name);

/** haproxy.cfg with the backends of all instances. */
function haproxyConfiguration(): string {
  const text = documented('haproxy');
  const [start, end] = [text.indexOf('backend shop-api'), text.indexOf('backend news-api')];
  const ofShop = text.slice(start, end);
  return text.slice(0, start) + NAMES.map((name) => forInstance(name, ofShop)).join('');
}

function hostsMap(): string {
  const lines = documented('', 'hosts.map').split('\n');
  const ofShop = lines.filter((line) => line.includes(' shop-')).join('\n');
  return NAMES.map((name) => `${forInstance(name, ofShop)}\n`).join('');
}

// Each installation unpacks 150 MB, which takes long on a busy machine.
describe.skipIf(required.missing)(`${DOCUMENT}${required.reason}`, () => {
  let dir: string;
  let system: DebianSystem;
  let sink: Sink;
  let dns: DnsServer;
  let proxy: Haproxy;
  let current: string;
  let filesBefore: string[];
  let passwdBefore: string;
  const accounts = new Map<Name, Credentials>();

  const show = async (name: Name, property: string) =>
    (await system.run('systemctl', 'show', '--value', '--property', property, unitOf(name))).trim();
  const mainPid = (name: Name) => show(name, 'MainPID');
  const mainPids = () => Promise.all(NAMES.map(mainPid));
  const cli = (name: Name, ...args: string[]) => system.run('postrider', '--instance', name, ...args);
  const asUser = (name: Name, ...command: string[]) =>
    system.tryRun(
      'setpriv',
      `--reuid=postrider-${name}`,
      `--regid=postrider-${name}`,
      '--init-groups',
      ...command,
    );
  const passwd = () => system.run('cat', '/etc/passwd', '/etc/group');

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'postrider-instances-'));
    const packages = builtPackages();
    [system] = await Promise.all([installDebian(DEBIAN_PACKAGES), packages]);
    const { deb } = await packages;
    const previous = await withVersion(deb, OLDER_VERSION, dir);
    for (const file of [deb, previous]) await copyFile(file, join(system.root, 'root', basename(file)));
    current = `/root/${basename(deb)}`;
    sink = await startSink();
    dns = await startDnsServer();
    publishMailHost(dns, RECEIVER, sink.host);
    await system.boot();
    filesBefore = await listFiles(system.root);
    passwdBefore = await passwd();
    await system.run('dpkg', '--install', `/root/${basename(previous)}`);
    const env = variables({
      'dns.resolvers': [dns.address],
      'delivery.port': sink.port,
      'delivery.allowPrivateNetworks': true,
    });
    const settings = Object.entries(env).map(([name, value]) => `Environment='${name}=${value}'\n`);
    const dropIn = 'etc/systemd/system/postrider@.service.d/test.conf';
    await system.run('mkdir', '-p', '/etc/systemd/system/postrider@.service.d');
    await writeFile(join(system.root, dropIn), `[Service]\n${settings.join('')}`);
    await system.run('systemctl', 'daemon-reload');
    proxy = await startHaproxy({
      configuration: haproxyConfiguration(),
      maps: { hosts: hostsMap() },
      replace: [
        ['192.0.2.10:443 ssl crt /etc/haproxy/certs/', `${FRONT}:443`],
        ['192.0.2.10:465', `${FRONT}:465`],
      ],
      isReady: () =>
        fetch(`http://${FRONT}:443/`).then(
          () => true,
          () => false,
        ),
    });
  });

  afterAll(async () => {
    await proxy?.stop();
    await system?.remove();
    await sink?.close();
    await dns?.close();
    await rm(dir, { recursive: true, force: true });
  });

  /** A client of an instance, without the load balancer. */
  function direct(name: Name): ApiClient {
    const account = accounts.get(name);
    if (account === undefined) throw new Error(`${name} has no account`);
    return createApiClient(`http://${addressOf(name)}:${portOf(name, PORTS.api)}`, account);
  }

  /** A request to the one address of HAProxy, for a host name. */
  function through(
    host: string,
    path: string,
    { body, headers = {} }: { body?: unknown; headers?: Record<string, string> } = {},
  ) {
    return new Promise<{ status: number; text: string; location: string | undefined }>((resolve, reject) => {
      request(`http://${FRONT}:443${path}`, {
        method: body === undefined ? 'GET' : 'POST',
        headers: { ...headers, Host: host, 'Content-Type': 'application/json' },
        agent: false,
      })
        .on('error', reject)
        .on('response', (response) => {
          let text = '';
          response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
          response.on('end', () =>
            resolve({ status: response.statusCode ?? 0, text, location: response.headers.location }),
          );
        })
        .end(body === undefined ? undefined : JSON.stringify(body));
    });
  }

  const apiHost = (name: Name) => `api.${name}.postrider.example`;
  /** The account of a name at the instance of another or the same name. */
  async function accountStatus(instance: Name, account: Name = instance): Promise<number> {
    const { accountId, keys } = direct(account);
    const headers = { 'X-Id': accountId, 'X-Api-Key': keys.setup };
    return (await through(apiHost(instance), '/web-setup/account', { headers })).status;
  }

  const ready = (name: Name) =>
    eventually(`${name} to answer`, async () => (await through(apiHost(name), '/readyz')).status === 200);

  it('sets up each with its own user, directories, address and ports', async () => {
    const listeners: string[] = [];
    const [init = '', start = ''] = documented('sh', ' init ').trim().split('\n');
    for (const name of NAMES) {
      const env = Object.entries(variables({ 'dns.resolvers': [dns.address] })).map((entry) =>
        entry.join('='),
      );
      const company = ['--company', 'Kunde GmbH', '--address', 'Hauptstrasse 1, 10115 Berlin, DE'];
      const command = [...forInstance(name, init).split(' '), ...company, '--json'];
      const created: { account: Credentials; next: string[] } = JSON.parse(
        await system.run('env', ...env, ...command),
      );
      accounts.set(name, created.account);
      expect(created.next[0]).toBe(forInstance(name, start));
      expect(created.next[1]).toMatch(new RegExp(`^postrider --instance ${name} `));
      const written = parseToml(await system.run('cat', `/etc/postrider-${name}/postrider.toml`));
      expect(written).toMatchObject({
        data: { dir: `/var/lib/postrider-${name}` },
        mx: { listen: `${addressOf(name)}:25` },
        delivery: { egress: [{ address: addressOf(name) }] },
      });
      for (const section of Object.values(written))
        if (typeof section === 'object' && 'listen' in section)
          listeners.push(JSON.stringify(section['listen']));
    }
    // API, pages, console, MX.
    expect(listeners).toHaveLength(4 * NAMES.length);
    expect(new Set(listeners).size).toBe(listeners.length);
    expect(
      await system.run(
        'stat',
        '--format',
        '%n %U:%G %a',
        '/etc/postrider-shop',
        '/etc/postrider-shop/postrider.toml',
        '/var/lib/postrider-shop',
      ),
    ).toBe(
      '/etc/postrider-shop root:postrider-shop 750\n/etc/postrider-shop/postrider.toml root:postrider-shop 640\n/var/lib/postrider-shop postrider-shop:postrider-shop 700\n',
    );
    const again = await system.tryRun('postrider', '--instance', 'shop', 'init', '--yes');
    expect([again.code, again.output]).toEqual([1, expect.stringContaining('nothing was changed')]);
  });

  it('leaves nothing of an instance that cannot be set up', async () => {
    const before = await passwd();
    const options = ['--yes', '--hostname', 'broken.postrider.example', '--domain', 'co.uk'];
    const { code, output } = await system.tryRun('postrider', '--instance', 'broken', 'init', ...options);
    expect([code, output]).toEqual([1, expect.stringContaining('was removed again')]);
    expect(await passwd()).toBe(before);
    expect(await system.run('sh', '-c', 'ls -d /etc/postrider* /var/lib/postrider*')).not.toContain('broken');
  });

  it('starts all of them with the documented configuration', async () => {
    for (const name of NAMES) {
      const file = `/etc/postrider-${name}/postrider.toml`;
      const publicAddress = `93.184.216.${10 + NAMES.indexOf(name)}`;
      const text = forInstance(name, documented('toml'));
      expect(text).toContain(`address = "${addressOf(name)}" }`);
      await writeFile(
        join(system.root, file),
        text.replace(`"${addressOf(name)}" }`, `"${addressOf(name)}", publicAddress = "${publicAddress}" }`),
      );
      expect(await cli(name, 'config', 'check')).toContain(file);
    }
    await system.run('systemctl', 'enable', '--now', ...NAMES.map(unitOf));
    await Promise.all(NAMES.map(ready));
    expect(new Set(await Promise.all(NAMES.map((name) => show(name, 'Slice'))))).toEqual(
      new Set(['system-postrider.slice']),
    );
    const verified = await system.tryRun('systemd-analyze', 'verify', '--man=no', unitOf('shop'));
    expect(verified.output).toBe('');
  });

  it('leads each request on the one address to the instance of its host name', async () => {
    for (const name of NAMES) {
      await verifiedDomain(
        { api: direct(name), cli: (...args) => cli(name, ...args) },
        dns,
        `${name}.example`,
      );
      expect(await accountStatus(name)).toBe(200);
    }
    expect(await accountStatus('shop', 'news')).toBe(401);
    expect((await through('api.other.postrider.example', '/readyz')).status).toBe(503);
  });

  it('sends from each with its own address, over HTTP and SMTP, and answers its links', async () => {
    for (const name of NAMES) {
      const { accountId, keys } = direct(name);
      const sent = await through(apiHost(name), '/transactional/send', {
        headers: { 'X-Id': accountId, 'X-Api-Key': keys.transactional },
        body: {
          from: `a@${name}.example`,
          to: `${name}-http@${RECEIVER}`,
          subject: 'Hello',
          html: '<p><a href="https://shop.example/offer">Offer</a> {{company_address_html}} {{unsubscribe_email_html}}</p>',
          enableClickTracking: true,
        },
      });
      expect(sent.status, sent.text).toBe(200);
      await writeFile(
        join(system.root, 'root/message.eml'),
        `From: <a@${name}.example>\r\nTo: <${name}-smtp@${RECEIVER}>\r\nSubject: Hello\r\n\r\nHello\r\n`,
      );
      const host = `smtp.${name}.postrider.example`;
      const server = ['--insecure', '--resolve', `${host}:465:${FRONT}`, `smtps://${host}:465`];
      const user = ['--user', `${accountId}:${keys.transactional}`];
      const envelope = ['--mail-from', `a@${name}.example`, '--mail-rcpt', `${name}-smtp@${RECEIVER}`];
      await system.run('curl', '-sS', ...server, ...user, ...envelope, '--upload-file', '/root/message.eml');
    }
    await sink.waitFor(2 * NAMES.length);
    const origins = sink.messages.map(({ to, remoteAddress }) => `${String(to)} ${remoteAddress}`);
    expect(origins.toSorted()).toEqual(
      NAMES.flatMap((name) =>
        ['http', 'smtp'].map((way) => `${name}-${way}@${RECEIVER} ${addressOf(name)}`),
      ).toSorted(),
    );
    for (const name of NAMES) {
      const message = sink.messages.find(({ to }) => to.includes(`${name}-http@${RECEIVER}`));
      const { html } = await simpleParser(message?.raw ?? '', { skipTextLinks: true });
      const [link = ''] = /https:\/\/[^"]+\/c\/[^"]+/.exec(html || '') ?? [];
      const { host, pathname } = new URL(link);
      expect(host).toBe(`click.${name}.postrider.example`);
      expect(await through(host, pathname)).toMatchObject({
        status: 302,
        location: 'https://shop.example/offer',
      });
    }
  });

  it('has an MX listener at the address of each', async () => {
    for (const name of NAMES) {
      const client = await smtpClient(25, { host: addressOf(name) });
      expect(client.greeting).toMatch(new RegExp(`^220 ${name}\\.postrider\\.example `));
      client.destroy();
    }
  });

  it('keeps the data of an instance from the others', async () => {
    const files = ['/var/lib/postrider-news/postrider.db', '/etc/postrider-news/postrider.toml'];
    for (const file of files) {
      expect((await asUser('news', 'head', '-c', '1', file)).code).toBe(0);
      expect(await asUser('shop', 'head', '-c', '1', file)).toMatchObject({
        code: 1,
        output: expect.stringContaining('Permission denied'),
      });
    }
    expect((await asUser('shop', 'kill', '-0', await mainPid('news'))).code).not.toBe(0);
    // Commands of root leave no files that the daemon could not open.
    for (const name of NAMES)
      expect(await system.run('find', `/var/lib/postrider-${name}`, '!', '-user', `postrider-${name}`)).toBe(
        '',
      );
  });

  it('examines one instance, and names its commands', async () => {
    const env = Object.entries(variables({ 'dns.resolvers': [dns.address] })).map((entry) => entry.join('='));
    const { output } = await system.tryRun(
      'env',
      ...env,
      'postrider',
      '--instance',
      'shop',
      'doctor',
      '--json',
    );
    const findings: { check: string; status: string; subject: string; reason: string; fix?: string }[] =
      JSON.parse(output);
    expect(findings.find(({ check }) => check === 'daemon')).toMatchObject({
      reason: expect.stringContaining(`process ${await mainPid('shop')}`),
    });
    const fixes = findings.map(({ fix = '' }) => fix).filter((fix) => /^postrider |; postrider /.test(fix));
    expect(fixes).not.toEqual([]);
    for (const fix of fixes) expect(fix).toContain('postrider --instance shop');
    // The file names the user as well as the name does, wherever the option is.
    for (const option of ['--config=/etc/postrider-news/postrider.toml', '--instance=news'])
      for (const words of [
        [option, 'account', 'list'],
        ['account', 'list', ...option.split('=')],
      ])
        expect(await system.run('postrider', ...words)).toContain(direct('news').accountId);
  });

  it('reloads one', async () => {
    const before = await mainPids();
    await system.run('systemctl', 'reload', unitOf('lists'));
    const journal = () => system.run('journalctl', '--unit', unitOf('lists'), '--output', 'cat', '--quiet');
    await eventually('the configuration to be read', async () =>
      (await journal()).includes('configuration reloaded'),
    );
    expect(await mainPids()).toEqual(before);
  });

  it('restarts one without disturbing the others', async () => {
    const before = await mainPids();
    const others = NAMES.slice(1);
    const restart = { isOver: false };
    const restarted = system
      .run('systemctl', 'restart', unitOf('shop'))
      .finally(() => (restart.isOver = true));
    const statuses = new Set<number>();
    do for (const name of others) statuses.add(await accountStatus(name));
    while (!restart.isOver);
    await restarted;
    expect([...statuses]).toEqual([200]);
    await ready('shop');
    const after = await mainPids();
    expect(after.slice(1)).toEqual(before.slice(1));
    expect(after[0]).not.toBe(before[0]);
  });

  it('restarts those that run when the package is upgraded', async () => {
    await system.run('systemctl', 'stop', unitOf('tx'));
    const before = await mainPids();
    await system.run('dpkg', '--install', current);
    for (const name of NAMES.filter((each) => each !== 'tx')) {
      expect(await mainPid(name)).not.toBe(before[NAMES.indexOf(name)]);
      await ready(name);
      expect(await accountStatus(name)).toBe(200);
    }
    expect(await show('tx', 'ActiveState')).toBe('inactive');
    expect(await system.tryRun('systemctl', 'is-active', 'postrider')).toMatchObject({
      output: 'inactive\n',
    });
  });

  it('takes the master key of one as a credential of its name', async () => {
    const key = '/etc/credstore/postrider-lists.master-key';
    await system.run('install', '-D', '-m', '0600', '/var/lib/postrider-lists/master.key', key);
    await system.run('rm', '/var/lib/postrider-lists/master.key');
    await system.run('systemctl', 'restart', unitOf('lists'));
    await ready('lists');
    expect(await system.run('ls', '/var/lib/postrider-lists')).not.toContain('master.key');
    // The package leaves credentials alone.
    await system.run('rm', '-r', '/etc/credstore');
  });

  it('takes limits of memory for one', async () => {
    const dropIns = `/etc/systemd/system/${unitOf('news')}.d`;
    await system.run('mkdir', dropIns);
    await writeFile(join(system.root, dropIns, 'memory.conf'), documented('ini'));
    await system.run('systemctl', 'daemon-reload');
    expect(await show('news', 'MemoryHigh')).toBe(String(2 ** 30));
    expect(await show('lists', 'MemoryHigh')).toBe('infinity');
  });

  it('deletes one, and the others with the package', async () => {
    await system.run('sh', '-euc', documented('sh', 'userdel'));
    expect(
      await system.run('systemctl', 'list-units', '--plain', '--no-legend', 'postrider@*'),
    ).not.toContain(unitOf('shop'));
    expect(await accountStatus('news')).toBe(200);
    await system.run('dpkg', '--remove', 'postrider');
    expect(await show('news', 'ActiveState')).toBe('inactive');
    expect(await listFiles(system.root)).toEqual(
      expect.arrayContaining(['/etc/postrider-news/postrider.toml', '/var/lib/postrider-news/postrider.db']),
    );
    await system.run('rm', '/root/message.eml');
    await system.run('dpkg', '--purge', 'postrider');
    expect(await listFiles(system.root)).toEqual(filesBefore);
    expect(await passwd()).toBe(passwdBefore);
  });
});
