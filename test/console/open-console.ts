import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { isRefusal } from '../../src/core/refusal.ts';
import type { MemberRole } from '../../src/store/people/people.ts';
import type { ApiClient } from '../support/api-client.ts';
import { DESKTOP, PHONE, type TestBrowser, type Window } from '../support/browser.ts';
import type { InProcess } from '../support/in-process-daemon.ts';
import { insertDomainOf } from '../support/store.ts';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Text of a third party that would change the title of the page if it were not shown as text. */
export const HOSTILE = '<img src=x onerror="document.title=1"><script>document.title=2</script>';

/** A test's ways into the console. */
export interface OpenConsole {
  /** A window with a new operator, who has signed in with a link, and will add a passkey or a password later. */
  operator(...options: Parameters<TestBrowser['open']>): Promise<Window>;
  /** A window with a new member of an account. */
  member(client: ApiClient, role: MemberRole, ...options: Parameters<TestBrowser['open']>): Promise<Window>;
  /** Opens a page of an account and waits for its data. */
  visit(window: Window, path: string, client: ApiClient): Promise<void>;
  /**
   * Expects of each page, on a phone and a desktop, light and dark: no finding of axe-core, no scrolling sideways. Stores
   * screenshots. `client`: null for a person who has not signed in.
   */
  examine(pages: Readonly<Record<string, string>>, client: ApiClient | null): Promise<void>;
}

/** Inserts the domain shop.test of an account, `domain_1`; no check of it is due. */
export function insertShopDomain(daemon: InProcess, client: ApiClient): void {
  insertDomainOf(daemon, client, { domain_id: 'domain_1', name: 'shop.test' });
}

let people = 0;

export function openConsole(daemon: InProcess, browser: TestBrowser): OpenConsole {
  const signedIn = async (token: string, options: Parameters<TestBrowser['open']>): Promise<Window> => {
    const window = await browser.open(...options);
    await window.page.goto(`${daemon.consoleUrl}/console/#/link/${token}`);
    await window.page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await window.page.getByRole('button', { name: 'Later' }).click();
    await window.page.getByRole('heading', { name: 'Overview' }).waitFor();
    return window;
  };
  const show = async ({ page }: Window, path: string): Promise<void> => {
    await page.goto(`${daemon.consoleUrl}/console/${path}`);
    await page.getByRole('heading', { level: 1 }).waitFor();
    // The checks of the installation take longer than everything else.
    await expect.poll(() => page.locator('.loading').count()).toBe(0);
  };
  const visit: OpenConsole['visit'] = (window, path, { accountId }) =>
    show(window, `${path}${path.includes('?') ? '&' : '?'}account=${accountId}`);
  const operator: OpenConsole['operator'] = async (...options) => {
    const created = await daemon.people.createOperator({ email: `operator${++people}@example.com` });
    if (isRefusal(created)) throw new Error(created.message);
    return signedIn(created.link.token, options);
  };
  return {
    operator,
    visit,
    member: async (client, role, ...options) => {
      const email = `${role}${++people}@example.com`;
      const invited = await daemon.people.invite(client.accountId, { email, role }, 'operator');
      if (isRefusal(invited)) throw new Error(invited.message);
      return signedIn(invited.link?.token ?? '', options);
    },
    examine: async (pages, client) => {
      for (const [sizeName, size] of [
        ['phone', PHONE],
        ['desktop', DESKTOP],
      ] as const) {
        const window = await (client === null ? browser.open(size) : operator(size));
        const { page } = window;
        for (const [name, path] of Object.entries(pages)) {
          await (client === null ? show(window, path) : visit(window, path, client));
          // As on a device that changes to dark at night, the page follows without being loaded again.
          for (const colorScheme of ['light', 'dark'] as const) {
            await page.emulateMedia({ colorScheme });
            const description = `${name} on a ${sizeName}, ${colorScheme}`;
            expect(await findings(window), description).toEqual([]);
            // A phone would also widen its window.
            expect(await page.evaluate(widerElements(size.width)), description).toEqual([]);
            await window.screenshot(`console-${name}-${sizeName}-${colorScheme}`);
          }
        }
        await window.context.close();
      }
    },
  };
}

/** If the document is wider than the window: the elements that are, from the outermost to the innermost. */
const widerElements = (width: number) => `document.documentElement.scrollWidth <= ${width} ? [] :
  [...document.querySelectorAll('body *')].filter((element) => element.getBoundingClientRect().right > ${width})
    .map((element) => element.outerHTML.slice(0, 120))`;

/** What axe-core finds with the rules of WCAG 2.2 AA and its best practices. */
export async function findings({ page }: Window): Promise<string[]> {
  await page.evaluate(AXE);
  return page.evaluate(`axe.run(document).then(({ violations }) =>
    violations.map(({ id, nodes }) => id + ': ' + nodes.map((node) => node.html).join(' ')))`);
}

/**
 * Answers each question of the browser on a page; returns the texts of the questions so far, a list that grows.
 *
 * Chromium closes a question that a step back through the history asked once that step is complete, and takes it as not
 * accepted. An answer that arrives later finds no question.
 */
export function answerQuestions({ page }: Window, accept: () => boolean): readonly string[] {
  const asked: string[] = [];
  page.on('dialog', (dialog) => {
    asked.push(dialog.message());
    if (accept()) void dialog.accept();
    else
      dialog.dismiss().catch((error: Error) => {
        if (!error.message.includes('No dialog is showing')) throw error;
      });
  });
  return asked;
}

/** The button of the person's menu, in every language. */
const PERSON_MENU = /^(?:Your menu|Ihr Menü|Votre menu): /;

/** Opens the menu of the person who is signed in; on a phone in the navigation, which it opens. */
export async function openPersonMenu(page: Page): Promise<void> {
  const navigation = page.getByRole('button', { name: 'Menu', exact: true, expanded: false });
  if (await navigation.isVisible()) await navigation.click();
  await page.getByRole('button', { name: PERSON_MENU }).click();
}

/** The address of the person who is signed in, as the console shows it, on a phone in the closed navigation. */
export async function shownPerson(page: Page): Promise<string> {
  return (await page.locator('.me .cut').textContent()) ?? '';
}

/** Chooses a language in the menu of the person, and closes the menu. */
export async function chooseLanguage(page: Page, language: 'en' | 'de' | 'fr'): Promise<void> {
  await openPersonMenu(page);
  await page.getByLabel(/^(?:Language|Sprache|Langue)/).selectOption(language);
  await page.keyboard.press('Escape');
}

/** Chooses the account that the pages are about. */
export async function chooseAccount(page: Page, name: string): Promise<void> {
  await page.getByRole('button', { name: /^(?:Account|Konto|Compte): / }).click();
  await page
    .getByRole('list', { name: /^(?:Accounts|Konten|Comptes)$/ })
    .getByRole('link', { name })
    .click();
}
