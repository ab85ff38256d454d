// Long: opens the page of images on a phone and a desktop, light and dark.
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ApiClient } from '../support/api-client.ts';
import { DESKTOP, startBrowser, type TestBrowser } from '../support/browser.ts';
import { JPEG, png } from '../support/images.ts';
import { type InProcess, startInProcess } from '../support/in-process-daemon.ts';
import { HOSTILE, type OpenConsole, openConsole } from './open-console.ts';

/* The images of an account, in Chromium over a daemon in this process. */
let daemon: InProcess;
let browser: TestBrowser;
let open: OpenConsole;
let client: ApiClient;

const MEDIA = '/web-setup/media';
const PICTURE = readFileSync(new URL('../../docs/images/console-results.png', import.meta.url));

interface Media {
  media: { mediaId: string; name: string; alt: string }[];
}

beforeAll(async () => {
  daemon = await startInProcess({ 'console.listen': '127.0.0.1:0' });
  client = await daemon.account('Shop');
  browser = await startBrowser(['localhost']);
  open = openConsole(daemon, browser);
});
afterAll(async () => {
  await browser?.close();
  await daemon?.stop();
});

const images = async () => (await client.get<Media>(MEDIA)).data.media;
const upload = (name: string, rawBody: Buffer) =>
  client.call('POST', `${MEDIA}?${new URLSearchParams({ name, alt: name }).toString()}`, {
    rawBody,
    headers: { 'Content-Type': 'image/png' },
  });

describe('Images', () => {
  it('are uploaded, shown, searched, described and deleted; other files are refused with the reason', async () => {
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    await open.visit(window, 'media', client);
    await page.getByText('No images yet').waitFor();
    await page.locator('input[type=file]').setInputFiles([
      { name: 'logo.png', mimeType: 'image/png', buffer: PICTURE },
      { name: 'photo.jpg', mimeType: 'image/jpeg', buffer: JPEG },
      { name: 'drawing.svg', mimeType: 'image/svg+xml', buffer: Buffer.from('<svg/>') },
    ]);
    await page.getByText(/^drawing\.svg: /).waitFor();
    const tile = page.getByRole('button', { name: /^logo\.png/ });
    // The picture itself, from the console's own host.
    await expect
      .poll(() =>
        page.evaluate(
          "[...document.querySelectorAll('.media-tile img')].every((image) => image.naturalWidth > 0)",
        ),
      )
      .toBe(true);
    await tile.click();
    const detail = page.getByRole('dialog', { name: 'logo.png' });
    await detail.getByLabel('Alternative text').fill('The campaigns');
    await detail.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved: logo.png').waitFor();
    expect(await images()).toMatchObject([{ name: 'photo.jpg' }, { name: 'logo.png', alt: 'The campaigns' }]);
    const search = page.getByLabel('Search by name');
    await search.fill('nothing');
    await page.getByText('No image with this name').waitFor();
    await search.fill(' PHOTO ');
    await page.getByRole('button', { name: /^photo\.jpg/ }).click();
    expect(await tile.count()).toBe(0);
    await page.getByRole('button', { name: 'Delete image' }).first().click();
    await page
      .getByRole('dialog', { name: 'Delete image' })
      .getByRole('button', { name: 'Delete image' })
      .click();
    await page.getByText('Deleted: photo.jpg').waitFor();
    await page.getByText('No image with this name').waitFor();
    await search.fill('');
    await tile.waitFor();
    expect(await images()).toMatchObject([{ name: 'logo.png' }]);
    await context.close();
  });

  it('have no finding of axe-core on a phone and a desktop, light and dark, also with hostile names', async () => {
    await upload(HOSTILE, png({ width: 300, height: 200 }));
    await open.examine({ media: 'media' }, client);
  });
});
