import { mkdirSync } from 'node:fs';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { findBrowser } from './missing-parts.ts';

/**
 * A real browser, Debian's own Chromium, that can reach this machine and nothing else: other names do not
 * exist for it, and what it would have asked them is written down.
 */
export interface TestBrowser {
  /** A window of a size; nothing is shared with any other. */
  open(size: WindowSize, options?: { script?: boolean; dark?: boolean }): Promise<Window>;
  close(): Promise<void>;
}

export interface WindowSize {
  width: number;
  height: number;
}

export const PHONE: WindowSize = { width: 360, height: 640 };
export const DESKTOP: WindowSize = { width: 1280, height: 800 };

export interface Window {
  page: Page;
  context: BrowserContext;
  /** Every URL it asked for, in order. */
  requests: string[];
  /** What its console said. */
  complaints: string[];
  /** Keeps a picture of the whole page under test/artefacts. */
  picture(name: string): Promise<void>;
}

const ARTEFACTS = new URL('../artefacts/', import.meta.url).pathname;

/** `hosts` are names that lead to 127.0.0.1 in this browser. */
export async function startBrowser(hosts: readonly string[] = []): Promise<TestBrowser> {
  const browser: Browser = await chromium.launch({
    executablePath: findBrowser() ?? 'chromium',
    args: [
      `--host-resolver-rules=${[...hosts.map((host) => `MAP ${host} 127.0.0.1`), 'MAP * ~NOTFOUND', 'EXCLUDE 127.0.0.1'].join(', ')}`,
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-domain-reliability',
      '--no-proxy-server',
      // Tests run as root in a container, where the sandbox cannot be had.
      ...(process.getuid?.() === 0 ? ['--no-sandbox'] : []),
    ],
  });

  return {
    open: async (size, { script = true, dark = false } = {}) => {
      const context = await browser.newContext({
        viewport: size,
        javaScriptEnabled: script,
        colorScheme: dark ? 'dark' : 'light',
        hasTouch: size === PHONE,
        isMobile: size === PHONE,
        locale: 'en-GB',
      });
      const page = await context.newPage();
      const requests: string[] = [];
      const complaints: string[] = [];
      context.on('request', (asked) => requests.push(asked.url()));
      page.on('console', (message) => {
        if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
      });
      return {
        page,
        context,
        requests,
        complaints,
        picture: async (name) => {
          mkdirSync(ARTEFACTS, { recursive: true });
          await page.screenshot({ path: `${ARTEFACTS}${name}.png`, fullPage: true });
        },
      };
    },
    close: () => browser.close(),
  };
}
