import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DAY } from '../../../src/core/clock.ts';
import type { ApiClient } from '../../support/api-client.ts';
import { type InProcess, startInProcess } from '../../support/in-process-daemon.ts';
import { insertDomain } from '../../support/store.ts';

/* The settings of the public pages, and the link to the preference page in a mail. */
let daemon: InProcess;
let client: ApiClient;

const PATH = '/web-setup/public-pages';
const DEFAULTS = {
  name: null,
  logoUrl: null,
  colors: { accent: null, background: null },
  language: null,
  profileFields: [],
  texts: {},
};

beforeAll(async () => {
  daemon = await startInProcess({ 'public.url': 'http://127.0.0.1:0' });
  client = await daemon.account('Shop');
  const [group] = daemon.tables.domainGroups.list(client.accountId);
  const fields = {
    account_id: client.accountId,
    group_id: group?.group_id ?? '',
    domain_id: 'domain_1',
    name: 'shop.test',
    next_check_at: Date.now() + DAY,
  };
  insertDomain(daemon.tables, fields, Date.now());
  insertDomain(
    daemon.tables,
    { ...fields, domain_id: 'domain_2', name: 'news.test', use_case: 'mk' },
    Date.now(),
  );
});
afterAll(() => daemon?.stop());

describe('the settings of the public pages', () => {
  it('have defaults, and replace the fields that are given', async () => {
    expect((await client.get(PATH)).data).toEqual(DEFAULTS);
    const texts = { de: { 'unsubscribe.title': 'Tschüss?', 'unsubscribe.about': 'Post von {sender}' } };
    const changed = await client.put<object>(PATH, { name: 'Laden', texts });
    expect(changed.data).toMatchObject({ ...DEFAULTS, name: 'Laden', texts });
    await client.put(PATH, { colors: { accent: '#AA0000' } });
    expect((await client.get(PATH)).data).toMatchObject({
      name: 'Laden',
      texts,
      colors: { accent: '#AA0000' },
    });
    await client.put(PATH, { name: null, texts: {}, colors: {} });
    expect((await client.get(PATH)).data).toMatchObject(DEFAULTS);
  });

  it.each<[object, string]>([
    [{ texts: { fi: {} } }, 'texts.fi'],
    [{ texts: { de: { 'unsubscribe.nothing': 'x' } } }, 'texts.de["unsubscribe.nothing"]'],
    [{ texts: { de: { 'unsubscribe.title': 'An {recipient}' } } }, 'texts.de["unsubscribe.title"]'],
    [{ texts: { de: { 'unsubscribe.title': 'x'.repeat(1001) } } }, 'texts.de["unsubscribe.title"]'],
    [{ texts: { de: { 'unsubscribe.title': '\u0007' } } }, 'texts.de["unsubscribe.title"]'],
    [{ logoUrl: 'http://example.com/logo.png' }, 'logoUrl'],
    [{ colors: { accent: 'red;}' } }, 'colors.accent'],
    [{ language: 'fi' }, 'language'],
    [{ profileFields: [{ field: 'email' }] }, 'profileFields[0].field'],
    [{ profileFields: [{ field: 'phone' }, { field: 'phone' }] }, 'profileFields'],
  ])('refuse %j and change nothing', async (body, field) => {
    const { status, error } = await client.call('PUT', PATH, { body });
    expect(status).toBe(400);
    expect(error.details?.map((each) => each.field)).toContain(field);
    expect((await client.get(PATH)).data).toMatchObject(DEFAULTS);
  });

  it('have default texts in each language', async () => {
    const { data } = await client.get<{ texts: Record<string, string> }>(`${PATH}/texts/ja`);
    expect(data.texts['unsubscribe.title']).toBe('配信停止');
    expect((await client.call('GET', `${PATH}/texts/fi`)).status).toBe(404);
  });
});

it('{{preferences_url}} leads to the preferences of the recipient, and a pause refuses marketing mail', async () => {
  const { data } = await client.post<{ group: { subscriptionGroupId: string; isPublic: boolean } }>(
    '/web-setup/contacts/subscription-groups',
    { name: 'Neuigkeiten', isPublic: true },
  );
  expect(data.group.isPublic).toBe(true);
  await client.post('/web-setup/contacts', { email: 'ada@example.net', language: 'de-AT' });
  const mail = {
    from: 'hello@shop.test',
    subject: 'Hello',
    html: '<p><a href="{{preferences_url}}">Change</a></p><p>{{company_address_html}} {{unsubscribe_email_html}}</p>',
    text: 'Change: {{preferences_url}} {{company_address_text}} {{unsubscribe_url}}',
    trackClicks: true,
  };
  const sent = await client.post<{ messageId: string }>('/transactional/send', {
    ...mail,
    to: 'ada@example.net',
  });
  const content = await client.get<{ html: string; text: string }>(
    `/web-setup/messages/${sent.data.messageId}/content`,
  );
  const [, link = ''] = /href="([^"]*\/p\/[^"]*)"/.exec(content.data.html) ?? [];
  expect(content.data.text).toContain(`Change: ${link} `);
  const page = await fetch(link, { headers: { 'Accept-Language': 'fr' } });
  const text = await page.text();
  expect(text).toContain('<html lang="de">');
  expect(text).toContain('Neuigkeiten');
  await fetch(link, { method: 'POST', body: new URLSearchParams({ action: 'pause30' }) });
  const contact = await client.get<{ contact: { pausedUntil: string } }>(
    '/web-setup/contacts/email:ada@example.net',
  );
  expect(Date.parse(contact.data.contact.pausedUntil)).toBeGreaterThan(Date.now() + 29 * DAY);
  const refused = await client.call('POST', '/marketing/send', {
    body: { ...mail, from: 'hello@news.test', to: 'ada@example.net' },
  });
  expect(refused.error).toMatchObject({
    code: 'RECIPIENT_SUPPRESSED',
    details: [{ reason: 'paused', recipient: 'ada@example.net' }],
  });
  expect(refused.error.message).toContain('The recipient paused marketing mail until');
  await fetch(link, { method: 'POST', body: new URLSearchParams({ action: 'erase', confirmed: 'yes' }) });
  const requests = await client.get<{ contacts: { email: string }[] }>(
    '/web-setup/contacts?erasureRequested=true',
  );
  expect(requests.data.contacts).toMatchObject([{ email: 'ada@example.net' }]);
  expect((await client.call('GET', '/web-setup/contacts?erasureRequested=true&status=active')).status).toBe(
    400,
  );
});

describe('{{view_url}}', () => {
  const HTML =
    '<html><head><meta name="referrer" content="unsafe-url"></head><body><script>alert(1)</script>' +
    '<p>Hello {{name}}, <a href="https://shop.test/a">shop</a> <a href="{{view_url}}">View</a></p>' +
    '<img referrerpolicy="unsafe-url" src="https://shop.test/a.png"><p>{{company_address_html}} {{unsubscribe_email_html}}</p></body></html>';

  const send = async (to: string, html = HTML, attachments: object[] = []) => {
    const { data } = await client.post<{ messageId: string }>('/transactional/send', {
      from: 'hello@shop.test',
      to,
      subject: 'Hello',
      html,
      attachments,
      templateVariables: { name: '<b>Grace</b>' },
      enableClickTracking: true,
      enableOpenTracking: true,
    });
    const path = `/web-setup/messages/${data.messageId}/content`;
    const content = await client.get<{ html: string }>(path);
    const [, link = ''] = /href="([^"]*\/v\/[^"]*)"/.exec(content.data.html) ?? [];
    return { messageId: data.messageId, html: content.data.html, link };
  };

  it('shows the message as it was sent, without tracking and without scripts', async () => {
    const { html, link } = await send('grace@example.net');
    expect(html).toContain('/c/');
    expect(html).toContain('/o/');
    const page = await fetch(link);
    const text = await page.text();
    expect(page.status).toBe(200);
    expect(text).toContain('Hello &lt;b&gt;Grace&lt;/b&gt;');
    expect(text).toContain('<a href="https://shop.test/a">');
    expect(text).toMatch(/href="[^"]*\/u\/[^"]*"/);
    expect(text).not.toMatch(/\/[co]\/|unsafe-url"? src|name="referrer"/);
    const policy = page.headers.get('content-security-policy') ?? '';
    expect(policy).toMatch(/^default-src 'none';.* sandbox /);
    expect(policy).not.toMatch(/allow-scripts|allow-same-origin|allow-forms|script-src/);
    expect(Object.fromEntries(page.headers)).toMatchObject({
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      'x-robots-tag': 'noindex, nofollow',
    });
    const events = await client.allEvents({});
    expect(JSON.stringify(events)).not.toMatch(/email_(?:opened|clicked)/);
  });

  it('shows inline images, up to a limit however often the HTML refers to them', async () => {
    const file = (contentId: string, contentType: string, bytes: number, fill: number) => ({
      name: contentId,
      contentType,
      content: Buffer.alloc(bytes, fill).toString('base64'),
      contentId,
    });
    const images = ['cid:logo', 'cid:logo2', 'cid:logo3', 'cid:photo'].map((url) => `<img src="${url}">`);
    const html = HTML.replace('</body>', `${images.join('')}${'<img src="cid:photo">'.repeat(100)}</body>`);
    const { link } = await send('grace@example.net', html, [
      file('logo', 'image/png', 3, 0),
      file('logo2', 'image/gif', 3, 255),
      file('logo3', 'image/svg+xml', 3, 0),
      file('photo', 'image/jpeg', 1_500_000, 1),
    ]);
    const text = await (await fetch(link)).text();
    expect(text).toContain('<img src="data:image/png;base64,AAAA"><img src="data:image/gif;base64,////">');
    expect(text).toContain('<img src="cid:logo3"><img src="data:image/jpeg;base64,AQEB');
    expect(text).toContain('<img src="cid:photo">');
    expect(text.length).toBeLessThan(17 * 2 ** 20);
  });

  it('opens with its own token only, and the unsubscribe page with another one', async () => {
    const { html, link } = await send('grace@example.net');
    const [, unsubscribe = ''] = /href="([^"]*\/u\/[^"]*)"/.exec(html) ?? [];
    expect((await fetch(unsubscribe.replace('/u/', '/v/'))).status).toBe(404);
    expect((await fetch(link.replace('/v/', '/u/'))).status).toBe(404);
    expect((await fetch(`${link.slice(0, -3)}abc`)).status).toBe(404);
  });

  it('shows a page in the language of the recipient after the person was erased', async () => {
    await client.post('/web-setup/contacts', { email: 'hedy@example.net', language: 'de' });
    const { link } = await send('hedy@example.net');
    expect((await fetch(link)).status).toBe(200);
    await client.call('DELETE', '/web-setup/contacts/email:hedy@example.net?erase=true');
    const page = await fetch(link, { headers: { 'Accept-Language': 'de' } });
    const text = await page.text();
    expect([page.status, text.includes('nicht mehr verfügbar'), text.includes('Grace')]).toEqual([
      410,
      true,
      false,
    ]);
  });
});
