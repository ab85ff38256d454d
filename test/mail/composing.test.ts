import { describe, expect, it } from 'vitest';
import { composeInSteps } from '../../src/mail/compose.ts';
import type { CopyDetails, MessageContent } from '../../src/mail/content.ts';
import { encodeTextInSteps } from '../../src/mail/encode.ts';
import { changeLinks } from '../../src/mail/html/links.ts';
import { textFromHtml } from '../../src/mail/html/text-part.ts';

const PARAGRAPH =
  '<p style="color:red">Größe &amp; Preis:\r\n <a href="https://shop.example/a?b=1&amp;c=2">zum\u200c Shop</a> 👩🏽‍🚀' +
  '<!--[if mso]><a href="https://shop.example/mso">x</a><![endif]--><pre>a\r\n b</pre></p>';
/** More than one step long. */
const HTML = PARAGRAPH.repeat(100);
/** HTML with `by` more characters at its start, so that steps end at other positions. */
const shifted = (by: number) => `<!--${'x'.repeat(by)}-->${HTML}`;
const shifts = Array.from({ length: PARAGRAPH.length }, (_, n) => n);

describe('HTML that is read in steps', () => {
  it('results in the same text wherever a step ends', () => {
    const text = textFromHtml(shifted(0));
    expect(text.split('\n').length).toBeGreaterThan(200);
    for (const by of shifts) expect(textFromHtml(shifted(by)) === text, String(by)).toBe(true);
  });

  it('results in the same text wherever a long run of text is cut', () => {
    const run = 'a  b \u200c\u200d c\u00a0 \u200b d\r\n 👩🏽‍🚀 \u2003ﷺ\u200dé '.repeat(4000);
    for (const html of [run, `<pre>${run}</pre>`, `<a href="https://shop.example">${run}</a>`]) {
      const text = textFromHtml(html);
      for (const by of shifts.slice(0, 40))
        expect(textFromHtml(`<!--${'x'.repeat(by)}-->${html}`) === text, String(by)).toBe(true);
    }
  });

  it('results in the same links wherever a step ends', () => {
    const changed = (by: number) =>
      changeLinks(shifted(by), { address: (href, text) => `${href}#${text}`, atEnd: '<img>' }).replace(
        /^<!--x*-->/,
        '',
      );
    const links = changed(0);
    expect(links).toContain('href="https://shop.example/mso#x"');
    for (const by of shifts) expect(changed(by) === links, String(by)).toBe(true);
  });
});

it('composes a large message in steps', () => {
  const content: MessageContent = {
    from: { name: '', address: 'ann@example.com' },
    to: [{ name: '', address: 'bob@example.net' }],
    cc: [],
    replyTo: null,
    subject: 'Hello',
    html: HTML.repeat(30),
    text: null,
    headers: [],
    attachments: [],
    messageId: 'msg_1700000000000_abcdefghijkl@example.com',
    date: 1_700_000_000_000,
  };
  const copy: CopyDetails = {
    recipient: 'bob@example.net',
    kind: 'transactional',
    unsubscribeUrl: 'https://t.example.com/u/abc',
    reportAbuseUrl: 'https://t.example.com/r/abc',
    unsubscribeAddress: null,
    signedId: 'abc',
    feedbackAddress: null,
    feedbackId: 'abc',
  };
  expect([...composeInSteps(content, copy)].length).toBeGreaterThan((30 * HTML.length) / 20_000);
});

it.each(['7bit', 'größe', '\u0001\u0002'])('encodes a long text in steps: %s', (line) => {
  const text = `${line}\n`.repeat(100_000);
  expect([...encodeTextInSteps(text)].length).toBeGreaterThan(text.length / 60_000);
});
