// Long: builds the site of the documents with its own generator, which takes 15 s of CPU time.
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { extname, join, normalize } from 'node:path';
import { promisify } from 'node:util';
import { parseDocument } from 'htmlparser2';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PHONE, startBrowser, type TestBrowser } from '../support/browser.ts';
import { DOCS_SITE, requirePrograms } from '../support/required-programs.ts';

/* The site that `npm run docs` builds: its pages, their links, and the search in a browser. */
const required = requirePrograms('docs-site', 'chromium');
const ROOT = new URL('../../', import.meta.url).pathname;
const run = promisify(execFile);
const DESKTOP = { width: 1440, height: 900 };
const TYPES: Record<string, string> = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css' };

interface Element {
  name?: string;
  attribs?: Record<string, string>;
  children?: Element[];
}

interface Page {
  ids: Set<string>;
  /** Values of `href` and `src`, with the element. */
  links: { element: string; target: string }[];
}

describe.skipIf(required.missing)(`the site of the documents${required.reason}`, () => {
  let dir: string;
  let site: string;
  let browser: TestBrowser;
  let server: Server;
  let origin: string;
  /** By path, such as `/queue.html`. */
  const pages = new Map<string, Page>();

  beforeAll(async () => {
    dir = mkdtempSync(join(tmpdir(), 'postrider-site-'));
    site = join(dir, 'site');
    const api = join(dir, 'api');
    const writeApi = ['--import', 'tsx', 'test/http/openapi/write-api-docs.ts', api];
    await run(process.execPath, writeApi, { cwd: ROOT });
    // Rejects for a link to a page that does not exist.
    await run(process.execPath, ['build.mjs', '--api', api, '--out', site], { cwd: DOCS_SITE });
    for (const name of readdirSync(site, { recursive: true, encoding: 'utf8' }))
      if (name.endsWith('.html')) pages.set(`/${name}`, parsePage(readFileSync(join(site, name), 'utf8')));
    server = createServer(({ url = '/' }, response) => {
      const file = join(site, fileOf(new URL(url, 'http://site').pathname));
      if (!existsSync(file)) return response.writeHead(404).end();
      response.setHeader('Content-Type', TYPES[extname(file)] ?? 'application/octet-stream');
      return response.end(readFileSync(file));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    browser = await startBrowser();
  });

  afterAll(async () => {
    await browser?.close();
    server?.close();
    rmSync(dir, { recursive: true, force: true });
  });

  it('has every document, in the order of docs/README.md', () => {
    const list = readFileSync(join(ROOT, 'docs/README.md'), 'utf8');
    const names = readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' });
    const documents = names.filter((name) => name.endsWith('.md') && !name.startsWith('site/'));
    const entries = sidebarOf(readFileSync(join(site, 'index.html'), 'utf8'));
    for (const document of documents) {
      const path = document === 'README.md' ? '/index.html' : `/${document.replace(/md$/, 'html')}`;
      expect(pages.has(path), path).toBe(true);
      if (document !== 'README.md') expect(entries).toContain(path);
    }
    const [, table = ''] = list.split('## All pages');
    const inOrder = [...table.matchAll(/\]\(([^)#]+)\.md/g)].map(([, name = '']) =>
      normalize(`/${name}.html`),
    );
    expect(entries.filter((entry) => inOrder.includes(entry))).toEqual([...new Set(inOrder)]);
    expect(entries).toEqual([...new Set(entries)]);
  });

  it('has no link to a page, a section or a file that does not exist', () => {
    const broken: string[] = [];
    for (const [path, { links }] of pages)
      for (const { target } of links) {
        if (!isInternal(target)) continue;
        const { pathname, hash } = new URL(target, `http://site${path}`);
        const file = fileOf(decodeURIComponent(pathname));
        const id = decodeURIComponent(hash.slice(1));
        const page = pages.get(file);
        if (!existsSync(join(site, file))) broken.push(`${path}: ${target}`);
        else if (id !== '' && page !== undefined && !page.ids.has(id)) broken.push(`${path}: ${target}`);
      }
    expect(broken).toEqual([]);
    expect(pages.has('/api/index.html')).toBe(true);
  });

  it('loads nothing from elsewhere', () => {
    const loaded = [...pages].flatMap(([path, { links }]) =>
      links
        .filter(
          ({ element, target }) => element !== 'a' && !isInternal(target) && !target.startsWith('data:'),
        )
        .map(({ target }) => `${path}: ${target}`),
    );
    expect(loaded).toEqual([]);
    const assets = readdirSync(join(site, 'assets'), { recursive: true, encoding: 'utf8' });
    for (const name of assets.filter((each) => each.endsWith('.css')))
      expect(readFileSync(join(site, 'assets', name), 'utf8')).not.toMatch(/url\(["']?(https?:)?\/\//);
  });

  it('finds a page by its words', async () => {
    const { page, requests, consoleErrors } = await browser.open(DESKTOP);
    await page.goto(`${origin}/`);
    await page.getByRole('button', { name: 'Search' }).click();
    await page.locator('#localsearch-input').fill('warm-up');
    await page.locator('#localsearch-list a').first().click();
    await page.waitForURL((url) => url.pathname !== '/');
    expect(await page.locator('main').innerText()).toMatch(/warm-up/i);
    expect(requests.filter((url) => !url.startsWith(origin))).toEqual([]);
    expect(consoleErrors).toEqual([]);
  });

  it.each([
    ['a desktop', DESKTOP, false],
    ['a desktop, dark', DESKTOP, true],
    ['a phone', PHONE, false],
    ['a phone, dark', PHONE, true],
  ] as const)('fits %s', async (name, size, dark) => {
    const window = await browser.open(size, { dark });
    for (const path of ['/', '/first-message', '/monitoring']) {
      await window.page.goto(`${origin}${path}`);
      await window.page.locator('main h1').waitFor();
      expect(await window.page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBe(0);
      await window.screenshot(`site-${name.replace(/\W+/g, '-')}-${path.slice(1) || 'start'}`);
    }
  });

  /** The file of an address: pages also have one without `.html`. */
  function fileOf(path: string): string {
    if (path.endsWith('/')) return `${path}index.html`;
    return existsSync(join(site, path)) ? path : `${path}.html`;
  }
});

function isInternal(target: string): boolean {
  return !/^([a-z]+:|\/\/)/.test(target);
}

function parsePage(html: string): Page {
  const page: Page = { ids: new Set(), links: [] };
  const visit = (element: Element) => {
    const { id, href, src } = element.attribs ?? {};
    if (id !== undefined) page.ids.add(id);
    for (const target of [href, src])
      if (target !== undefined) page.links.push({ element: element.name ?? '', target });
    for (const child of element.children ?? []) visit(child);
  };
  visit(parseDocument(html) as Element);
  return page;
}

/** The addresses of the sidebar of a page, in their order. */
function sidebarOf(html: string): string[] {
  const [, sidebar = ''] = /id="VPSidebarNav"([\s\S]*?)<\/nav>/.exec(html) ?? [];
  return parsePage(sidebar).links.map(({ target }) => target);
}
