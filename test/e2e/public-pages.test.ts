import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { trackLinks } from '../../src/mail/html/links.ts';
import { FORM, ONE_CLICK, type PublicRig, startPublic } from '../http/public/rig.ts';
import { accessibilityFaults, showsFocus } from '../support/accessibility.ts';
import { DESKTOP, PHONE, startBrowser, type TestBrowser, type Window } from '../support/browser.ts';
import { requirePrograms } from '../support/required-programs.ts';

/*
 * The public pages in Chromium: with the window of a phone and of a desktop computer, by mouse and by keyboard, with
 * and without scripts.
 *
 *   Chromium ──HTTP──▶ public listener (in this process) ──▶ a real database
 *      │
 *      └──▶ other host names: do not resolve
 */
const required = requirePrograms('chromium');

describe.skipIf(required.missing)(`the public pages${required.reason}`, () => {
  let browser: TestBrowser;
  beforeAll(async () => {
    browser = await startBrowser(['link.example.com']);
  });
  afterAll(() => browser?.close());

  /** Delivers a message, by default to a member of a group; returns the URLs of its pages. */
  async function deliver(options: { list?: boolean; stream?: 'tx' | 'mk' } = {}) {
    const { list = true, stream = 'mk' } = options;
    const rig = await startPublic();
    const groupId = list && stream === 'mk' ? rig.group('Winter news – Schönes für kalte Tage') : null;
    const { message, mail } = rig.sent({ use_case: stream, subscription_group_id: groupId });
    await rig.deliver(message);
    const stopped = () => rig.unsubscribing.state(rig.tables, mail).stopped;
    return {
      rig,
      mail,
      stopped,
      unsubscribe: `${rig.base}/u/${rig.tokens.of('acct_one').unsubscribeUrl(mail)}`,
      report: `${rig.base}/r/${rig.tokens.of('acct_one').reportUrl(mail)}`,
    };
  }

  const open = async (url: string, ...options: Parameters<TestBrowser['open']>): Promise<Window> => {
    const window = await browser.open(...options);
    await window.page.goto(url);
    return window;
  };
  const heading = ({ page }: Window) => page.locator('h1').innerText();

  const SIZES = [
    ['phone', PHONE],
    ['desktop', DESKTOP],
  ] as const;

  describe.each(SIZES)('on a %s', (device, size) => {
    it('unsubscribe from a list and from all marketing mail, and undo it', async () => {
      const { rig, stopped, unsubscribe } = await deliver();
      const window = await open(unsubscribe, size);
      const { page } = window;
      expect(await heading(window)).toBe('Unsubscribe');
      await window.screenshot(`unsubscribe-${device}`);
      expect(await accessibilityFaults(page)).toEqual([]);
      expect(stopped()).toEqual([]);

      await page.getByRole('button', { name: 'Unsubscribe' }).click();
      expect(await heading(window)).toBe('You are unsubscribed');
      await window.screenshot(`unsubscribed-${device}`);
      expect(await accessibilityFaults(page)).toEqual([]);
      expect(stopped()).toEqual(['group']);

      await page.getByRole('button', { name: 'Undo' }).click();
      expect(await heading(window)).toBe('You are subscribed again');
      await window.screenshot(`subscribed-again-${device}`);
      expect(await accessibilityFaults(page)).toEqual([]);
      expect(stopped()).toEqual([]);

      await page.getByLabel('All marketing mail').check();
      await page.getByRole('button', { name: 'Unsubscribe' }).click();
      expect(await heading(window)).toBe('You are unsubscribed');
      expect(stopped()).toEqual(['mk']);
      // A page that is still loading cannot be reloaded.
      await page.waitForLoadState();
      await page.reload();
      expect(await heading(window)).toBe('You are unsubscribed');

      expect(rig.events()).toMatchObject([
        { method: 'page', scope: 'group' },
        { method: 'page', scope: 'marketing' },
      ]);
      expectNothingElse(window, rig);
    });

    it('report abuse', async () => {
      const { rig, report } = await deliver();
      const window = await open(report, size);
      await window.screenshot(`report-${device}`);
      expect(await accessibilityFaults(window.page)).toEqual([]);
      await window.page.getByLabel('It is fraud').check();
      await window.page.getByRole('button', { name: 'Report this mail' }).click();
      expect(await heading(window)).toBe('Thank you');
      expect(await accessibilityFaults(window.page)).toEqual([]);
      expect(rig.events()).toMatchObject([{ event: 'email_complained', reportReason: 'fraud' }]);
      expectNothingElse(window, rig);
    });

    it('explain an invalid link', async () => {
      const { rig } = await deliver();
      const window = await open(`${rig.base}/u/nonsense`, size);
      expect(await heading(window)).toBe('This link does not work');
      await window.screenshot(`unknown-link-${device}`);
      expect(await accessibilityFaults(window.page)).toEqual([]);
      expectNothingElse(window, rig, 1);
    });
  });

  it.each([
    ['unsubscribe', 'mk', true],
    ['unsubscribe', 'mk', false],
    ['unsubscribe', 'tx', false],
    ['report', 'tx', false],
  ] as const)(
    'the page %s of %s mail (with a list: %s) is accessible in dark mode',
    async (which, stream, list) => {
      const { [which]: url } = await deliver({ stream, list });
      const window = await open(url, PHONE, { dark: true });
      await window.screenshot(`${which}-${stream}${list ? '-list' : ''}-dark`);
      expect(await accessibilityFaults(window.page)).toEqual([]);
      await window.page.getByRole('button').first().click();
      expect(await accessibilityFaults(window.page)).toEqual([]);
    },
  );

  it('accessibilityFaults finds each kind of fault', async () => {
    const window = await browser.open(PHONE);
    await window.page.setContent(
      '<body style="background:#fff"><p style="color:#999">pale</p><p style="font-size:9px;color:#000">small</p><input type=radio><button style="border:1px solid #eee"></button><div style="width:2000px">wide</div>',
    );
    const faults = (await accessibilityFaults(window.page)).join('\n');
    for (const fault of [
      'contrast 2.85',
      'text of 9 px',
      'no label',
      'no legend',
      'no name',
      'no title',
      'no language',
      'not one main',
      'not one heading',
      'viewport',
      'wider than the window',
    ])
      expect(faults).toContain(fault);
  });

  it('unsubscribe and undo by keyboard', async () => {
    const { rig, stopped, unsubscribe } = await deliver();
    const window = await open(unsubscribe, DESKTOP);
    const { keyboard } = window.page;
    await keyboard.press('Tab');
    expect(await showsFocus(window.page)).toBe(true);
    await keyboard.press('ArrowDown');
    await keyboard.press('Tab');
    expect(await showsFocus(window.page)).toBe(true);
    await window.screenshot('keyboard-desktop');
    await Promise.all([window.page.waitForNavigation(), keyboard.press('Enter')]);
    expect(stopped()).toEqual(['mk']);
    await keyboard.press('Tab');
    expect(await showsFocus(window.page)).toBe(true);
    await Promise.all([window.page.waitForNavigation(), keyboard.press('Space')]);
    expect(await heading(window)).toBe('You are subscribed again');
    expect(stopped()).toEqual([]);
    expectNothingElse(window, rig);
  });

  it('unsubscribe and undo without scripts', async () => {
    const { stopped, unsubscribe } = await deliver();
    const window = await open(unsubscribe, PHONE, { script: false });
    await window.page.getByRole('button', { name: 'Unsubscribe' }).click();
    expect(stopped()).toEqual(['group']);
    await window.page.getByRole('button', { name: 'Undo' }).click();
    expect(stopped()).toEqual([]);
  });

  it('show a one-click unsubscription of a mailbox provider; a GET changes nothing', async () => {
    const { rig, stopped, unsubscribe } = await deliver();
    const window = await open(unsubscribe, PHONE);
    await window.page.reload();
    expect(stopped()).toEqual([]);
    const path = unsubscribe.slice(rig.base.length);
    expect((await rig.call(path, { ...ONE_CLICK, headers: FORM })).status).toBe(200);
    expect(stopped()).toEqual(['group']);
    await window.page.reload();
    expect(await heading(window)).toBe('You are unsubscribed');
  });

  it('store no cookies and no other data', async () => {
    const { unsubscribe } = await deliver();
    const window = await open(unsubscribe, DESKTOP);
    await window.page.getByRole('button').click();
    expect(await window.context.storageState()).toEqual({ cookies: [], origins: [] });
  });

  describe('a newsletter in the browser', () => {
    const html = readFileSync(new URL('../mail/newsletter/newsletter.html', import.meta.url), 'utf8');
    const hrefs = (page: Window['page']): Promise<string[]> =>
      page.evaluate(
        'Array.from(document.querySelectorAll("a[href], area[href]"), (link) => link.getAttribute("href"))',
      );

    /** Opens html as a page without access to other resources. */
    async function openHtml(source: string): Promise<Window> {
      const window = await browser.open(DESKTOP, { script: true });
      await window.page.route('**/*', (route) =>
        route.request().url() === 'http://127.0.0.1:9/'
          ? route.fulfill({ contentType: 'text/html; charset=utf-8', body: source })
          : route.abort(),
      );
      await window.page.goto('http://127.0.0.1:9/');
      return window;
    }

    it('has the same links after tracking, each of which redirects to its destination', async () => {
      const rig = await startPublic();
      const { message } = rig.sent({ track_clicks: 1, track_opens: 1 });
      const prefix = `${rig.base}/c/`;
      const changed = trackLinks(html, {
        recipient: 'ada@example.net',
        kind: 'marketing',
        unsubscribeUrl: '',
        reportAbuseUrl: '',
        unsubscribeAddress: null,
        signedId: '',
        feedbackAddress: null,
        feedbackId: '',
        tracking: {
          linkPrefix: prefix,
          clickSigner: rig.tokens.of('acct_one').click,
          messageId: message.message_id,
          pixelUrl: `${rig.base}/o/${rig.tokens.of('acct_one').openUrl(message.message_id)}.gif`,
        },
      });
      const before = await hrefs((await openHtml(html)).page);
      const after = await hrefs((await openHtml(changed)).page);
      expect(after).toHaveLength(before.length);
      let redirected = 0;
      for (const [index, href] of after.entries()) {
        const original = before[index] ?? '';
        if (!href.startsWith(prefix)) {
          expect(href).toBe(original);
          continue;
        }
        redirected++;
        const { headers } = await rig.call(href.slice(rig.base.length));
        expect(headers['location']).toBe(original.trim());
      }
      // The other links of the 200 are in conditional comments for Outlook.
      expect(redirected).toBe(196);
    });

    it('redirects a click, and records the click and the open', async () => {
      const rig = await startPublic();
      const { message } = rig.sent();
      const target = `${rig.base}/robots.txt?from=mail`;
      const window = await browser.open(DESKTOP);
      const port = new URL(rig.base).port;
      const link = rig.clickUrl(message.message_id, target, 'link.example.com');
      await window.page.setContent(
        `<a href="http://link.example.com:${port}${link}">Read on</a><img src="${rig.base}/o/${rig.tokens.of('acct_one').openUrl(message.message_id)}.gif">`,
      );
      await Promise.all([window.page.waitForURL(target), window.page.getByText('Read on').click()]);
      await rig.settle();
      expect(
        rig
          .events()
          .map(({ event }) => event)
          .toSorted(),
      ).toEqual(['email_clicked', 'email_opened']);
    });
  });

  /** All requests went to the listener, and the console has no errors but those of `missing` pages. */
  function expectNothingElse({ requests, consoleErrors }: Window, rig: PublicRig, missing = 0): void {
    expect(requests.filter((url) => !url.startsWith(`${rig.base}/`))).toEqual([]);
    const others = consoleErrors.filter((text) => !text.includes('favicon.ico'));
    expect(others.length).toBeLessThanOrEqual(missing);
  }
});
