// Long: signs in at an identity provider in a browser.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { CLIENT, type OidcProvider, startOidcProvider } from '../http/console/oidc-provider.ts';
import type { ApiClient } from '../support/api-client.ts';
import { DESKTOP, PHONE, startBrowser, type TestBrowser, type Window } from '../support/browser.ts';
import { type InProcess, startInProcess } from '../support/in-process-daemon.ts';
import { findings, HOSTILE, type OpenConsole, openConsole, openPersonMenu } from './open-console.ts';

/* The sign-in with OpenID Connect, in Chromium, with a provider on another site than the console. */
let dir: string;
let provider: OidcProvider;
let daemon: InProcess;
let client: ApiClient;
let browser: TestBrowser;
let open: OpenConsole;

const LOCAL_PART = '"<img src=x onerror=document.title=1>"';
const EMAIL = `${LOCAL_PART}@example.com`;
/** The console stores the first 100 characters. */
const NAME = HOSTILE.slice(0, 100);

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'postrider-oidc-'));
  writeFileSync(join(dir, 'secret'), CLIENT.secret, { mode: 0o600 });
  provider = await startOidcProvider(Date.now);
  daemon = await startInProcess({
    'console.listen': '127.0.0.1:0',
    'console.oidc.issuer': provider.issuer,
    'console.oidc.clientId': CLIENT.id,
    'console.oidc.clientSecretFile': join(dir, 'secret'),
    'console.oidc.name': 'Company',
    'console.oidc.operators': ['ops'],
  });
  client = await daemon.account('Shop');
  browser = await startBrowser(['localhost']);
  open = openConsole(daemon, browser);
});
afterAll(async () => {
  await browser?.close();
  await daemon?.stop();
  await provider?.close();
  rmSync(dir, { recursive: true, force: true });
});

/** Opens the console and follows the link to the provider, which returns with `claims`. */
async function follow(window: Window, claims: Record<string, unknown>): Promise<void> {
  provider.claims = { sub: 'user-1', email: EMAIL, email_verified: true, name: NAME, ...claims };
  await window.page.goto(`${daemon.consoleUrl}/console/`);
  await window.page.getByRole('button', { name: 'Sign in with Company' }).press('Enter');
}

it('signs in at the provider, whose names and addresses are shown as text, and signs out', async () => {
  const window = await browser.open(DESKTOP);
  const { page, context, consoleErrors, requests } = window;
  await follow(window, { groups: ['ops'] });
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  expect(page.url()).toBe(`${daemon.consoleUrl}/console/`);
  expect(requests.some((url) => url.startsWith(`${provider.issuer}/authorize?`))).toBe(true);
  const cookies = await context.cookies();
  expect(cookies.map(({ name, httpOnly, sameSite }) => ({ name, httpOnly, sameSite }))).toEqual([
    { name: 'postrider_session', httpOnly: true, sameSite: 'Strict' },
  ]);
  for (const path of ['me', 'people?scope=all', 'audit?scope=all']) {
    await open.visit(window, path, client);
    await page.getByText(LOCAL_PART).filter({ visible: true }).first().waitFor();
    expect(await page.locator('main img, main script').count(), path).toBe(0);
  }
  await open.visit(window, 'me', client);
  expect(await page.getByLabel('Name', { exact: true }).inputValue()).toBe(NAME);
  await page.getByText('with another service').first().waitFor();
  await openPersonMenu(page);
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('button', { name: 'Sign in with Company' }).waitFor();
  expect(consoleErrors).toEqual([]);
  await context.close();
});

it('shows why a sign-in failed, and signs nobody in', async () => {
  const window = await browser.open(PHONE);
  const { page, context } = window;
  const alert = page.getByRole('alert');
  await follow(window, { groups: [] });
  await alert.getByText('You are in no group that has access').waitFor();
  expect(page.url()).toBe(`${daemon.consoleUrl}/console/`);
  expect(await findings(window)).toEqual([]);
  await window.screenshot('console-sign-in-oidc-failed-phone-light');

  await follow(window, { groups: ['ops'], aud: 'another' });
  await alert.getByText('did not confirm the sign-in').waitFor();
  // The state is not in this browser.
  await page.goto(`${daemon.consoleUrl}/console/oidc/callback?code=1&state=1`);
  await alert.getByText('took too long').waitFor();
  // Another site can lead to the return of a sign-in that its author began.
  await page.goto('about:blank');
  await page.goto(`${daemon.consoleUrl}/console/#/signed-in/${'x'.repeat(43)}`);
  await alert.getByText('was not begun in this tab').waitFor();
  expect(page.url()).toBe(`${daemon.consoleUrl}/console/`);
  // Only the reasons that the console knows are shown.
  await page.goto(`${daemon.consoleUrl}/console/?signInError=${encodeURIComponent(HOSTILE)}`);
  await page.getByRole('button', { name: 'Sign in with Company' }).waitFor();
  expect(await alert.innerText()).toBe('');
  expect(await context.cookies()).toEqual([]);
  await context.close();
});
