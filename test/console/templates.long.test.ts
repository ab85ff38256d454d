// Long: opens its pages of the console on a phone and a desktop, light and dark.
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ApiClient } from '../support/api-client.ts';
import { DESKTOP, PHONE, startBrowser, type TestBrowser } from '../support/browser.ts';
import { png } from '../support/images.ts';
import { type InProcess, startInProcess } from '../support/in-process-daemon.ts';
import { answerQuestions, chooseAccount, HOSTILE, type OpenConsole, openConsole } from './open-console.ts';

/* The pages of templates, in Chromium over a daemon in this process. */
let daemon: InProcess;
let browser: TestBrowser;
let open: OpenConsole;
let client: ApiClient;
let templateId: string;

const FOOTER = '<p>{{company_address_html}}{{unsubscribe_email_html}}</p>';

beforeAll(async () => {
  daemon = await startInProcess({ 'console.listen': '127.0.0.1:0' });
  client = await daemon.account('Shop');
  const contact = await client.post('/web-setup/contacts', {
    email: 'ann@example.com',
    firstName: HOSTILE,
    consentMethod: 'web_form',
    customFields: { city: 'Paris' },
  });
  expect(contact.status).toBe(201);
  const created = await client.post<{ template: { templateId: string } }>('/web-setup/templates', {
    name: HOSTILE,
    subject: 'For {{firstName}}',
    html: `<p style="color: red">Hello {{firstName}} in {{customFields.city}}, {{offer}}</p>
      <script>parent.document.title = 'script'</script>${FOOTER}`,
  });
  templateId = created.data.template.templateId;
  browser = await startBrowser(['localhost']);
  open = openConsole(daemon, browser);
});
afterAll(async () => {
  await browser?.close();
  await daemon?.stop();
});

describe('Templates', () => {
  it('shows the images of the account in the preview, and none of other hosts', async () => {
    const { data } = await client.call<{ media: { url: string } }>('POST', '/web-setup/media?name=logo', {
      rawBody: png({ width: 30, height: 20 }),
      headers: { 'Content-Type': 'image/png' },
    });
    const window = await open.member(client, 'viewer', DESKTOP);
    const { page, context } = window;
    const answered: string[] = [];
    page.on('response', (response) => answered.push(response.url()));
    const { template } = (
      await client.post<{ template: { templateId: string } }>('/web-setup/templates', {
        name: 'Images',
        subject: 'Images',
        html: `<img id="own" src="${data.media.url}"><img id="other" src="${daemon.consoleUrl.replace('localhost', '127.0.0.1')}/other.png">${FOOTER}`,
      })
    ).data;
    await open.visit(window, `templates/${template.templateId}`, client);
    const frame = page.frameLocator('iframe');
    await frame.locator('#own').waitFor();
    const width = () => frame.locator('#own').evaluate((image) => Number(Reflect.get(image, 'naturalWidth')));
    await expect.poll(width).toBe(30);
    const other = await frame
      .locator('#other')
      .evaluate((image) => Number(Reflect.get(image, 'naturalWidth')));
    expect(other).toBe(0);
    expect(answered.filter((url) => url.includes('/images/'))).toEqual([
      expect.stringContaining(`${daemon.consoleUrl}/console/images/`),
    ]);
    expect(answered.filter((url) => url.includes('other.png'))).toEqual([]);
    await context.close();
  });

  it('writes MJML with Liquid, names the lines that are not valid, and keeps the source', async () => {
    const window = await open.member(client, 'author', DESKTOP);
    const { page, context } = window;
    await open.visit(window, 'templates/new', client);
    await page.getByRole('button', { name: 'Your own HTML' }).click();
    await page.getByLabel('Name').fill('Both');
    await page.getByLabel('Subject').fill('For {{name|you}}');
    await page.getByLabel('Format').selectOption('mjml');
    await page.getByRole('combobox', { name: 'Variables' }).selectOption('liquid');
    expect(await page.getByLabel('Subject').inputValue()).toBe('For {{ name | default: "you" }}');
    const frame = page.frameLocator('iframe');
    await frame.getByText('Hello there,').waitFor();
    const code = page.getByRole('textbox', { name: 'MJML' });
    const write = async (text: string) => {
      await code.focus();
      await page.keyboard.press('ControlOrMeta+A');
      await page.keyboard.insertText(text);
    };
    const mjml = (text: string) =>
      `<mjml>\n<mj-body><mj-section><mj-column>\n<mj-text>${text}</mj-text><mj-text>${FOOTER}</mj-text></mj-column></mj-section></mj-body></mjml>`;
    await write(mjml('<mj-nothing/>').replace('<mj-text><mj-nothing/></mj-text>', '<mj-nothing/>'));
    await page.getByText('MJML: line 3: mj-nothing is not an element of MJML').waitFor();
    await write(mjml('{% if name %}Hello {{ name | shout }}{% endif %}'));
    await page.getByText(/^Compiled HTML: line \d+, column \d+: undefined filter: shout$/).waitFor();
    await write(mjml('{% for i in (1..2) %}<p>Hello {{ name | upcase }} {{ i }}</p>{% endfor %}'));
    await frame.getByText('Hello 2').waitFor();
    expect(await page.getByText('Please correct').count()).toBe(0);
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('heading', { level: 1, name: 'Both' }).waitFor();
    const read = async () =>
      (
        await client.get<{ templates: { syntax: string; format: string; mjml?: string; html: string }[] }>(
          '/web-setup/templates',
        )
      ).data.templates[0];
    expect(await read()).toMatchObject({
      syntax: 'liquid',
      format: 'mjml',
      mjml: mjml('{% for i in (1..2) %}<p>Hello {{ name | upcase }} {{ i }}</p>{% endfor %}'),
    });
    // The HTML is what was compiled.
    await page.getByLabel('Format').selectOption('html');
    await page.getByRole('textbox', { name: 'HTML' }).waitFor();
    await page.getByRole('button', { name: 'Save' }).click();
    await page.locator('.outcome', { hasText: 'Saved' }).waitFor();
    expect(await read()).toMatchObject({ format: 'html', html: expect.stringContaining('upcase') });
    await context.close();
  });

  it('stores partials, which templates insert, and deletes one that nothing uses', async () => {
    const window = await open.member(client, 'author', DESKTOP);
    const { page, context } = window;
    await open.visit(window, 'templates', client);
    await page.getByRole('link', { name: 'Partials' }).click();
    await page.getByText('No partials yet').waitFor();
    await page.getByRole('link', { name: 'New partial' }).click();
    await page.getByLabel('Name').fill('greeting');
    const code = page.getByRole('textbox', { name: 'HTML' });
    const write = async (text: string) => {
      await code.focus();
      await page.keyboard.press('ControlOrMeta+A');
      await page.keyboard.insertText(text);
    };
    await write('<p>Good day</p>\n{% if %}');
    await page.getByText(/^HTML: line 2, column \d+: /).waitFor();
    await write('<p>Good day</p>');
    await page.frameLocator('iframe').getByText('Good day').waitFor();
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('heading', { level: 1, name: 'greeting' }).waitFor();
    const user = await client.post<{ template: { templateId: string } }>('/web-setup/templates', {
      name: 'Greeted',
      syntax: 'liquid',
      html: `{% render "greeting" %}${FOOTER}`,
    });
    const remove = async () => {
      await page.getByRole('button', { name: 'greeting' }).click();
      await page.getByRole('button', { name: 'Delete the partial' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Delete the partial' }).click();
    };
    await remove();
    await page.getByText('Used by Greeted: remove it there first.').waitFor();
    await client.call('DELETE', `/web-setup/templates/${user.data.template.templateId}`);
    await remove();
    await page.getByText('No partials yet').waitFor();
    await context.close();
  });

  it('creates a template by keyboard, with the code next to its preview', async () => {
    const window = await open.member(client, 'author', DESKTOP);
    const { page, context, consoleErrors } = window;
    await open.visit(window, 'templates', client);
    await page.getByRole('link', { name: 'New template' }).press('Enter');
    await page.getByRole('button', { name: 'Your own HTML' }).press('Enter');
    await page.getByLabel('Name').fill('Welcome');
    await page.getByLabel('Subject').fill('Welcome to the shop');
    const code = page.getByRole('textbox', { name: 'HTML' });
    await code.focus();
    await page.keyboard.press('ControlOrMeta+A');
    await page.keyboard.insertText(`<h1>Welcome, {{name}}</h1>`);
    await page.getByText('Cannot be sent without {{company_address_html}}').waitFor();
    await page.keyboard.insertText(FOOTER);
    await page.getByText('Without a value: {{name}}').waitFor();
    const frame = page.frameLocator('iframe');
    await frame.getByRole('heading', { name: 'Welcome, {{name}}' }).waitFor();
    await frame.getByText('Shop Ltd').waitFor();
    await page.getByText('Values of variables').click();
    await page.getByLabel('name', { exact: true }).fill('Ann');
    await frame.getByRole('heading', { name: 'Welcome, Ann' }).waitFor();
    // Tab leaves the editor: nobody is trapped in it.
    await code.focus();
    await page.keyboard.press('Tab');
    expect(await page.evaluate('document.activeElement.shadowRoot')).toBeNull();
    await page.getByLabel('Subject').press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Welcome' }).waitFor();
    await page.locator('.outcome', { hasText: 'Saved' }).waitFor();
    const listed = await client.get<{ templates: { name: string; html: string }[] }>('/web-setup/templates');
    expect(listed.data.templates[0]).toMatchObject({
      name: 'Welcome',
      html: `<h1>Welcome, {{name}}</h1>${FOOTER}`,
    });
    // The script of the other template, in its thumbnail, is blocked.
    expect(consoleErrors.filter((line) => !line.includes('/console/previews/'))).toEqual([]);
    await context.close();
  });

  it('shows a template as a contact sees it; scripts do not run and values are text', async () => {
    const window = await open.operator(PHONE);
    const { page, context, requests } = window;
    await open.visit(window, `templates/${templateId}`, client);
    await page.getByLabel('As the contact (address)').fill('ann@example.com');
    await page.getByRole('button', { name: 'Use', exact: true }).click();
    const frame = page.frameLocator('iframe');
    await frame.getByText(`Hello ${HOSTILE} in Paris, {{offer}}`).waitFor();
    const shown = page.frames().find((each) => each.url().includes('/console/previews/'));
    expect(await shown?.evaluate("getComputedStyle(document.querySelector('p')).color")).toBe(
      'rgb(255, 0, 0)',
    );
    await page.getByText(`For ${HOSTILE}`).waitFor();
    expect(page.url()).toContain('contact=email_');
    await page.getByLabel('Phone').check();
    await page.reload();
    await frame.getByText(`Hello ${HOSTILE} in Paris`).waitFor();
    await page.getByLabel('Plain text', { exact: true }).check();
    await page.locator('.preview pre', { hasText: 'in Paris, {{offer}}' }).waitFor();
    expect(await page.title()).toBe(`${HOSTILE} · Postrider`);
    expect(requests.filter((url) => !url.startsWith(daemon.consoleUrl) && !url.startsWith('data:'))).toEqual(
      [],
    );
    await context.close();
  });

  it('shows a template as on a dark screen, and warns when Gmail would hide its end', async () => {
    const html = (length: number) =>
      `<style>@media (prefers-color-scheme: dark) { p { color: rgb(1, 2, 3) } }</style><p>Hello</p>${FOOTER}${' '.repeat(length)}`;
    const create = async (name: string, length: number) => {
      const created = await client.post<{ template: { templateId: string } }>('/web-setup/templates', {
        name,
        html: html(length),
      });
      return created.data.template.templateId;
    };
    const [short, long] = [await create('Short', 0), await create('Long', 103_000)];
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    // The tests of this browser choose a scheme for all frames otherwise.
    await page.emulateMedia({ colorScheme: null });
    await open.visit(window, `templates/${short}`, client);
    const frame = page.locator('.preview iframe');
    const shown = page.frameLocator('.preview iframe').getByText('Hello');
    const color = () =>
      page
        .frames()
        .find((each) => each.url().includes('/console/previews/'))
        ?.evaluate("getComputedStyle(document.querySelector('p')).color");
    await shown.waitFor();
    expect(await color()).not.toBe('rgb(1, 2, 3)');
    const shade = async () => brightness(page, await frame.screenshot());
    expect(await shade()).toBe(255);
    await page.getByText('Size of the HTML: 1 KB').waitFor();
    await page.getByRole('checkbox', { name: 'Dark' }).check();
    await expect.poll(() => page.url()).toContain('dark=1');
    await expect.poll(color).toBe('rgb(1, 2, 3)');
    // The preview is created again, for a dark background.
    await expect.poll(shade).toBeLessThan(60);
    expect(await page.getByText('Gmail hides the end').count()).toBe(0);
    await open.visit(window, `templates/${long}`, client);
    await page.getByText('Size of the HTML: 104 KB').waitFor();
    await page.getByText('Gmail hides the end of messages above 102 KB').waitFor();
    await context.close();
  });

  it.each([
    ['a phone', PHONE],
    ['a desktop', DESKTOP],
  ])('scales wide mail to the width of %s, in a frame without rights', async (_, size) => {
    const columns = '<td>Hello</td><td align="right" id="end">End</td>';
    const created = await client.post<{ template: { templateId: string } }>('/web-setup/templates', {
      name: 'Wide',
      html: `<table width="700" style="table-layout: fixed"><tr>${columns}</tr></table>${FOOTER}`,
    });
    const window = await open.operator(size);
    const { page, context, consoleErrors } = window;
    await open.visit(window, `templates/${created.data.template.templateId}`, client);
    const frame = page.locator('.preview iframe');
    await page.frameLocator('.preview iframe').locator('#end').waitFor();
    const inside = async () =>
      page
        .frames()
        .find((each) => each.url().includes('/console/previews/'))
        ?.evaluate<boolean>(
          "document.documentElement.scrollWidth <= innerWidth && document.querySelector('#end').getBoundingClientRect().right <= innerWidth",
        );
    await expect.poll(inside).toBe(true);
    const box = async () => {
      const [outer, inner] = await Promise.all([
        page.locator('.mail-frame').boundingBox(),
        frame.boundingBox(),
      ]);
      return outer !== null && inner !== null && inner.width <= outer.width && inner.height <= outer.height;
    };
    await expect.poll(box).toBe(true);
    expect(await frame.getAttribute('sandbox')).toBe('');
    expect(consoleErrors).toEqual([]);
    await context.close();
  });

  it('has its fields in a tab of a phone, which opens when one of them is missing', async () => {
    const window = await open.member(client, 'author', PHONE);
    const { page } = window;
    await open.visit(window, `templates/${templateId}`, client);
    const name = page.getByLabel('Name', { exact: true });
    await page.locator('iframe').waitFor();
    expect(await name.isVisible()).toBe(false);
    await page.getByRole('tab', { name: 'Details' }).click();
    await name.fill('');
    await page.getByRole('tab', { name: 'HTML' }).click();
    await page.getByRole('button', { name: 'Save' }).click();
    await expect.poll(() => name.evaluate((field) => field.ownerDocument.activeElement === field)).toBe(true);
    await name.fill(HOSTILE);
    await page.getByRole('button', { name: 'Save' }).click();
    await page.locator('.outcome', { hasText: 'Saved' }).waitFor();
    await window.context.close();
  });

  it('saves a change, and shows what the server refuses', async () => {
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    await open.visit(window, `templates/${templateId}`, client);
    await page.getByLabel('Write the plain text yourself').check();
    await page.getByLabel('Plain text', { exact: true }).first().fill('Hello {{firstName}}');
    await page.getByLabel('Subject').press('Enter');
    await page.getByRole('status').filter({ hasText: 'Saved' }).waitFor();
    const read = await client.get<{ template: { text: string } }>(`/web-setup/templates/${templateId}`);
    expect(read.data.template.text).toBe('Hello {{firstName}}');
    await page.getByLabel('Subject').fill('{{{firstName}}} {{unsubscribe_url}}');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.locator('.outcome.bad', { hasText: 'subject' }).waitFor();
    await context.close();
  });

  it('restores an earlier version, which is saved like a change', async () => {
    const created = await client.post<{ template: { templateId: string } }>('/web-setup/templates', {
      name: 'Versions',
      html: `<p>First ${HOSTILE}</p>${FOOTER}`,
    });
    const { templateId: id } = created.data.template;
    await client.put(`/web-setup/templates/${id}`, { html: `<p>Second</p>${FOOTER}` });
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    await open.visit(window, `templates/${id}`, client);
    await page.getByText('Earlier versions').press('Enter');
    await page.getByRole('button', { name: 'Restore version 1' }).press('Enter');
    await page.getByText('Version 1 is in the editor').waitFor();
    await page.frameLocator('iframe').getByText('First').waitFor();
    const read = () => client.get<{ template: { html: string } }>(`/web-setup/templates/${id}`);
    expect((await read()).data.template.html).toContain('Second');
    await page.getByRole('button', { name: 'Save' }).press('Enter');
    await page.getByRole('button', { name: 'Restore version 2' }).waitFor();
    expect((await read()).data.template.html).toBe(`<p>First ${HOSTILE}</p>${FOOTER}`);
    await context.close();
  });

  it('shows the warnings about a new template after its creation', async () => {
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    await open.visit(window, 'templates/new', client);
    await page.getByRole('button', { name: 'Your own HTML' }).click();
    await page.getByLabel('Name').fill('Without a footer');
    const code = page.getByRole('textbox', { name: 'HTML' });
    await code.focus();
    await page.keyboard.press('ControlOrMeta+A');
    await page.keyboard.insertText('<p>Hello</p>');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('heading', { level: 1, name: 'Without a footer' }).waitFor();
    await page.locator('.outcome', { hasText: /Saved\..*company_address_html/ }).waitFor();
    await page.reload();
    await page.getByRole('heading', { level: 1, name: 'Without a footer' }).waitFor();
    await code.waitFor();
    expect((await page.locator('.outcome').allTextContents()).join(' ')).not.toContain('Saved');
    await context.close();
  });

  it('asks before unsaved changes are discarded, by a link, the account or the back button', async () => {
    await daemon.account('Other');
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    await open.visit(window, 'templates', client);
    await page.getByRole('link', { name: HOSTILE, exact: true }).click();
    const subject = page.getByLabel('Subject');
    await subject.fill('Not saved');
    let leave = false;
    const asked = answerQuestions(window, () => leave);
    const address = page.url();
    await page.getByRole('link', { name: 'Groups', exact: true }).click();
    await expect.poll(() => asked.length).toBe(1);
    await page.evaluate('history.back()');
    await expect.poll(() => asked.length).toBe(2);
    await expect.poll(() => page.url()).toBe(address);
    await chooseAccount(page, 'Other');
    await expect.poll(() => asked.length).toBe(3);
    expect(page.url()).toContain(client.accountId);
    // Another view of the preview does not leave the page.
    await page.getByLabel('Phone').check();
    await expect.poll(() => page.url()).toContain('view=phone');
    expect(await subject.inputValue()).toBe('Not saved');
    leave = true;
    await page.getByRole('link', { name: 'Groups', exact: true }).click();
    await page.getByRole('heading', { level: 1, name: 'Groups' }).waitFor();
    expect(asked).toEqual(Array(4).fill('Leave without saving the changes to the template?'));
    await page.getByRole('link', { name: 'Templates', exact: true }).click();
    await page.getByRole('heading', { level: 1, name: 'Templates' }).waitFor();
    expect(asked).toHaveLength(4);
    await context.close();
  });

  it('deletes a template unless it is taken back; a viewer changes nothing', async () => {
    const created = await client.post<{ template: { templateId: string } }>('/web-setup/templates', {
      name: 'Old',
      html: FOOTER,
    });
    const path = `templates/${created.data.template.templateId}`;
    const viewer = await open.member(client, 'viewer', DESKTOP);
    await open.visit(viewer, path, client);
    await viewer.page.getByText('Your role in this account does not permit this.').waitFor();
    expect(await viewer.page.getByRole('button', { name: /Save|Delete/ }).count()).toBe(0);
    await viewer.context.close();
    const { page, context } = await open.operator(DESKTOP);
    await page.goto(`${daemon.consoleUrl}/console/${path}?account=${client.accountId}`);
    await page.getByRole('button', { name: /^Actions for / }).click();
    await page.getByRole('button', { name: 'Delete the template' }).click();
    await page.getByRole('heading', { level: 1, name: 'Templates' }).waitFor();
    // A pointer over the toast would hold it.
    await page.getByRole('button', { name: 'Undo' }).press('Enter');
    await page.getByRole('link', { name: 'Old', exact: true }).click();
    await page.getByRole('button', { name: /^Actions for / }).click();
    await page.getByRole('button', { name: 'Delete the template' }).click();
    await page.getByRole('heading', { level: 1, name: 'Templates' }).waitFor();
    await expect.poll(async () => (await client.get(`/web-setup/${path}`)).status).toBe(404);
    expect(await page.getByRole('link', { name: 'Old', exact: true }).count()).toBe(0);
    await context.close();
  });

  it('shows thumbnails of the templates in view, a bounded number at a time, or a list', async () => {
    const many = await daemon.account('Many templates');
    const html = (name: string) => `<h1>${name}</h1>${FOOTER}`;
    for (let number = 0; number < 45; number++)
      await many.post('/web-setup/templates', { name: `Number ${number}`, html: html(`Title ${number}`) });
    const window = await open.operator(DESKTOP);
    const { page, context } = window;
    let storing = 0;
    let most = 0;
    await page.route('**/console/previews', async (route) => {
      most = Math.max(most, ++storing);
      await route.continue();
    });
    page.on('response', (response) => {
      if (response.url().endsWith('/console/previews')) storing--;
    });
    await open.visit(window, 'templates', many);
    await page.frameLocator('.gallery li:first-child iframe').getByText('Title 44').waitFor();
    // Those far below are not rendered until they are scrolled into view.
    expect(await page.locator('.gallery iframe').count()).toBeLessThan(30);
    const last = page.locator('.gallery li', { hasText: 'Number 0' }).last();
    await last.scrollIntoViewIfNeeded();
    await last.frameLocator('iframe').getByText('Title 0').waitFor();
    await expect.poll(() => page.locator('.gallery li:first-child iframe').count()).toBe(0);
    expect(most).toBeLessThanOrEqual(3);
    await page.getByRole('link', { name: 'List', exact: true }).click();
    await page.getByRole('row', { name: /^Number 44/ }).waitFor();
    // The choice is remembered.
    await open.visit(window, 'templates', many);
    await page.getByRole('row', { name: /^Number 44/ }).waitFor();
    await page.getByRole('link', { name: 'Grid', exact: true }).press('Enter');
    await page.getByRole('link', { name: 'Number 44' }).click();
    await page.getByRole('heading', { level: 1, name: 'Number 44' }).waitFor();
    await context.close();
  });
});

it('has no finding of axe-core on a phone and a desktop, light and dark', async () => {
  // The code scrolls.
  const created = await client.post<{ template: { templateId: string } }>('/web-setup/templates', {
    name: 'Tall',
    html: `${'<p>Hello</p>\n'.repeat(100)}${FOOTER}`,
  });
  const tall = created.data.template.templateId;
  const stored = await client.post<{ partial: { partialId: string } }>('/web-setup/partials', {
    name: 'header',
    html: '<h1>{{ shop | default: "Example Shop" }}</h1>',
  });
  await open.examine(
    {
      partials: 'templates/partials',
      partial: `templates/partials/${stored.data.partial.partialId}`,
      templates: 'templates',
      'templates-list': 'templates?view=list',
      template: `templates/${templateId}`,
      tall: `templates/${tall}`,
    },
    client,
  );
});

/** The brightness of the last pixel of a picture, from 0 to 255. */
function brightness(page: Page, picture: Buffer): Promise<number> {
  return page.evaluate(`new Promise((resolve) => {
    const image = new Image();
    image.onload = () => {
      const canvas = document.createElement('canvas');
      canvas.width = canvas.height = 1;
      const context = canvas.getContext('2d');
      context.drawImage(image, 10 - image.width, 10 - image.height);
      resolve(context.getImageData(0, 0, 1, 1).data[0]);
    };
    image.src = 'data:image/png;base64,${picture.toString('base64')}';
  })`);
}
