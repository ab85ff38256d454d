import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { simpleParser } from 'mailparser';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CreatedDomain, VerifiedDomain } from '../support/api-client.ts';
import { HOSTNAME } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { type SendingSetup, startSendingSetup } from '../support/sending-setup.ts';

/*
 * Click and open tracking: links and the pixel point to the public listener, under the host name that the DNS of the
 * domain allows.
 *
 *   test ──HTTP──▶ postrider ──SMTP──▶ sink ──▶ the message ──▶ its links ──HTTP──▶ postrider, public listener
 *                      │
 *                      └──DNS──▶ name server: link.kunde.example, custom host, or neither
 */
const NEWSLETTER = new URL('../mail/newsletter/', import.meta.url);
const BROWSER = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0';
const FOOTER = '<p>{{company_address_html}} {{unsubscribe_email_html}} {{report_abuse_email_html}}</p>';

let setup: SendingSetup;
let port: number;

beforeAll(async () => {
  port = await freePort();
  setup = await startSendingSetup({ 'public.listen': `127.0.0.1:${port}` });
});
afterAll(() => setup?.stop());

/** Sends with tracking; returns the message's id and the delivered message. */
async function sendTracked(html: string, more: Record<string, unknown> = {}) {
  const { sink, daemon } = setup;
  const before = sink.count;
  const { data } = await daemon.api.send({
    from: 'Shop <a@kunde.example>',
    to: 'ada@empfang.example',
    subject: 'News',
    html,
    enableClickTracking: true,
    enableOpenTracking: true,
    ...more,
  });
  const message = (await sink.waitFor(before + 1)).at(-1);
  const mail = await simpleParser(message?.raw ?? '', { skipTextLinks: true });
  return { messageId: data.messageId, html: mail.html || '', text: mail.text ?? '', headers: mail.headers };
}

/** Requests a URL from the public listener, whatever host it names; follows no redirect. */
function requestPublic(url: string, options: { method?: string; body?: string } = {}) {
  const { host, pathname } = new URL(url);
  return new Promise<{ status: number; location: string | undefined; body: string }>((resolve, reject) => {
    const headers = {
      Host: host,
      'User-Agent': BROWSER,
      ...(options.body === undefined ? {} : { 'Content-Type': 'application/x-www-form-urlencoded' }),
    };
    const sent = request({
      host: '127.0.0.1',
      port,
      path: pathname,
      method: options.method ?? 'GET',
      headers,
    });
    sent.on('error', reject);
    sent.on('response', (response) => {
      let body = '';
      response.setEncoding('latin1');
      response.on('data', (chunk) => {
        body += chunk;
      });
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, location: response.headers.location, body }),
      );
    });
    sent.end(options.body);
  });
}

const linksIn = (html: string, kind: string) =>
  [...html.matchAll(new RegExp(`http://[^"'\\s>]*/${kind}/[^"'\\s>]+`, 'g'))].map(([url]) => url);

const eventsOf = (messageId: string, event: string, count: number) =>
  eventually(`${count} ${event} of ${messageId}`, async () => {
    const events = await setup.daemon.api.allEvents({ messageId, event });
    return events.length >= count ? events : null;
  });

const domainId = async () => {
  const { data } = await setup.daemon.api.get<{ domains: CreatedDomain[] }>('/web-setup/domains');
  return data.domains[0]?.domainId ?? '';
};

const verify = async () =>
  (await setup.daemon.api.post<VerifiedDomain>(`/web-setup/domains/${await domainId()}/verify`)).data;

describe('a newsletter of 200 links', () => {
  const source = readFileSync(new URL('newsletter.html', NEWSLETTER), 'utf8');
  const destinations: string[] = JSON.parse(readFileSync(new URL('links.json', NEWSLETTER), 'utf8'));

  it('arrives with links that redirect to their destinations', async () => {
    const { html } = await sendTracked(source);
    const links = linksIn(html, 'c');
    expect(links).toHaveLength(200);
    const locations = [];
    for (const link of links) locations.push((await requestPublic(link)).location);
    expect(locations).toEqual(destinations);
  });
});

describe('events', () => {
  it('record the client of a click and of an open, and whether it is the first', async () => {
    const { messageId, html } = await sendTracked(`<a href="https://x.example/?a=1&amp;b=2">x</a>${FOOTER}`);
    const [link = ''] = linksIn(html, 'c');
    const [picture = ''] = linksIn(html, 'o');
    expect((await requestPublic(picture)).body.slice(0, 6)).toBe('GIF89a');
    expect(await requestPublic(link)).toMatchObject({ status: 302, location: 'https://x.example/?a=1&b=2' });
    await requestPublic(link);
    const person = { ip: '127.0.0.1', userAgent: BROWSER, isBot: false, isProxy: false };
    expect(await eventsOf(messageId, 'email_clicked', 2)).toMatchObject([
      { url: 'https://x.example/?a=1&b=2', recipient: 'ada@empfang.example', ...person, isFirst: true },
      { url: 'https://x.example/?a=1&b=2', ...person, isFirst: false },
    ]);
    expect(await eventsOf(messageId, 'email_opened', 1)).toMatchObject([{ ...person, isFirst: true }]);
  });

  it('are not recorded without tracking', async () => {
    const { html } = await sendTracked(`<a href="https://x.example/">x</a>${FOOTER}`, {
      enableClickTracking: false,
      enableOpenTracking: undefined,
    });
    expect(html).toContain('<a href="https://x.example/">x</a>');
    expect([...linksIn(html, 'c'), ...linksIn(html, 'o')]).toEqual([]);
  });
});

describe('the host of links', () => {
  const hostOf = async () => {
    const { html, headers } = await sendTracked(`<a href="https://x.example/">x</a>${FOOTER}`);
    const urls = ['c', 'o', 'u', 'r'].map((kind) => linksIn(html, kind)[0] ?? '');
    for (const url of urls) expect((await requestPublic(url)).status).toBeLessThan(400);
    expect(JSON.stringify(headers.get('list'))).toContain(urls[2]);
    const hosts = new Set(urls.map((url) => new URL(url).host));
    expect(hosts.size).toBe(1);
    return [...hosts][0];
  };
  const custom = 'local-t-link.kunde.example';

  it('is link.<domain> when that resolves to the platform', async () => {
    expect(await hostOf()).toBe(`link.kunde.example:${port}`);
  });

  it('is the custom host once it resolves to the platform', async () => {
    await setup.daemon.api.call('PATCH', `/web-setup/domains/${await domainId()}`, {
      body: { trackingDomain: custom },
    });
    await verify();
    expect(await hostOf()).toBe(`link.kunde.example:${port}`);
    setup.dns.set(custom, 'CNAME', [`track.${HOSTNAME}`]);
    const { checks } = await verify();
    expect(checks.find(({ check }) => check === 'tracking')).toMatchObject({ passed: true });
    expect(await hostOf()).toBe(`${custom}:${port}`);
  });

  it('is link.<domain> when the custom host resolves elsewhere, and that of public.url when both do', async () => {
    setup.dns.set(custom, 'CNAME', ['elsewhere.example']);
    await verify();
    expect(await hostOf()).toBe(`link.kunde.example:${port}`);
    setup.dns.remove('link.kunde.example');
    await verify();
    expect(await hostOf()).toBe(`127.0.0.1:${port}`);
  });

  it('is reported by /tls-check', async () => {
    const statuses: Record<string, number> = {};
    for (const host of [
      custom,
      'link.kunde.example',
      `track.${HOSTNAME}`,
      'www.kunde.example',
      'evil.example',
      '',
    ])
      statuses[host] = (await fetch(`${setup.daemon.baseUrl}/tls-check?domain=${host}`)).status;
    expect(statuses).toEqual({
      [custom]: 200,
      'link.kunde.example': 200,
      [`track.${HOSTNAME}`]: 200,
      'www.kunde.example': 404,
      'evil.example': 404,
      '': 404,
    });
  });
});

describe('one-click unsubscription', () => {
  it('with the URL of List-Unsubscribe suppresses the stream', async () => {
    const { daemon, sink } = setup;
    const { messageId, html } = await sendTracked(FOOTER, { to: 'bob@empfang.example' });
    const raw = sink.messages.at(-1)?.raw.replace(/\r\n[ \t]+/g, ' ') ?? '';
    expect(raw).not.toMatch(/^List-Unsubscribe-Post:/m);
    const [, url = ''] = /^List-Unsubscribe: <([^>]*)>/m.exec(raw) ?? [];
    expect(html).toContain(url);
    expect((await requestPublic(url)).status).toBe(200);
    const mail = { from: 'a@kunde.example', to: 'bob@empfang.example', subject: 'x', html: FOOTER };
    expect((await daemon.api.send(mail)).status).toBe(200);
    const oneClick = { method: 'POST', body: 'List-Unsubscribe=One-Click' };
    expect((await requestPublic(url, oneClick)).status).toBe(200);
    const rejected = await daemon.api.send(mail);
    expect([rejected.status, rejected.error.code]).toEqual([403, 'RECIPIENT_UNSUBSCRIBED']);
    expect(await eventsOf(messageId, 'email_unsubscribed', 1)).toMatchObject([
      { method: 'one_click', recipient: 'bob@empfang.example', useCase: 'tx' },
    ]);
  });
});

describe('links', () => {
  it('work after a restart', async () => {
    const { html } = await sendTracked(`<a href="https://x.example/">x</a>${FOOTER}`);
    await setup.daemon.kill('SIGKILL');
    await setup.daemon.restart();
    expect((await requestPublic(linksIn(html, 'c')[0] ?? '')).location).toBe('https://x.example/');
    expect((await requestPublic(linksIn(html, 'u')[0] ?? '')).status).toBe(200);
    const ready = await (await fetch(`${setup.daemon.baseUrl}/readyz`)).json();
    expect(ready).toMatchObject({
      data: { checks: expect.arrayContaining([{ check: 'public', ok: true }]) },
    });
  });
});
