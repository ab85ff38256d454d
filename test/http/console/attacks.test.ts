import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type TestBrowser as Chromium, DESKTOP, startBrowser, type Window } from '../../support/browser.ts';
import { findBrowser } from '../../support/required-programs.ts';
import { startConsole, type TestConsole } from './harness.ts';

/*
 * Pages of an attacker in the browser of a person who is signed in: on another site, and on another port of the same host,
 * which is the same site, so that SameSite cookies are sent.
 */
describe.skipIf(findBrowser() === null)('in Chromium', () => {
  let chromium: Chromium;
  let test: TestConsole;
  let attacker: Server;
  let attackerPort: number;
  let window: Window;
  let page: Page;
  let origin: string;

  beforeAll(async () => {
    chromium = await startBrowser(['localhost']);
    attacker = createServer((_, res) => {
      res.writeHead(200, { 'Content-Type': 'text/html' });
      res.end('<!doctype html><title>Prizes</title>');
    });
    await new Promise<void>((resolve) => attacker.listen(0, '127.0.0.1', resolve));
    // Sound: the server listens on a port.
    attackerPort = (attacker.address() as AddressInfo).port;
  });
  afterAll(async () => {
    await chromium.close();
    attacker.close();
    attacker.closeAllConnections();
  });

  beforeEach(async () => {
    test = await startConsole();
    origin = test.console.url();
    const operator = await test.operator();
    window = await chromium.open(DESKTOP);
    page = window.page;
    const [name = '', value = ''] = operator.cookie.split('=');
    await window.context.addCookies([{ name, value, url: origin, httpOnly: true, sameSite: 'Strict' }]);
  });
  afterEach(async () => {
    await window.context.close();
    await test.stop();
  });

  const changes = () =>
    test.tables.auditRecords
      .list({}, 100)
      .rows.map(({ operation }) => operation)
      .filter((operation) => operation !== 'console.signIn');

  it('the person is signed in, and may make the changes that the attacks attempt', async () => {
    await page.goto(`${origin}/console/`);
    const status = await page.evaluate(async (account) => {
      const response = await fetch('/console/api/web-setup/templates', {
        method: 'POST',
        headers: { 'X-Postrider-Console': '1', 'X-Id': account, 'Content-Type': 'application/json' },
        body: '{}',
      });
      return response.status;
    }, test.account);
    expect(status).toBe(200);
    expect(changes()).toEqual(['createTemplate']);
  });

  describe.each([
    ['another site', '127.0.0.1'],
    ['another port of the same host', 'localhost'],
  ])('a page of %s', (_, host) => {
    beforeEach(() => page.goto(`http://${host}:${attackerPort}/`));

    it.each(['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data'])(
      'changes nothing with a form of type %s',
      async (type) => {
        const answered = page.waitForResponse((response) => response.request().method() === 'POST');
        await page.evaluate(
          ({ action, enctype }) => {
            const form = document.createElement('form');
            Object.assign(form, { method: 'POST', action, enctype });
            const field = Object.assign(document.createElement('input'), { name: '{"a":"', value: '"}' });
            form.append(field);
            document.body.append(form);
            form.submit();
          },
          { action: `${origin}/console/api/web-setup/templates`, enctype: type },
        );
        expect((await answered).status()).toBe(403);
        expect(changes()).toEqual([]);
      },
    );

    it('changes and reads nothing with fetch', async () => {
      const results = await page.evaluate(
        async ({ url, account }) => {
          const attempt = async (path: string, init: RequestInit) => {
            try {
              const response = await fetch(url + path, { credentials: 'include', ...init });
              return `${response.type} ${await response.text()}`;
            } catch {
              return 'failed';
            }
          };
          const headers = { 'X-Postrider-Console': '1', 'X-Id': account };
          return [
            await attempt('/console/api/web-setup/templates', {
              method: 'POST',
              mode: 'no-cors',
              body: '{}',
            }),
            await attempt('/console/api/web-setup/templates', { method: 'POST', headers, body: '{}' }),
            await attempt('/console/session', { method: 'DELETE', headers }),
            await attempt('/console/api/web-setup/messages', { headers }),
            await attempt('/console/session', {}),
            await attempt('/console/session', { mode: 'no-cors' }),
          ];
        },
        { url: origin, account: test.account },
      );
      // Either refused by the browser, or a response that the page cannot read.
      expect(results.filter((result) => result !== 'failed' && result !== 'opaque ')).toEqual([]);
      expect(changes()).toEqual([]);
      expect(
        test.tables.consoleSessions.ofPerson(test.tables.people.list(1)[0]?.person_id ?? '', 9),
      ).toHaveLength(1);
    });

    it('reads no events', async () => {
      const result = await page.evaluate(
        (url) =>
          new Promise<string>((resolve) => {
            const source = new EventSource(url, { withCredentials: true });
            source.addEventListener('hello', () => resolve('opened'));
            source.addEventListener('error', () => resolve('refused'));
          }),
        `${origin}/console/stream?account=${test.account}`,
      );
      expect(result).toBe('refused');
    });

    it('does not show the console in a frame (clickjacking)', async () => {
      await page.evaluate((url) => {
        const frame = Object.assign(document.createElement('iframe'), { src: url });
        document.body.append(frame);
        return new Promise((resolve) => frame.addEventListener('load', resolve));
      }, `${origin}/console/`);
      const [, frame] = page.frames();
      expect(await frame?.content()).not.toContain('<title>Postrider</title>');
      expect(window.consoleErrors.join('\n')).toMatch(/frame-ancestors|X-Frame-Options/);
    });

    it('has no access to a window that it opens', async () => {
      const opened = window.context.waitForEvent('page');
      await page.evaluate((url) => {
        Object.assign(globalThis, { opened: globalThis.open(url) });
      }, `${origin}/console/`);
      const other = await opened;
      await other.waitForLoadState();
      expect(await other.title()).toBe('Postrider');
      expect(await other.evaluate(() => globalThis.opener)).toBeNull();
    });
  });

  it('inline scripts, handlers and evaluated texts do not run in the console', async () => {
    await page.goto(`${origin}/console/`);
    const ran = await page.evaluate(async () => {
      const found: string[] = [];
      Object.assign(globalThis, { ran: (what: string) => found.push(what) });
      document.body.innerHTML =
        '<img src="x" onerror="ran(\'handler\')"><a href="javascript:ran(\'link\')">a</a>';
      document.querySelector('a')?.click();
      const script = Object.assign(document.createElement('script'), { text: "ran('script')" });
      document.body.append(script);
      await new Promise((resolve) => setTimeout(resolve, 200));
      return found;
    });
    expect(ran).toEqual([]);
    expect(window.consoleErrors.join('\n')).toContain('Content Security Policy');
  });

  it('no request leaves the origin: images, styles, scripts and connections of others are blocked', async () => {
    await page.goto(`${origin}/console/`);
    const attackerUrl = `http://localhost:${attackerPort}/`;
    const results = await page.evaluate(async (url) => {
      const load = (element: HTMLElement) =>
        new Promise<string>((resolve) => {
          element.addEventListener('load', () => resolve('loaded'));
          element.addEventListener('error', () => resolve('blocked'));
          document.head.append(element);
        });
      return [
        await load(Object.assign(document.createElement('img'), { src: `${url}image` })),
        await load(Object.assign(document.createElement('script'), { src: `${url}script.js` })),
        await load(Object.assign(document.createElement('link'), { rel: 'stylesheet', href: `${url}a.css` })),
        await fetch(`${url}data`).then(
          () => 'loaded',
          () => 'blocked',
        ),
      ];
    }, attackerUrl);
    expect(results).toEqual(['blocked', 'blocked', 'blocked', 'blocked']);
    expect(window.requests.filter((url) => !url.startsWith(origin))).toEqual([]);
  });
});
