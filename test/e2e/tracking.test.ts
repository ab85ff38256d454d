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
 * Tracked mail from the API to the recipient and back: links and pictures lead to the public listener, under
 * the name that the domain's DNS allows at the time.
 *
 *   test ──HTTP──▶ postrider ──SMTP──▶ sink ──▶ the mail ──▶ its links ──HTTP──▶ postrider, public listener
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

/** Sends with tracking; returns the message's id and the mail as it arrived. */
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

/** Asks the public listener for a URL of a mail, whatever host it names; follows no redirect. */
function visit(url: string, options: { method?: string; body?: string } = {}) {
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

const eventsOf = (messageId: string, event: string, wanted: number) =>
  eventually(`${wanted} ${event} of ${messageId}`, async () => {
    const events = await setup.daemon.api.allEvents({ messageId, event });
    return events.length >= wanted ? events : null;
  });

const domainId = async () => {
  const { data } = await setup.daemon.api.get<{ domains: CreatedDomain[] }>('/web-setup/domains');
  return data.domains[0]?.domainId ?? '';
};

const verify = async () =>
  (await setup.daemon.api.post<VerifiedDomain>(`/web-setup/domains/${await domainId()}/verify`)).data;

describe('a newsletter of 200 links', () => {
  const source = readFileSync(new URL('newsletter.html', NEWSLETTER), 'utf8');
  const wanted: string[] = JSON.parse(readFileSync(new URL('links.json', NEWSLETTER), 'utf8'));

  it('arrives with every link leading to exactly where it led', async () => {
    const { html } = await sendTracked(source);
    const links = linksIn(html, 'c');
    expect(links).toHaveLength(200);
    const destinations = [];
    for (const link of links) destinations.push((await visit(link)).location);
    expect(destinations).toEqual(wanted);
  });
});

describe('what is recorded', () => {
  it('of a click and an opening: who, when, for the first time or again', async () => {
    const { messageId, html } = await sendTracked(`<a href="https://x.example/?a=1&amp;b=2">x</a>${FOOTER}`);
    const [link = ''] = linksIn(html, 'c');
    const [picture = ''] = linksIn(html, 'o');
    expect((await visit(picture)).body.slice(0, 6)).toBe('GIF89a');
    expect(await visit(link)).toMatchObject({ status: 302, location: 'https://x.example/?a=1&b=2' });
    await visit(link);
    const person = { ip: '127.0.0.1', userAgent: BROWSER, isBot: false, isProxy: false };
    expect(await eventsOf(messageId, 'email_clicked', 2)).toMatchObject([
      { url: 'https://x.example/?a=1&b=2', recipient: 'ada@empfang.example', ...person, isFirst: true },
      { url: 'https://x.example/?a=1&b=2', ...person, isFirst: false },
    ]);
    expect(await eventsOf(messageId, 'email_opened', 1)).toMatchObject([{ ...person, isFirst: true }]);
  });

  it('nothing where nothing was asked for', async () => {
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
    for (const url of urls) expect((await visit(url)).status).toBeLessThan(400);
    expect(JSON.stringify(headers.get('list'))).toContain(urls[2]);
    const hosts = new Set(urls.map((url) => new URL(url).host));
    expect(hosts.size).toBe(1);
    return [...hosts][0];
  };
  const custom = 'local-t-link.kunde.example';

  it('is link.<domain> once that leads to the platform', async () => {
    expect(await hostOf()).toBe(`link.kunde.example:${port}`);
  });

  it('is the custom host, once that leads to the platform, and not before', async () => {
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

  it('is the usual one again when the custom one leads elsewhere, and public.url when both do', async () => {
    setup.dns.set(custom, 'CNAME', ['elsewhere.example']);
    await verify();
    expect(await hostOf()).toBe(`link.kunde.example:${port}`);
    setup.dns.remove('link.kunde.example');
    await verify();
    expect(await hostOf()).toBe(`127.0.0.1:${port}`);
  });

  it('is known to a proxy that asks, the custom one and the usual one', async () => {
    const ask = async (domain: string) =>
      (await fetch(`${setup.daemon.baseUrl}/tls-check?domain=${domain}`)).status;
    expect([await ask(custom), await ask('link.kunde.example'), await ask(`track.${HOSTNAME}`)]).toEqual([
      200, 200, 200,
    ]);
    expect([await ask('www.kunde.example'), await ask('evil.example'), await ask('')]).toEqual([
      404, 404, 404,
    ]);
  });
});

describe('one click', () => {
  it('by the addresses of the header field stops the stream, and the next send is refused', async () => {
    const { daemon, sink } = setup;
    const { messageId, html } = await sendTracked(FOOTER, { to: 'bob@empfang.example' });
    const raw = sink.messages.at(-1)?.raw.replace(/\r\n[ \t]+/g, ' ') ?? '';
    expect(raw).not.toMatch(/^List-Unsubscribe-Post:/m);
    const [, url = ''] = /^List-Unsubscribe: <([^>]*)>/m.exec(raw) ?? [];
    expect(html).toContain(url);
    expect((await visit(url)).status).toBe(200);
    expect(
      (
        await daemon.api.send({
          from: 'a@kunde.example',
          to: 'bob@empfang.example',
          subject: 'x',
          html: FOOTER,
        })
      ).status,
    ).toBe(200);
    expect((await visit(url, { method: 'POST', body: 'List-Unsubscribe=One-Click' })).status).toBe(200);
    const refused = await daemon.api.send({
      from: 'a@kunde.example',
      to: 'bob@empfang.example',
      subject: 'x',
      html: FOOTER,
    });
    expect([refused.status, refused.error.code]).toEqual([403, 'RECIPIENT_UNSUBSCRIBED']);
    expect(await eventsOf(messageId, 'email_unsubscribed', 1)).toMatchObject([
      { method: 'one_click', recipient: 'bob@empfang.example', useCase: 'tx' },
    ]);
  });
});

describe('a restart', () => {
  it('leaves links as they were', async () => {
    const { html } = await sendTracked(`<a href="https://x.example/">x</a>${FOOTER}`);
    await setup.daemon.kill('SIGKILL');
    await setup.daemon.restart();
    expect((await visit(linksIn(html, 'c')[0] ?? '')).location).toBe('https://x.example/');
    expect((await visit(linksIn(html, 'u')[0] ?? '')).status).toBe(200);
    const ready = await (await fetch(`${setup.daemon.baseUrl}/readyz`)).json();
    expect(ready).toMatchObject({
      data: { checks: expect.arrayContaining([{ check: 'public', ok: true }]) },
    });
  });
});
