import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startConsole, type TestBrowser, type TestConsole } from './harness.ts';

const FOOTER = '{{company_address_html}}{{unsubscribe_email_html}}';

describe('/console/previews', () => {
  let test: TestConsole;
  let operator: TestBrowser;
  beforeEach(async () => {
    test = await startConsole();
    operator = await test.operator();
  });
  afterEach(() => test.stop());

  it('inserts values and the footer of the account, and names what has no value', async () => {
    await test.accounts.update(test.account, {
      companyName: 'Shop & Co',
      companyAddress: { line1: '1 Main St', city: 'Town', postalCode: '12345', country: 'GB' },
    });
    const { data } = await operator.post(
      '/console/previews',
      {
        subject: 'Hello {{firstName}} {{order.id}}',
        html: `<p>{{ firstName }} {{missing}} {{__proto__}} {{first name}}</p>${FOOTER}`,
        to: 'ann@example.com',
        values: { firstName: '<b>Ann</b>', order: { id: 7 } },
      },
      test.account,
    );
    expect(data).toMatchObject({
      subject: 'Hello <b>Ann</b> 7',
      missing: ['missing', '__proto__'],
      required: [],
      leftovers: ['{{first name}}'],
    });
    expect(data['text']).toContain('Shop & Co');
    expect(data['text']).toContain('ann@example.com');
    const page = await fetch(`${test.base}/console/previews/${String(data['id'])}`, {
      headers: { Cookie: operator.cookie, 'Sec-Fetch-Dest': 'iframe', 'Sec-Fetch-Site': 'same-origin' },
    });
    const html = await page.text();
    expect(html).toContain('<p>&lt;b&gt;Ann&lt;/b&gt; {{missing}} {{__proto__}} {{first name}}</p>');
    expect(Buffer.byteLength(html)).toBe(data['bytes']);
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(page.headers.get('content-security-policy')).toMatch(/^sandbox; default-src 'none'; /);
  });

  it('names the compliance variables that are not shown, also of text only', async () => {
    const preview = async (body: object) =>
      (await operator.post('/console/previews', body, test.account)).data;
    const required = ['company_address_html', 'unsubscribe_email_html'];
    expect(await preview({ html: `<!-- ${FOOTER} -->` })).toMatchObject({ required });
    expect(await preview({ text: 'Hello' })).toMatchObject({ required, text: 'Hello' });
    expect(await preview({ text: '{{company_address}} {{unsubscribe_url}}' })).toMatchObject({
      required: [],
    });
  });

  it('shows a preview to the person who created it, in a frame only', async () => {
    const { data } = await operator.post('/console/previews', { html: '<p>Secret</p>' }, test.account);
    const path = `/console/previews/${String(data['id'])}`;
    const other = await test.operator('other@example.com');
    expect((await other.get(path)).status).toBe(404);
    const opened = await operator.send('GET', path, {
      headers: { 'Sec-Fetch-Dest': 'document', 'Sec-Fetch-Site': 'none' },
    });
    expect(opened.status).toBe(403);
    expect((await operator.get(path)).status).toBe(200);
  });

  it('refuses people who are not members, content above the limit, and values that do not end', async () => {
    const visitor = test.browser();
    expect((await visitor.post('/console/previews', { html: '' }, test.account)).status).toBe(401);
    const viewer = await test.member('viewer');
    expect((await viewer.post('/console/previews', { html: '' }, test.other)).status).toBe(403);
    expect((await viewer.post('/console/previews', { html: 'x' }, test.account)).status).toBe(200);
    const long = { html: 'x'.repeat(1024 * 1024 + 1) };
    expect((await viewer.post('/console/previews', long, test.account)).status).toBe(400);
    const repeated = { html: '{{value}}'.repeat(9000), values: { value: 'x'.repeat(1000) } };
    expect((await viewer.post('/console/previews', repeated, test.account)).data).toMatchObject({ bytes: 0 });
  });
});
