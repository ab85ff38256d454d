import type { BrowserContext, Page } from 'playwright-core';
import type { TestBrowser } from '../../support/browser.ts';
import type { RunningDaemon } from '../../support/daemon.ts';

export interface SignedIn {
  page: Page;
  consoleUrl: string;
  /** The value of the header field `Cookie`. */
  cookie: string;
  /** The value of the header field `X-Postrider-Page-Token`. */
  pageToken: string;
}

const DESKTOP = { width: 1280, height: 800 };

/** Signs a new operator in, with the link that the command prints. */
export async function signInOperator(daemon: RunningDaemon, browser: TestBrowser): Promise<SignedIn> {
  const output = await daemon.cli('operator', 'create', '--email', 'ops@example.com', '--json');
  const { link } = JSON.parse(output) as { link: string };
  const { page, context } = await browser.open(DESKTOP);
  await page.goto(link);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('button', { name: 'Later' }).click();
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  const pageToken = await page.evaluate<string>("sessionStorage.getItem('postrider-page-token')");
  return { page, consoleUrl: new URL(link).origin, cookie: await cookieOf(context), pageToken };
}

async function cookieOf(context: BrowserContext): Promise<string> {
  return (await context.cookies()).map(({ name, value }) => `${name}=${value}`).join('; ');
}
