import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { describe, expect, it, onTestFinished } from 'vitest';
import { monotonicClock } from '../../../src/core/clock.ts';
import { systemRandom } from '../../../src/core/random.ts';
import { createResolver } from '../../../src/dns/resolver.ts';
import { createLinkChecks, type LinkCheckOptions } from '../../../src/templates/checks/link-checks.ts';
import { startDnsServer } from '../../support/dns-server.ts';
import { portOf } from '../../support/https-client.ts';
import { PATIENCE_MS } from '../../support/patience.ts';

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

const status =
  (code: number, headers: Record<string, string> = {}): Answer =>
  (_, response) =>
    response.writeHead(code, headers).end();

/** A site whose paths answer so; the others with 200. Counts the requests by method and path. */
async function startSite(paths: Record<string, Answer> = {}) {
  const requests: string[] = [];
  const agents = new Set<string | undefined>();
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`);
    agents.add(request.headers['user-agent']);
    (paths[request.url ?? ''] ?? status(200, { 'content-type': 'text/html' }))(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const port = String(portOf(server));
  return { url: `http://127.0.0.1:${port}`, port, requests, agents };
}

async function start(options: Partial<LinkCheckOptions> = {}) {
  const dns = await startDnsServer();
  const resolver = createResolver({
    resolvers: [dns.address],
    timeoutMs: PATIENCE_MS,
    monotonic: monotonicClock,
    random: systemRandom,
  });
  const checks = createLinkChecks({
    resolver,
    monotonic: monotonicClock,
    userAgent: 'Postrider/1.2.3 (link check)',
    isOwnHost: () => false,
    mayConnect: () => true,
    ...options,
  });
  onTestFinished(async () => {
    await checks.close();
    resolver.close();
    await dns.close();
  });
  /** Id, level, and what is meant, or how many. */
  const check = async (html: string, source = html, accountId = 'acct_a') =>
    (await checks.check(accountId, { html, source })).map(({ id, level, where, count }) => [
      id,
      level,
      where ?? count,
    ]);
  return { dns, check };
}

const link = (address: string) => `<a href="${address}">a</a>`;
const image = (address: string) => `<img src="${address}" alt="a">`;

describe('links', () => {
  it('that do not exist, fail, or work are told apart', async () => {
    const site = await startSite({
      '/gone': status(404),
      '/fails': status(503),
      '/forbidden': status(403),
      '/moved': status(301, { location: '/gone' }),
      '/loop': status(302, { location: '/loop' }),
      '/closes': ({ socket }) => socket.destroy(),
    });
    const { check } = await start({ ports: new Set([site.port]) });
    const paths = ['/', '/#part', '/gone', '/fails', '/forbidden', '/moved', '/loop', '/closes'];
    expect(await check(paths.map((path) => link(site.url + path)).join(''))).toEqual([
      [
        'linksGone',
        'bad',
        [`${site.url}/gone (404)`, `${site.url}/moved (404)`, `${site.url}/loop (redirect)`],
      ],
      ['linksUnreachable', 'warn', [`${site.url}/fails (503)`, `${site.url}/closes (connection)`]],
    ]);
    expect(site.requests.filter((each) => each.endsWith(' /'))).toEqual(['HEAD /']);
    expect([...site.agents]).toEqual(['Postrider/1.2.3 (link check)']);
  });

  it('are asked again with GET where HEAD is refused, without the content', async () => {
    const site = await startSite({
      '/': ({ method }, response) => {
        if (method === 'HEAD') response.writeHead(405).end();
        // Never ends: it is not read.
        else response.writeHead(200).write('a');
      },
    });
    const { check } = await start({ ports: new Set([site.port]) });
    expect(await check(link(`${site.url}/`))).toEqual([['linksGone', 'ok', 1]]);
    expect(site.requests).toEqual(['HEAD /', 'GET /']);
  });

  it('with values of the recipient, and those of this server, are not opened', async () => {
    const site = await startSite();
    const { check } = await start({ ports: new Set([site.port]), isOwnHost: (host) => host === 'localhost' });
    const own = link(`http://localhost:${site.port}/u/token`);
    const source = `${link(`${site.url}/?id={{id}}`)}${link('{{url}}')}${link(`${site.url}/{% if a %}b{% endif %}`)}${own}`;
    const html = `${link(`${site.url}/?id=7`)}${link(`${site.url}/secret`)}${link(`${site.url}/b`)}${own}`;
    const footer = link('https://example.com/unsubscribe');
    expect(await check(html + footer, source)).toEqual([['linksSkipped', 'ok', 4]]);
    expect(site.requests).toEqual([]);
  });

  it('of other schemes, ports and with passwords are not opened', async () => {
    const { check } = await start();
    expect(
      await check(
        ['mailto:a@b.test', '#top', 'ftp://a.test/', 'http://127.0.0.1:25/', 'http://a:b@127.0.0.1/']
          .map(link)
          .join(''),
      ),
    ).toEqual([['linksSkipped', 'ok', 2]]);
  });

  it('lead to public addresses only, also behind a redirect, and the reason does not tell private from unknown', async () => {
    const { dns, check } = await start({ mayConnect: (address) => address === '192.0.2.1' });
    dns.publish([{ name: 'intern.test', type: 'A', value: '10.0.0.1', ttl: 60 }]);
    const names = ['http://intern.test/', 'http://unknown.test/', 'http://10.0.0.1/', 'http://2130706433/'];
    const [gone] = await check(names.map(link).join(''));
    expect(gone).toEqual([
      'linksGone',
      'bad',
      ['http://intern.test/ (DNS)', 'http://unknown.test/ (DNS)', 'http://10.0.0.1/ (DNS)'],
    ]);
    const site = await startSite({ '/': status(302, { location: 'http://127.0.0.2/' }) });
    const other = await start({ ports: new Set(['', site.port]), mayConnect: (at) => at === '127.0.0.1' });
    expect(await other.check(link(`${site.url}/`))).toEqual([['linksGone', 'bad', [`${site.url}/ (DNS)`]]]);
  });

  it('are remembered for an account, and are at most thirty', async () => {
    const site = await startSite();
    const { check } = await start({ ports: new Set([site.port]) });
    const html = Array.from({ length: 32 }, (_, at) => link(`${site.url}/${at}`)).join('');
    const result = [
      ['linksGone', 'ok', 30],
      ['linksUnopened', 'warn', 2],
    ];
    expect(await check(html)).toEqual(result);
    expect(await check(html)).toEqual(result);
    expect(site.requests).toHaveLength(30);
    await check(html, html, 'acct_b');
    expect(site.requests).toHaveLength(60);
  });

  it('of an account that checks too often are not opened, and said so', async () => {
    const waiting: (() => void)[] = [];
    const site = await startSite({ '/slow': (_, response) => waiting.push(() => response.end()) });
    const { check } = await start({ ports: new Set([site.port]) });
    const html = link(`${site.url}/slow`);
    const checks = Array.from({ length: 4 }, () => check(html));
    expect(await checks[3]).toEqual([['linksUnopened', 'warn', 1]]);
    // Another account does not wait for it.
    expect(await check(link(`${site.url}/`), link(`${site.url}/`), 'acct_b')).toEqual([
      ['linksGone', 'ok', 1],
    ]);
    for (const end of waiting) end();
    for (const each of checks.slice(0, 3)) expect(await each).toEqual([['linksGone', 'ok', 1]]);
  });
});

describe('images', () => {
  it('that are missing, are no images, or are too large are named', async () => {
    const png = (length = '100') => status(200, { 'content-type': 'image/png', 'content-length': length });
    const site = await startSite({
      '/a.png': png(),
      '/large.png': png('3145728'),
      '/gone.png': status(410),
      '/private.png': status(403),
    });
    const { check } = await start({ ports: new Set([site.port]) });
    const names = ['a.png', 'large.png', 'gone.png', 'private.png', 'page.png'];
    expect(await check(names.map((name) => image(`${site.url}/${name}`)).join(''))).toEqual([
      ['imagesGone', 'bad', [`${site.url}/gone.png (410)`, `${site.url}/page.png (text/html)`]],
      ['imagesUnreachable', 'warn', [`${site.url}/private.png (403)`]],
      ['imagesLarge', 'warn', [`${site.url}/large.png (3.0 MB)`]],
    ]);
  });
});
