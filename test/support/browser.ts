import { mkdirSync } from 'node:fs';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { PATIENCE_MS } from './patience.ts';
import { findBrowser } from './required-programs.ts';

/**
 * A Chromium that reaches this machine only: other host names do not resolve in it, and requests to them are
 * recorded. The screenshots of the tests remain in test/artifacts/, which is not part of the repository; the test prints
 * where they are.
 */
export interface TestBrowser {
  /** Opens a window with a browser context that no other window shares. */
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
  /** Every requested URL, in order. */
  requests: string[];
  /** Errors and warnings of its console, with the URL that caused them. */
  consoleErrors: string[];
  /** Stores a screenshot of the whole page under test/artifacts. */
  screenshot(name: string): Promise<void>;
}

const ARTIFACTS = new URL('../artifacts/', import.meta.url).pathname;

/** `hosts` are names that resolve to 127.0.0.1 in this browser. */
export async function startBrowser(hosts: readonly string[] = []): Promise<TestBrowser> {
  let stored = 0;
  const browser: Browser = await chromium.launch({
    executablePath: findBrowser() ?? 'chromium',
    args: [
      `--host-resolver-rules=${[...hosts.map((host) => `MAP ${host} 127.0.0.1`), 'MAP * ~NOTFOUND', 'EXCLUDE 127.0.0.1'].join(', ')}`,
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-domain-reliability',
      '--no-proxy-server',
      // Chromium's sandbox does not run as root.
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
      // Shorter than the timeout of a test: a failure names the step.
      context.setDefaultTimeout(PATIENCE_MS);
      const page = await context.newPage();
      const requests: string[] = [];
      const consoleErrors: string[] = [];
      context.on('request', (sent) => requests.push(sent.url()));
      page.on('console', (message) => {
        if (['error', 'warning'].includes(message.type())) {
          const { url } = message.location();
          consoleErrors.push(url === '' ? message.text() : `${message.text()} (${url})`);
        }
      });
      return {
        page,
        context,
        requests,
        consoleErrors,
        screenshot: async (name) => {
          mkdirSync(ARTIFACTS, { recursive: true });
          await page.screenshot({ path: `${ARTIFACTS}${name}.png`, fullPage: true });
          stored++;
        },
      };
    },
    close: () => {
      if (stored > 0) console.info(`${stored} screenshots are in ${ARTIFACTS}`);
      return browser.close();
    },
  };
}
