import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { accepted, startConsole, type TestBrowser, type TestConsole } from './harness.ts';

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

  it('has the images of the account from the console, and no others', async () => {
    const upload = async (account: string) => {
      const link = test.ids.token();
      const content = test.tables.media.insertContent({
        account_id: account,
        hash: Buffer.alloc(32, account === test.account ? 1 : 2),
        state: 'stored',
        type: 'image/png',
        width: 1,
        height: 1,
        frames: 1,
        size: 3,
      });
      test.tables.media.insertPart(content, 0, Buffer.from('png'));
      const fields = { name: 'logo', alt: '', created_at: 0, updated_at: 0 };
      test.tables.media.insert({
        ...fields,
        media_id: test.ids.make('media'),
        account_id: account,
        content_seq: content,
        link,
      });
      return link;
    };
    const [own, other] = [await upload(test.account), await upload(test.other)];
    const html = [
      `<img src="https://links.example.com/m/${own}.png">`,
      `<table background='http://track.mail.test:8080/m/${own}.png' style="background:url(https://x/m/${own}.png)">`,
      `<img src="https://links.example.com/m/${own}.gif">`,
      `<img src="https://links.example.com/m/${other}.png">`,
      '<img src="https://elsewhere.example/pixel.png">',
    ];
    const { data } = await operator.post('/console/previews', { html: html.join('\n') }, test.account);
    const page = await fetch(`${test.base}/console/previews/${String(data['id'])}`, {
      headers: { Cookie: operator.cookie, 'Sec-Fetch-Dest': 'iframe', 'Sec-Fetch-Site': 'same-origin' },
    });
    const image = `/console/images/${own}.png`;
    expect((await page.text()).split('\n')).toEqual([
      `<img src="${image}">`,
      `<table background='${image}' style="background:url(${image})">`,
      ...html.slice(2),
    ]);
    // The frame is of no origin.
    const asFrame = { 'Sec-Fetch-Dest': 'image', 'Sec-Fetch-Site': 'cross-site' };
    const shown = await fetch(`${test.base}${image}`, { headers: asFrame });
    expect(shown.status).toBe(200);
    expect(shown.headers.get('cross-origin-resource-policy')).toBe('cross-origin');
    const read = { ...asFrame, 'Sec-Fetch-Dest': 'empty' };
    expect((await fetch(`${test.base}${image}`, { headers: read })).status).toBe(403);
    for (const path of ['/console/session', '/console/api/web-setup/templates'])
      expect((await fetch(`${test.base}${path}`, { headers: asFrame })).status).toBe(403);
  });

  it('shows a preview to the person who created it, in a frame only', async () => {
    const { data } = await operator.post('/console/previews', { html: '<p>Secret</p>' }, test.account);
    const path = `/console/previews/${String(data['id'])}`;
    const other = await test.operator('other@example.com');
    expect((await other.get(path)).status).toBe(404);
    const withCookie = (cookie: string, id: string) =>
      fetch(`${test.base}/console/previews/${id}`, { headers: { Cookie: cookie } });
    expect((await withCookie(other.cookie, String(data['id']))).status).toBe(401);
    expect((await withCookie(operator.cookie, 'another')).status).toBe(401);
    expect((await withCookie(operator.cookie, String(data['id']))).status).toBe(200);
    const opened = await operator.send('GET', path, {
      headers: { 'Sec-Fetch-Dest': 'document', 'Sec-Fetch-Site': 'none' },
    });
    expect(opened.status).toBe(403);
    expect((await operator.get(path)).status).toBe(200);
  });

  describe('when many are stored', () => {
    /** The size of the largest preview. */
    const LARGE = 'x'.repeat(2 * 1024 * 1024);
    const store = async (browser: TestBrowser, account: string, html = LARGE) => {
      const { status, data } = await browser.post('/console/previews', { html }, account);
      expect(status).toBe(200);
      return `/console/previews/${String(data['id'])}`;
    };
    const statusOf = async (browser: TestBrowser, path: string) => (await browser.get(path)).status;
    const member = async (account: string, email: string) => {
      test.clock.time++;
      return test.signInWith(
        accepted(await test.people.invite(account, { email, role: 'viewer' }, 'operator')),
      );
    };

    it('replaces those of the person, and keeps those of operators and of other accounts', async () => {
      const own = await store(operator, test.account, 'operator');
      const other = await member(test.other, 'other@example.com');
      const theirs = await store(other, test.other, 'other');
      const viewer = await test.member('viewer');
      const first = await store(viewer, test.account);
      for (let times = 0; times < 8; times++) await store(viewer, test.account);
      expect(await statusOf(viewer, first)).toBe(404);
      expect([await statusOf(operator, own), await statusOf(other, theirs)]).toEqual([200, 200]);
    });

    it('keeps those of other accounts, whatever number of members an account has', async () => {
      const other = await member(test.other, 'other@example.com');
      const theirs = await store(other, test.other);
      let last = '';
      for (let number = 0; number < 8; number++) {
        const viewer = await member(test.account, `viewer${number}@example.com`);
        last = await store(viewer, test.account);
        expect(await statusOf(viewer, last)).toBe(200);
      }
      expect(await statusOf(other, theirs)).toBe(200);
    });
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
