import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startConsole, type TestBrowser, type TestConsole } from './harness.ts';

describe('/console/previews', () => {
  let test: TestConsole;
  let operator: TestBrowser;
  beforeEach(async () => {
    test = await startConsole();
    operator = await test.operator();
  });
  afterEach(() => test.stop());

  it('is a document with its own policy', async () => {
    const html = '<p style="color: red">Hello</p><script>alert(1)</script>';
    const { data } = await operator.post('/console/previews', { html }, test.account);
    const page = await fetch(`${test.base}/console/previews/${String(data['id'])}`, {
      headers: { Cookie: operator.cookie, 'Sec-Fetch-Dest': 'iframe', 'Sec-Fetch-Site': 'same-origin' },
    });
    expect(await page.text()).toBe(html);
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(page.headers.get('content-security-policy')).toMatch(/^sandbox; default-src 'none'; /);
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

  it('refuses people who are not members, and content above the limit', async () => {
    const visitor = test.browser();
    expect((await visitor.post('/console/previews', { html: '' }, test.account)).status).toBe(401);
    const viewer = await test.member('viewer');
    expect((await viewer.post('/console/previews', { html: '' }, test.other)).status).toBe(403);
    expect((await viewer.post('/console/previews', { html: 'x' }, test.account)).status).toBe(200);
    const long = { html: 'x'.repeat(2 * 1024 * 1024 + 1) };
    expect((await viewer.post('/console/previews', long, test.account)).status).toBe(400);
  });
});
