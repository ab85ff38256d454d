// Long: edits a mail as blocks in Chromium.
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Design } from '../../src/mail/blocks/design.ts';
import type { ApiClient } from '../support/api-client.ts';
import { DESKTOP, PHONE, startBrowser, type TestBrowser } from '../support/browser.ts';
import { JPEG } from '../support/images.ts';
import { type InProcess, startInProcess } from '../support/in-process-daemon.ts';
import { answerQuestions, findings, type OpenConsole, openConsole } from './open-console.ts';

/* The editor of blocks of the page of a template, in Chromium over a daemon in this process. */
let daemon: InProcess;
let browser: TestBrowser;
let open: OpenConsole;
let client: ApiClient;

const LARGE = { width: 1440, height: 900 };

const THEME = {
  accent: '#2454d6',
  background: '#f1f3f7',
  text: '#1d2433',
  width: 600,
  font: 'system',
} as const;
const paragraph = (text: string) => ({
  type: 'doc' as const,
  content: [{ type: 'paragraph' as const, content: [{ type: 'text' as const, text }] }],
});
const SAMPLE: Design = {
  version: 1,
  theme: THEME,
  blocks: [
    { id: 'title', type: 'heading', level: 1, content: [{ type: 'text', text: 'News' }] },
    { id: 'intro', type: 'text', content: paragraph('First') },
    {
      id: 'pair',
      type: 'columns',
      columns: [
        { blocks: [{ id: 'one', type: 'text', content: paragraph('One') }] },
        { blocks: [{ id: 'two', type: 'text', content: paragraph('Two') }] },
      ],
    },
    { id: 'more', type: 'button', text: 'More', href: 'https://shop.example/' },
    { id: 'end', type: 'footer' },
  ],
};

beforeAll(async () => {
  daemon = await startInProcess({ 'console.listen': '127.0.0.1:0' });
  client = await daemon.account('Shop');
  const contact = await client.post('/web-setup/contacts', {
    email: 'ann@example.com',
    consentMethod: 'web_form',
    customFields: { city: 'Paris' },
  });
  expect(contact.status).toBe(201);
  browser = await startBrowser(['localhost']);
  open = openConsole(daemon, browser);
});
afterAll(async () => {
  await browser?.close();
  await daemon?.stop();
});

async function create(name: string, content: { design: Design } | { html: string }): Promise<string> {
  const { data } = await client.post<{ template: { templateId: string } }>('/web-setup/templates', {
    name,
    ...content,
  });
  return data.template.templateId;
}

async function stored(templateId: string): Promise<{ html: string; design?: Design }> {
  const { data } = await client.get<{ template: { html: string; design?: Design } }>(
    `/web-setup/templates/${templateId}`,
  );
  return data.template;
}

async function storedByName(name: string): Promise<{ html: string; design?: Design }> {
  const { data } = await client.get<{ templates: { templateId: string; name: string }[] }>(
    '/web-setup/templates',
  );
  return stored(data.templates.find((each) => each.name === name)?.templateId ?? '');
}

/** The types of blocks, with those in columns: `text columns[image|button] footer`. */
function typesOf({ blocks }: Design): string {
  return blocks
    .map((block) =>
      block.type === 'columns'
        ? `columns[${block.columns.map((column) => column.blocks.map(({ type }) => type).join(',')).join('|')}]`
        : block.type,
    )
    .join(' ');
}

const status = (page: Page) => page.locator('.block-editor > [role="status"]');
const save = async (page: Page) => {
  await page.getByRole('button', { name: 'Save' }).press('Enter');
  await page.locator('.outcome', { hasText: 'Saved' }).waitFor();
};

const NEWSLETTER = 'heading text image columns[heading|text] button social footer';

/** What both newsletters are, whatever they were made with. */
async function expectNewsletter(page: Page, name: string): Promise<void> {
  const { design, html } = await storedByName(name);
  if (design === undefined) throw new Error('the template has no design');
  expect(typesOf(design)).toBe(NEWSLETTER);
  const [heading, text, image, columns, button, social] = design.blocks;
  expect(heading).toMatchObject({ content: [{ type: 'text', text: 'The winter roast' }] });
  expect(text).toMatchObject({
    content: {
      content: [
        {
          content: [
            { text: 'Hello ' },
            { type: 'variable', attrs: { name: 'firstName', default: 'friend' } },
            { text: ', read ' },
            { text: 'our story', marks: [{ type: 'link', attrs: { href: 'https://shop.example/story' } }] },
          ],
        },
      ],
    },
  });
  expect(image).toMatchObject({ src: 'https://shop.example/cup.png', alt: 'A cup of coffee' });
  expect(columns).toMatchObject({
    columns: [
      { blocks: [{ content: [{ text: 'Filter' }] }] },
      { blocks: [{ content: paragraph('Espresso') }] },
    ],
  });
  expect(button).toMatchObject({ text: 'Order now', href: 'https://shop.example/' });
  expect(social).toMatchObject({ links: [{ network: 'mastodon', href: 'https://social.example/@shop' }] });
  for (const part of [
    'The winter roast',
    '{{firstName|friend}}',
    'https://shop.example/story',
    'A cup of coffee',
  ])
    expect(html).toContain(part);
  // Opened again, it is the same.
  const before = await page.locator('.canvas').innerText();
  await page.reload();
  await page.locator('.canvas').waitFor();
  expect(await page.locator('.canvas').innerText()).toBe(before);
  await page.getByRole('tab', { name: 'Preview' }).click();
  await page.frameLocator('.preview iframe').getByRole('heading', { name: 'The winter roast' }).waitFor();
  await page.frameLocator('.preview iframe').getByText('Shop Ltd').waitFor();
}

describe('A newsletter', () => {
  it('is made with the mouse', async () => {
    const window = await open.member(client, 'author', LARGE);
    const { page, context, consoleErrors } = window;
    await open.visit(window, 'templates/new', client);
    await page.getByRole('button', { name: 'Empty' }).click();
    await page.getByLabel('Name').fill('By mouse');
    const blocks = page.locator('.paper > .block-list > .block');
    await blocks.nth(0).getByRole('textbox').click();
    await page.keyboard.type('The winter roast');
    await blocks.nth(1).getByRole('textbox').click();
    await page.keyboard.type('Hello ');
    await page.getByRole('button', { name: 'Insert a variable' }).click();
    await page.getByRole('list', { name: 'Custom fields' }).getByRole('button', { name: 'city' }).waitFor();
    await page.getByRole('button', { name: 'First name' }).click();
    await page.locator('.pill').click();
    await page.getByLabel('If firstName is empty').fill('friend');
    await page.locator('.prose p').click({ position: { x: 500, y: 12 } });
    await page.keyboard.type(', read our story');
    for (let count = 0; count < 'our story'.length; count++) await page.keyboard.press('Shift+ArrowLeft');
    await page.getByRole('button', { name: 'Link', exact: true }).click();
    await page.getByLabel('Link to').fill('shop.example/story');
    await page.getByRole('button', { name: 'Apply' }).click();
    const add = async (name: string) => {
      await page.getByRole('button', { name: 'Add a block', exact: true }).click();
      await page.getByRole('option', { name }).click();
    };
    await add('Button');
    const buttonText = page.getByRole('textbox', { name: 'Button', exact: true });
    await buttonText.click();
    await page.keyboard.press('ControlOrMeta+A');
    await page.keyboard.type('Order now');
    await page.getByLabel('Link to').fill('https://shop.example/');
    await add('Image');
    await page.getByLabel('Address of the image').fill('https://shop.example/cup.png');
    // An image needs a description.
    await page.getByRole('button', { name: 'Save' }).click();
    await page.locator('.outcome.bad', { hasText: '1 block is not finished' }).waitFor();
    await page.getByLabel('Description').fill('A cup of coffee');
    await add('Columns');
    const slots = page.getByRole('button', { name: /^Add a block to column/ });
    await slots.first().click();
    await page.getByRole('option', { name: 'Heading' }).click();
    await page.keyboard.type('Filter');
    await slots.first().click();
    await page.getByRole('option', { name: 'Text' }).click();
    await page.keyboard.type('Espresso');
    await add('Social links');
    await page.getByLabel('Network').selectOption('Mastodon');
    await page.getByLabel('Link to').fill('https://social.example/@shop');
    // The button is above the image: it is dragged to where it belongs.
    const grip = blocks.nth(2).locator('> .grip');
    await blocks.nth(2).hover();
    await drag(page, grip, blocks.nth(5));
    await save(page);
    await expectNewsletter(page, 'By mouse');
    expect(consoleErrors.filter((line) => !line.includes('/console/previews/'))).toEqual([]);
    await context.close();
  });

  it('is made with the keyboard alone', async () => {
    const window = await open.member(client, 'author', LARGE);
    const { page, context } = window;
    const keys = page.keyboard;
    const focused = () => page.evaluate<string>('document.activeElement.getAttribute("aria-label") ?? ""');
    await open.visit(window, 'templates/new', client);
    await page.getByRole('button', { name: 'Empty' }).press('Enter');
    await page.getByLabel('Name').focus();
    await keys.type('By keyboard');
    // The first block is reached by Tab.
    for (let count = 0; count < 40 && (await focused()) !== 'Heading, block'; count++)
      await keys.press('Tab');
    expect(await focused()).toBe('Heading, block');
    await keys.press('Enter');
    await keys.type('The winter roast');
    await keys.press('Escape');
    await keys.press('ArrowDown');
    expect(await focused()).toBe('Text, block');
    await keys.press('Enter');
    await keys.type('Hello {{firstName|friend}}, read our story');
    for (let count = 0; count < 'our story'.length; count++) await keys.press('Shift+ArrowLeft');
    await keys.press('ControlOrMeta+k');
    await expect.poll(() => page.evaluate('document.activeElement.placeholder')).toBe('https://');
    await keys.type('shop.example/story');
    await keys.press('Enter');
    await expect.poll(focused).toBe('Text');
    await keys.press('Escape');
    // A block behind this one, chosen by its name.
    await keys.press('/');
    await keys.type('text');
    await keys.press('Enter');
    await expect.poll(focused).toBe('Text');
    // A slash in an empty text replaces it.
    await keys.type('/');
    await keys.type('butt');
    await keys.press('Enter');
    await expect.poll(focused).toBe('Button');
    await keys.press('ControlOrMeta+A');
    await keys.type('Order now');
    await keys.press('Escape');
    const field = async (label: string, text: string) => {
      for (let count = 0; count < 60; count++) {
        if ((await page.evaluate('document.activeElement.labels?.[0]?.textContent')) === label) break;
        await keys.press('Tab');
      }
      await keys.press('ControlOrMeta+A');
      await keys.type(text);
    };
    const back = async (name: string) => {
      await keys.press('Escape');
      await expect.poll(focused).toBe(name);
    };
    await keys.press('Alt+Enter');
    await field('Link to', 'https://shop.example/');
    await back('Button, block');
    await keys.press('ArrowUp');
    await keys.press('/');
    await keys.type('image');
    await keys.press('Enter');
    await expect.poll(focused).toBe('Image, block');
    // Enter goes to the settings of a block without text.
    await keys.press('Enter');
    await field('Address of the image', 'https://shop.example/cup.png');
    await field('Description', 'A cup of coffee');
    await back('Image, block');
    await keys.press('/');
    await keys.type('columns');
    await keys.press('Enter');
    await expect.poll(focused).toBe('Columns, block');
    await keys.press('/');
    await keys.type('heading');
    await keys.press('Enter');
    await keys.type('Filter');
    await keys.press('Escape');
    // Into the first column from behind it.
    await keys.press('Alt+ArrowRight');
    await status(page).getByText('Heading moved to position 1 of column 1').waitFor();
    await keys.press('/');
    await keys.type('text');
    await keys.press('Enter');
    await keys.type('Espresso');
    await keys.press('Escape');
    await keys.press('Alt+ArrowRight');
    await status(page).getByText('Text moved to position 1 of column 2').waitFor();
    await keys.press('ArrowDown');
    expect(await focused()).toBe('Button, block');
    await keys.press('/');
    await keys.type('social');
    await keys.press('Enter');
    await keys.press('Enter');
    await expect.poll(focused).toBe('Network');
    await keys.type('Mastodon');
    await keys.press('Tab');
    await keys.type('https://social.example/@shop');
    await save(page);
    await expectNewsletter(page, 'By keyboard');
    await context.close();
  });
});

async function drag(page: Page, grip: ReturnType<Page['locator']>, behind: ReturnType<Page['locator']>) {
  await behind.scrollIntoViewIfNeeded();
  const to = await behind.boundingBox();
  const from = await grip.boundingBox();
  if (from === null || to === null) throw new Error('nothing to drag');
  await page.mouse.move(from.x + 10, from.y + 10);
  await page.mouse.down();
  await page.mouse.move(from.x + 20, from.y + 60, { steps: 3 });
  await page.mouse.move(to.x + 60, to.y - 4, { steps: 5 });
  await page.locator('.drop-line').waitFor();
  await page.mouse.up();
}

describe('The blocks of a template', () => {
  it('are moved, copied, deleted and brought back, and the footer stays', async () => {
    const templateId = await create('Moves', { design: SAMPLE });
    const window = await open.member(client, 'author', LARGE);
    const { page, context } = window;
    await open.visit(window, `templates/${templateId}`, client);
    const keys = page.keyboard;
    await page.locator('[data-grip="title"]').focus();
    await keys.press('Alt+ArrowDown');
    await status(page).getByText('Heading moved to position 2').waitFor();
    await keys.press('ControlOrMeta+d');
    await status(page).getByText('Heading duplicated').waitFor();
    await page.locator('[data-grip="end"]').focus();
    await keys.press('Delete');
    await status(page).getByText('Every mail has a footer').waitFor();
    await page.locator('[data-grip="more"]').focus();
    await keys.press('Delete');
    await save(page);
    expect(typesOf((await stored(templateId)).design ?? SAMPLE)).toBe(
      'text heading heading columns[text|text] footer',
    );
    // A text and blocks have one history.
    await page.locator('[data-item="one"] .prose').click();
    await keys.press('End');
    await keys.type(' more');
    for (let count = 0; count < 4; count++) await keys.press('ControlOrMeta+z');
    await page.locator('[data-item="one"] .prose', { hasText: /^One$/ }).waitFor();
    await save(page);
    expect(typesOf((await stored(templateId)).design ?? SAMPLE)).toBe(typesOf(SAMPLE));
    await page.locator('[data-grip="title"]').focus();
    await keys.press('ControlOrMeta+Shift+z');
    await save(page);
    expect(typesOf((await stored(templateId)).design ?? SAMPLE)).toBe(
      'text heading columns[text|text] button footer',
    );
    await context.close();
  });

  it('become HTML after a question, and HTML becomes blocks after another one', async () => {
    const templateId = await create('HTML', { design: SAMPLE });
    const window = await open.member(client, 'author', DESKTOP);
    const { page, context } = window;
    const asked = answerQuestions(window, () => true);
    await open.visit(window, `templates/${templateId}`, client);
    await page.getByRole('tab', { name: 'HTML' }).click();
    const code = page.getByRole('textbox', { name: 'HTML' });
    await code.waitFor();
    expect(await code.getAttribute('aria-readonly')).toBe('true');
    await page.getByRole('button', { name: 'Edit as HTML' }).click();
    const question = page.getByRole('dialog', { name: 'Edit as HTML' });
    await question.getByText("The blocks can't be edited any more").waitFor();
    await question.getByRole('button', { name: 'Go back' }).click();
    expect(await code.getAttribute('aria-readonly')).toBe('true');
    await page.getByRole('button', { name: 'Edit as HTML' }).click();
    await question.getByRole('button', { name: 'Edit as HTML' }).click();
    await expect.poll(() => code.getAttribute('aria-readonly')).not.toBe('true');
    await save(page);
    const asHtml = await stored(templateId);
    expect(asHtml.design).toBeUndefined();
    expect(asHtml.html).toContain('News');
    await page.getByRole('tab', { name: 'Blocks' }).click();
    await page.getByText('This template is written as HTML').waitFor();
    await page.getByRole('button', { name: 'Use blocks' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Use blocks' }).click();
    await page.getByRole('button', { name: 'Empty' }).click();
    await page.locator('.canvas').waitFor();
    await save(page);
    expect(typesOf((await stored(templateId)).design ?? SAMPLE)).toBe('heading text footer');
    expect(asked).toEqual([]);
    await context.close();
  });

  it('are not changed by a viewer, and not lost without a question', async () => {
    const templateId = await create('Viewer', { design: SAMPLE });
    const viewer = await open.member(client, 'viewer', DESKTOP);
    await open.visit(viewer, `templates/${templateId}`, client);
    await viewer.page.locator('[data-item="title"]').click();
    await viewer.page.keyboard.type('x');
    expect(await viewer.page.getByRole('toolbar').count()).toBe(0);
    expect(await viewer.page.locator('[data-item="title"]').innerText()).toBe('News');
    await viewer.context.close();
    const window = await open.member(client, 'author', DESKTOP);
    await open.visit(window, `templates/${templateId}`, client);
    await window.page.locator('[data-item="title"] .prose').click();
    await window.page.keyboard.type('x');
    const asked = answerQuestions(window, () => false);
    await window.page.getByRole('link', { name: 'Groups', exact: true }).click();
    await expect.poll(() => asked.length).toBe(1);
    await window.context.close();
  });

  it('take what is pasted without its styles', async () => {
    const templateId = await create('Paste', { design: SAMPLE });
    const window = await open.member(client, 'author', DESKTOP);
    const { page, context, consoleErrors } = window;
    await open.visit(window, `templates/${templateId}`, client);
    await page.locator('[data-item="intro"] .prose').click();
    await page.keyboard.press('ControlOrMeta+A');
    await page.evaluate(`(() => {
      const data = new DataTransfer();
      data.setData('text/html', '<p style="color: red" onclick="alert(1)"><span style="font-weight:700">Bold</span> {{city}}<img src="https://elsewhere.example/x.png" onerror="document.title=1"></p><ul><li>Item</li></ul>');
      document.activeElement.dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }));
    })()`);
    await page.locator('[data-item="intro"] strong', { hasText: 'Bold' }).waitFor();
    await save(page);
    const text = (await stored(templateId)).design?.blocks.find(({ id }) => id === 'intro');
    expect(text).toMatchObject({
      content: {
        content: [
          {
            type: 'paragraph',
            content: [
              { type: 'text', text: 'Bold', marks: [{ type: 'bold' }] },
              { type: 'text', text: ' ' },
              { type: 'variable', attrs: { name: 'city' } },
            ],
          },
          { type: 'bulletList' },
        ],
      },
    });
    expect(consoleErrors).toEqual([]);
    await context.close();
  });

  it('show images of the account, which are uploaded where they are chosen', async () => {
    const templateId = await create('Image', { design: SAMPLE });
    const window = await open.member(client, 'author', LARGE);
    const { page, context } = window;
    await open.visit(window, `templates/${templateId}`, client);
    await page.locator('[data-grip="intro"]').press('/');
    await page.keyboard.type('image');
    await page.keyboard.press('Enter');
    await page.locator('.blocks-settings').getByRole('button', { name: 'Choose an image' }).click();
    await page
      .locator('.drawer[open] input[type=file]')
      .setInputFiles({ name: 'photo.jpg', mimeType: 'image/jpeg', buffer: JPEG });
    await expect
      .poll(() => page.evaluate<number>("document.querySelector('.view-image img')?.naturalWidth ?? 0"))
      .toBeGreaterThan(0);
    await page.getByLabel('Description').fill('A photo');
    await save(page);
    const block = (await stored(templateId)).design?.blocks.find(({ type }) => type === 'image');
    const { data } = await client.get<{ media: { url: string }[] }>('/web-setup/media');
    expect(block).toMatchObject({ src: data.media[0]?.url, alt: 'A photo' });
    await context.close();
  });

  it('are finished when an image is marked as decoration, which an empty description is not', async () => {
    const templateId = await create('Decoration', { design: SAMPLE });
    const window = await open.member(client, 'author', LARGE);
    const { page, context } = window;
    await open.visit(window, `templates/${templateId}`, client);
    await page.locator('[data-grip="intro"]').press('/');
    await page.keyboard.type('image');
    await page.keyboard.press('Enter');
    await page.getByLabel('Address of the image').fill('https://shop.example/cup.png');
    const decoration = page.getByRole('checkbox', { name: 'It only decorates' });
    await decoration.check();
    await save(page);
    await decoration.uncheck();
    const description = page.getByLabel('Description');
    await description.fill('A cup');
    await save(page);
    await page.reload();
    await page.locator('[data-item][data-type="image"]').click();
    await description.fill('');
    expect(await description.isEnabled()).toBe(true);
    expect(await decoration.isChecked()).toBe(false);
    await page.getByRole('button', { name: 'Save' }).click();
    await page.locator('.outcome.bad', { hasText: '1 block is not finished' }).waitFor();
    await context.close();
  });

  it('lose links of social networks one by one when these are undone', async () => {
    const social = {
      id: 'social',
      type: 'social' as const,
      links: [{ network: 'website' as const, href: 'https://shop.example/' }],
    };
    const templateId = await create('Links', { design: { ...SAMPLE, blocks: [social, ...SAMPLE.blocks] } });
    const window = await open.member(client, 'author', LARGE);
    const { page, context } = window;
    await open.visit(window, `templates/${templateId}`, client);
    await page.locator('[data-grip="social"]').focus();
    await page.evaluate(`(async () => {
      // Within the time in which changes of one field are undone together.
      for (let count = 0; count < 2; count++) {
        document.querySelector('.blocks-settings .settings-add').click();
        await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
      }
    })()`);
    const links = page.locator('.social-link');
    await expect.poll(() => links.count()).toBe(3);
    await page.locator('[data-grip="social"]').press('ControlOrMeta+z');
    await expect.poll(() => links.count()).toBe(2);
    await context.close();
  });

  it('have a sheet with settings on a phone', async () => {
    const templateId = await create('Phone', { design: SAMPLE });
    const window = await open.member(client, 'author', { ...PHONE, width: 390 });
    const { page, context } = window;
    await open.visit(window, `templates/${templateId}`, client);
    await page.locator('[data-item="more"]').click({ position: { x: 10, y: 10 } });
    expect(await page.getByLabel('Link to').isVisible()).toBe(false);
    await page.getByRole('button', { name: 'Settings', exact: true }).click();
    await page.getByRole('dialog', { name: 'Settings' }).getByLabel('Link to').fill('example.org');
    await page.getByRole('button', { name: 'Close' }).click();
    await save(page);
    const button = (await stored(templateId)).design?.blocks.find(({ id }) => id === 'more');
    expect(button).toMatchObject({ href: 'https://example.org' });
    await context.close();
  });

  it('have targets of 24 px, and no finding of axe-core with what they open', async () => {
    const templateId = await create('Examined', { design: SAMPLE });
    for (const dark of [false, true])
      for (const size of [LARGE, PHONE]) {
        const window = await open.member(client, 'author', size, { dark });
        const { page, context } = window;
        await open.visit(window, `templates/${templateId}`, client);
        await page.locator('[data-item="intro"] .prose').click();
        expect(await findings(window)).toEqual([]);
        const small =
          await page.evaluate(`[...document.querySelectorAll('.block-editor :is(button, select, input:not(.segment-input):not(.tick))')]
          .filter((each) => each.checkVisibility() && Math.min(each.offsetWidth, each.offsetHeight) < 24).map((each) => each.outerHTML)`);
        expect(small).toEqual([]);
        await page.getByRole('button', { name: 'Insert a variable' }).click();
        expect(await findings(window)).toEqual([]);
        await page.keyboard.press('Escape');
        await page.getByRole('button', { name: 'Add a block', exact: true }).click();
        expect(await findings(window)).toEqual([]);
        await page.keyboard.press('Escape');
        await context.close();
      }
    await open.examine({ blocks: `templates/${templateId}`, 'blocks-new': 'templates/new' }, client);
  });
});
