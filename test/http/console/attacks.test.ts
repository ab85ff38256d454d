import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type TestBrowser as Chromium, DESKTOP, startBrowser, type Window } from '../../support/browser.ts';
import { findBrowser } from '../../support/required-programs.ts';
import { HOSTILE_MESSAGE, type TestBrowser as Person, startConsole, type TestConsole } from './harness.ts';

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
  /** Paths that the attacker's server received. */
  const received: string[] = [];
  let page: Page;
  let origin: string;
  let operator: Person;

  beforeAll(async () => {
    chromium = await startBrowser(['localhost']);
    attacker = createServer((req, res) => {
      received.push(req.url ?? '');
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
    operator = await test.operator();
    window = await chromium.open(DESKTOP);
    page = window.page;
    await window.context.addInitScript({
      path: fileURLToPath(new URL('attack-page.js', import.meta.url)),
    });
    received.length = 0;
    const [name = '', value = ''] = operator.cookie.split('=');
    await window.context.addCookies([{ name, value, url: origin, httpOnly: true, sameSite: 'Strict' }]);
  });
  afterEach(async () => {
    await window.context.close();
    await test.stop();
  });

  /** Calls a function of attack-page.js in the page. */
  const run = (name: string, ...args: string[]): Promise<unknown> =>
    page.evaluate(`attacks.${name}(${args.map((arg) => JSON.stringify(arg)).join(', ')})`);

  /** Operations that the audit log has. */
  const changes = () =>
    test.tables.auditRecords
      .list({}, 100)
      .rows.map(({ operation }) => operation)
      .filter((operation) => operation !== 'console.signIn');

  it('the person is signed in, and may make the changes that the attacks attempt', async () => {
    await page.goto(`${origin}/console/`);
    // What a page on another port of the host can obtain is not sufficient.
    expect(await run('change', test.account, '')).toBe(401);
    expect(changes()).toEqual([]);
    expect(await run('change', test.account, operator.pageToken)).toBe(200);
    expect(changes()).toEqual(['createTemplate']);
  });

  describe.each([
    ['another site', '127.0.0.1'],
    ['another port of the same host', 'localhost'],
  ])('a page of %s', (_, host) => {
    beforeEach(async () => {
      await page.goto(`http://${host}:${attackerPort}/`);
    });

    it.each(['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data'])(
      'changes nothing with a form of type %s',
      async (type) => {
        const answered = page.waitForResponse((response) => response.request().method() === 'POST');
        await run('form', `${origin}/console/api/web-setup/templates`, type);
        expect((await answered).status()).toBe(403);
        expect(changes()).toEqual([]);
      },
    );

    it('changes and reads nothing with fetch', async () => {
      const results = (await run('requests', origin, test.account)) as string[];
      expect(results).toHaveLength(6);
      // Either refused by the browser, or a response that the page cannot read.
      expect(results.filter((result) => result !== 'failed' && result !== 'opaque ')).toEqual([]);
      expect(changes()).toEqual([]);
      const [person] = test.tables.people.list(1);
      expect(test.tables.consoleSessions.ofPerson(person?.person_id ?? '', 9)).toHaveLength(1);
    });

    it('reads no events', async () => {
      expect(await run('events', `${origin}/console/stream?account=${test.account}`)).toBe('refused');
    });

    it('does not show the console in a frame (clickjacking)', async () => {
      await run('frame', `${origin}/console/`);
      const [, frame] = page.frames();
      expect(await frame?.content()).not.toContain('<title>Postrider</title>');
      expect(window.consoleErrors.join('\n')).toMatch(/frame-ancestors|X-Frame-Options/);
    });

    it('has no access to a window that it opens', async () => {
      const opening = window.context.waitForEvent('page');
      await run('open', `${origin}/console/`);
      const opened = await opening;
      await opened.waitForURL(`${origin}/console/`);
      expect(await opened.title()).toBe('Postrider');
      expect(await opened.evaluate('globalThis.opener')).toBeNull();
    });
  });

  it('inline scripts, handlers and addresses with code do not run in the console', async () => {
    await page.goto(`${origin}/console/`);
    expect(await run('inject')).toEqual([]);
    expect(window.consoleErrors.join('\n')).toContain('Content Security Policy');
  });

  it('no request leaves the origin: images, styles, scripts and connections of others are blocked', async () => {
    await page.goto(`${origin}/console/`);
    const results = await run('load', `http://localhost:${attackerPort}/`);
    expect(results).toEqual(['blocked', 'blocked', 'blocked', 'blocked']);
    expect(received).toEqual([]);
  });

  it('a message as it was sent shows its text and does nothing else', async () => {
    await page.goto(`${origin}/console/`);
    const loaded = page.waitForEvent('framenavigated');
    const html = HOSTILE_MESSAGE.replaceAll('ATTACKER', String(attackerPort));
    const { data } = await operator.post('/console/previews', { html }, test.account);
    await run('frame', `${origin}/console/previews/${String(data['id'])}`);
    await loaded;
    const [, frame] = page.frames();
    expect(await frame?.locator('p').innerText()).toBe('Buy now');
    const color = await frame?.evaluate("getComputedStyle(document.querySelector('p')).color");
    expect(color).toBe('rgb(255, 0, 0)');
    await frame?.locator('button').click();
    // The browser refuses to show another page in the frame; the message is no longer shown.
    await frame?.locator('#link').click();
    // Time for what the message attempts later.
    await page.waitForTimeout(500);
    expect(await page.title()).toBe('Postrider');
    expect(received).toEqual([]);
    expect(changes()).toEqual([]);
  });
});
