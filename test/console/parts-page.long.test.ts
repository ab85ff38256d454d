// Long: builds the page of the parts of the console.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Plugin } from 'vite';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { CONTENT_SECURITY_POLICY } from '../../src/http/console/browser-checks.ts';
import { startBrowser, type TestBrowser, type Window } from '../support/browser.ts';
import { findings } from './open-console.ts';

/*
 * The parts of the console on one page, which only this test builds: their pictures, and what applies to all of them.
 * `UPDATE_DOCS=1` stores new pictures after a part was changed on purpose.
 */
const SOURCE = new URL('../../src/console/', import.meta.url).pathname;
const PAGE = new URL('parts-page/', import.meta.url).pathname;
const PATH = '/console/_parts';
const PARTS = [
  'page head',
  'card',
  'table',
  'status chip',
  'times',
  'filter bar',
  'forms',
  'buttons',
  'feedback',
  'secrets',
  'dialog',
  'empty',
  'notice',
  'timeline',
  'facts',
  'stepper',
];
const WIDTHS = { desktop: { width: 1280, height: 800 }, phone: { width: 390, height: 844 } };
const NOW = new Date('2026-11-28T13:50:00.000Z');
/** A pixel differs if one of its colors does by more than this, of 255. */
const COLOR_DISTANCE = 40;
/** Browsers of other versions smooth the edges of letters differently. */
const MAX_DIFFERENT_SHARE = 0.01;
const TYPES: Readonly<Record<string, string>> = { html: 'text/html', js: 'text/javascript', css: 'text/css' };

let browser: TestBrowser;
let server: Server;
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'postrider-parts-'));
  const { build } = await import('vite');
  const { consoleIcons } = (await import(
    new URL('../../.packaging/console-icons.mjs', import.meta.url).href
  )) as { consoleIcons(source: string): Plugin };
  await build({
    root: PAGE,
    base: '/console/',
    configFile: false,
    logLevel: 'warn',
    plugins: [consoleIcons(SOURCE)],
    oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
    build: {
      outDir: folder,
      emptyOutDir: true,
      target: 'es2023',
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
    },
  });
  server = createServer((request, response) => {
    const path = new URL(request.url ?? '', 'http://localhost').pathname.replace('/console/', '');
    const file = join(
      folder,
      path.startsWith('assets/') && existsSync(join(folder, path)) ? path : 'index.html',
    );
    response.writeHead(200, {
      'Content-Type': TYPES[file.split('.').pop() ?? ''] ?? 'application/octet-stream',
      'Content-Security-Policy': CONTENT_SECURITY_POLICY,
    });
    response.end(readFileSync(file));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  browser = await startBrowser(['localhost']);
});
afterAll(async () => {
  await browser?.close();
  await new Promise((resolve) => (server === undefined ? resolve(null) : server.close(resolve)));
  rmSync(folder, { recursive: true, force: true });
});

async function openParts(size: keyof typeof WIDTHS, dark: boolean): Promise<Window> {
  const window = await browser.open(WIDTHS[size], { dark });
  await window.page.clock.setFixedTime(NOW);
  await window.page.goto(`http://localhost:${(server.address() as AddressInfo).port}${PATH}`);
  await window.page.getByRole('heading', { level: 1 }).waitFor();
  return window;
}

/** Visible controls below 24 × 24 px, without links within a sentence and the boxes of labels. */
const SMALL_TARGETS = `[...document.querySelectorAll('button, input, select, textarea, summary, label.check, .step')]
  .filter((element) => !(element.matches('.tick') && element.closest('label')) && element.checkVisibility())
  .filter((element) => { const { width, height } = element.getBoundingClientRect(); return width < 24 || height < 24; })
  .map((element) => element.outerHTML.slice(0, 100))`;

for (const size of ['desktop', 'phone'] as const)
  for (const dark of [false, true])
    it(`shows every part on a ${size}, ${dark ? 'dark' : 'light'}`, async (test) => {
      const window = await openParts(size, dark);
      const { page, context, consoleErrors } = window;
      for (const name of PARTS) {
        const box = await page.locator(`[data-part="${name}"]`).boundingBox();
        expect(box?.height, name).toBeGreaterThan(0);
      }
      expect(await findings(window)).toEqual([]);
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(WIDTHS[size].width);
      expect(await page.evaluate(SMALL_TARGETS)).toEqual([]);
      expect(consoleErrors).toEqual([]);

      await page.emulateMedia({ reducedMotion: 'reduce', colorScheme: dark ? 'dark' : 'light' });
      await window.screenshot(`console-parts-${size}-${dark ? 'dark' : 'light'}`);
      // Two of the four are stored: each size and each theme once.
      if ((size === 'phone') !== dark) return context.close();
      const file = join(PAGE, `parts-${size}-${dark ? 'dark' : 'light'}.png`);
      const hasFont = await page.evaluate(HAS_FONT);
      const picture = await page.screenshot({ fullPage: true });
      if (process.env['UPDATE_DOCS'] !== undefined) writeFileSync(file, picture);
      if (!hasFont) test.skip('the pictures need the font DejaVu Sans');
      const [stored, shown] = [readFileSync(file), picture].map((png) => png.toString('base64'));
      // Two pictures, for the function below, which runs in the page.
      const different = await page.evaluate<number | string>(
        `(${DIFFERENT_SHARE})('${stored}', '${shown}', ${COLOR_DISTANCE})`,
      );
      expect(different, `${file}: run with UPDATE_DOCS=1 if the change is intended`).toBeLessThan(
        MAX_DIFFERENT_SHARE,
      );
      return context.close();
    });

it('has no finding of axe-core while a menu, a filter, a dialog or a toast is open', async () => {
  const window = await openParts('phone', false);
  const { page, context } = window;
  await page.getByRole('button', { name: 'Actions for November newsletter' }).click();
  await page.getByRole('button', { name: 'Delete the campaign' }).waitFor();
  expect(await findings(window)).toEqual([]);
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Status' }).click();
  await page.getByLabel('Delivered').check();
  await page.getByRole('button', { name: 'Remove the filter delivered' }).waitFor();
  expect(await findings(window)).toEqual([]);
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Delete the domain' }).click();
  await page.getByRole('dialog').waitFor();
  expect(await findings(window)).toEqual([]);
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Show a toast' }).click();
  await page.getByRole('button', { name: 'Show an error' }).click();
  await page.getByRole('button', { name: 'Undo' }).waitFor();
  expect(await findings(window)).toEqual([]);
  await context.close();
});

it('shows at most three toasts; one with a way to undo runs it once', async () => {
  const { page, context } = await openParts('desktop', false);
  for (let turn = 0; turn < 4; turn++) await page.getByRole('button', { name: 'Show a toast' }).click();
  await expect.poll(() => page.locator('.toast').count()).toBe(3);
  await page.getByRole('button', { name: 'Undo' }).first().click();
  await expect.poll(() => page.locator('.toast').count()).toBe(2);
  await context.close();
});

/** Whether the font of the pictures is installed: its letters have other widths than those of the fallback. */
const HAS_FONT = `(() => {
  const context = document.createElement('canvas').getContext('2d');
  const width = (font) => { context.font = '40px ' + font; return context.measureText('Postrider mmmiii').width; };
  return width('"DejaVu Sans", monospace') !== width('monospace');
})()`;

/** The share of the pixels that differ between two pictures; a text if they differ in size. */
const DIFFERENT_SHARE = `async (one, other, distance) => {
  const pixels = async (png) => {
    const bytes = Uint8Array.from(atob(png), (char) => char.charCodeAt(0));
    const bitmap = await createImageBitmap(new Blob([bytes], { type: 'image/png' }));
    const context = new OffscreenCanvas(bitmap.width, bitmap.height).getContext('2d');
    context.drawImage(bitmap, 0, 0);
    return context.getImageData(0, 0, bitmap.width, bitmap.height);
  };
  const [a, b] = [await pixels(one), await pixels(other)];
  if (a.width !== b.width || a.height !== b.height) return a.width + ' x ' + a.height + ' is now ' + b.width + ' x ' + b.height;
  let different = 0;
  for (let i = 0; i < a.data.length; i += 4)
    if ([0, 1, 2].some((color) => Math.abs(a.data[i + color] - b.data[i + color]) > distance)) different++;
  return different / (a.data.length / 4);
}`;
