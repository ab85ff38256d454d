import { createSecretKey } from 'node:crypto';
import { simpleParser } from 'mailparser';
import { describe, expect, it } from 'vitest';
import { withoutPause } from '../../../src/core/concurrency/slices.ts';
import { systemRandom } from '../../../src/core/random.ts';
import { createSeal } from '../../../src/core/seal.ts';
import { composeInSteps, messageBytes } from '../../../src/mail/compose.ts';
import { type CopyDetails, MARKS, type MessageContent, type Tracking } from '../../../src/mail/content.ts';
import { trackLinks } from '../../../src/mail/html/links.ts';
import { createTokens } from '../../../src/mail/tokens.ts';

const tokens = createTokens(createSeal(Buffer.alloc(32, 1), systemRandom));
const BASE = 'https://link.example.com';
const MESSAGE = 'msg_1700000000000_abcdefghijkl';
const PIXEL = `<img src="${BASE}/o/x.gif" width="1" height="1" alt="" style="display:block;width:1px;height:1px;border:0">`;

function copy(tracking: Partial<Tracking> | null = {}): CopyDetails {
  return {
    recipient: 'ada+news@example.net',
    kind: 'marketing',
    unsubscribeUrl: `${BASE}/u/ada`,
    reportAbuseUrl: `${BASE}/r/ada`,
    unsubscribeAddress: null,
    signedId: 'id',
    feedbackAddress: null,
    feedbackId: 'c:a:mk:postrider',
    ...(tracking === null
      ? {}
      : {
          tracking: {
            linkPrefix: `${BASE}/c/`,
            clickSigner: tokens.of('acct_one').click,
            messageId: MESSAGE,
            pixelUrl: null,
            ...tracking,
          },
        }),
  };
}

/** The addresses behind the tracked links of some html. */
function destinations(html: string): unknown[] {
  return [...html.matchAll(/\/c\/([\w-]+)/g)].map(([, token = '']) => {
    const click = tokens.click(token, new URL(BASE).hostname);
    return click && { id: click.id, url: click.url, madeForHost: click.madeForHost };
  });
}

describe('HTML with tracking', () => {
  it('has links with a token of the message and the URL', () => {
    const html = trackLinks(
      '<a href="https://x.example/?a=1&amp;b=2">x</a><a href="http://y.example">y</a>',
      copy(),
    );
    expect(html).toMatch(/^<a href="https:\/\/link\.example\.com\/c\/[\w-]+">x<\/a><a href="[^"]+">y<\/a>$/);
    expect(destinations(html)).toEqual([
      { id: MESSAGE, url: 'https://x.example/?a=1&b=2', madeForHost: true },
      { id: MESSAGE, url: 'http://y.example', madeForHost: true },
    ]);
  });

  it.each([
    'https://shop.example.org/a',
    'shop.example.org',
    '\n (www.example.org)',
    '&ldquo;example.org&rdquo;: our shop',
    '<img src="y"><b>exam</b>ple<!-- -->.org',
    'example&#46;org',
    'http://192.0.2.1/',
    'bücher.example.org',
    'bob.github.io',
    'www.other.test',
    'shop.other.invalid',
    'Shop.Example',
    'shop.localhost:8080/a',
    'printer.local',
    'wiki.internal.',
    'nas.home.arpa',
    'shop.onion',
    'www.shop.corp',
    '<!--[if mso]>example.org<![endif]-->',
  ])('does not track a link that displays another domain: %s', (text) => {
    const html = `<p><a href="https://x.example/">${text}</a> <a href="https://y.example/">more</a></p>`;
    const changed = trackLinks(html, copy());
    expect(changed).toContain('<a href="https://x.example/">');
    expect(destinations(changed)).toEqual([{ id: MESSAGE, url: 'https://y.example/', madeForHost: true }]);
  });

  it.each([
    'www.example.com',
    'HTTPS://EXAMPLE.COM/sale',
    'Read more on example.org',
    'node.js',
    'bob@example.org',
    'bob@other.test',
    'bob@www.shop.corp',
    'www.',
    '24.12.',
    'a',
    '',
    '<img src="y" alt="example.org">',
    '</a>example.org',
    '<a name="x">example.org</a>',
  ])('tracks a link that displays no other domain: %s', (text) => {
    expect(destinations(trackLinks(`<a href="https://x.example/">${text}</a>`, copy()))).toHaveLength(1);
  });

  it('tracks a link that displays the host of a platform without an organizational domain', () => {
    const html =
      '<a href="https://x.example/">http://localhost/</a><a href="https://x.example/">example.org</a>';
    const changed = trackLinks(html, copy({ linkPrefix: 'http://localhost:8080/c/' }));
    expect([...changed.matchAll(/localhost:8080/g)]).toHaveLength(1);
  });

  it.each([
    `<a href="${MARKS.unsubscribeUrl}">Unsubscribe</a>`,
    `<a href='${MARKS.reportAbuseUrl}'>Report</a>`,
    `<a href="https://x.example/leave?to=${MARKS.unsubscribeUrl}">Unsubscribe</a>`,
    `<a href="${BASE}/c/abc">tracked before</a>`,
    '<a href="mailto:a@x.example">mail</a>',
  ])('does not change %j', (html) => {
    expect(trackLinks(html, copy())).toBe(html);
  });

  it("inserts the recipient's address into a URL that contains its mark", () => {
    const html = trackLinks(`<a href="https://x.example/?to=${MARKS.recipient}&amp;x=1">x</a>`, copy());
    expect(destinations(html)).toEqual([
      { id: MESSAGE, url: 'https://x.example/?to=ada+news@example.net&x=1', madeForHost: true },
    ]);
  });

  it('has the pixel only if openings are tracked, and tracked links only if clicks are', () => {
    const html = '<body><a href="https://x.example/">x</a></body>';
    expect(trackLinks(html, copy(null))).toBe(html);
    const pictured = trackLinks(html, copy({ clickSigner: null, pixelUrl: `${BASE}/o/x.gif` }));
    expect(pictured).toBe(html.replace('</body>', `${PIXEL}</body>`));
    const both = trackLinks(html, copy({ pixelUrl: `${BASE}/o/x.gif` }));
    expect(destinations(both)).toHaveLength(1);
    expect(both).toContain(`${PIXEL}</body>`);
  });

  it('has tokens that are invalid with another key', () => {
    const html = trackLinks(
      '<a href="https://x.example/">x</a>',
      copy({ clickSigner: { key: createSecretKey(Buffer.alloc(32, 9)), head: Buffer.alloc(6) } }),
    );
    expect(destinations(html)).toEqual([null]);
  });
});

describe('a composed message', () => {
  const content: MessageContent = {
    from: { name: '', address: 'shop@example.com' },
    to: [{ name: '', address: 'ada@example.net' }],
    cc: [],
    replyTo: null,
    subject: 'Hello',
    html: `<p>See <a href="https://x.example/?a=1&amp;b=2">this</a>, <a href="${MARKS.unsubscribeUrl}">leave</a></p>`,
    text: null,
    headers: [],
    attachments: [],
    messageId: 'm@example.com',
    date: 0,
  };

  it('has tracked links in its HTML and the original URLs in its text', async () => {
    const bytes = messageBytes(withoutPause(composeInSteps(content, copy({ pixelUrl: `${BASE}/o/x.gif` }))));
    const { html, text } = await simpleParser(bytes);
    expect(html).toContain(`<a href="${BASE}/u/ada">leave</a>`);
    expect(html).toContain(PIXEL);
    expect(destinations(html || '')).toEqual([
      { id: MESSAGE, url: 'https://x.example/?a=1&b=2', madeForHost: true },
    ]);
    expect(text?.trim()).toBe(`See this <https://x.example/?a=1&b=2>, leave <${BASE}/u/ada>`);
  });
});
