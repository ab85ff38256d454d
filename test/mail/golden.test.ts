import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { flowText } from '../../src/mail/html/flowed.ts';
import { textFromHtml } from '../../src/mail/html/text-part.ts';

/*
 * Text parts of complete mails, as recipients receive them. Each golden file was reviewed, and every change must be
 * reviewed: `npx vitest -u` writes the files, `git diff` shows the changes.
 */
const require = createRequire(import.meta.url);
const ours = (name: string) => new URL(`golden/${name}.html`, import.meta.url);
/** The templates of Foundation for Emails (MIT license), as its users send them. */
const foundation = (name: string) =>
  join(dirname(require.resolve('foundation-emails/package.json')), '.download/templates', `${name}.html`);

describe('the text part of a template', () => {
  it.each([
    ...['digest', 'receipt', 'sale'].map((name) => [name, ours(name)] as const),
    ...['hero', 'newsletter', 'newsletter-2', 'order', 'password', 'sidebar-hero', 'welcome'].map(
      (name) => [`foundation-${name}`, foundation(name)] as const,
    ),
  ])('%s equals its golden file', async (name, file) => {
    const text = flowText(textFromHtml(readFileSync(file, 'utf8')));
    await expect(`${text}\n`).toMatchFileSnapshot(`golden/${name}.txt`);
    expect(text).not.toMatch(/\n{3}|[\u034f\u00a0\u00ad\u2000-\u200f\ufeff]/);
    for (const line of text.split('\n')) {
      if (line.length > 72) expect(line.trim()).not.toContain(' ');
    }
  });
});
