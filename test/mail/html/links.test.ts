import { createSecretKey } from 'node:crypto';
import { readFileSync } from 'node:fs';
import * as fc from 'fast-check';
import { simpleParser } from 'mailparser';
import { describe, expect, it } from 'vitest';
import { withoutPause } from '../../../src/core/concurrency/slices.ts';
import { systemRandom } from '../../../src/core/random.ts';
import { createSeal } from '../../../src/core/seal.ts';
import { composeInSteps, messageBytes } from '../../../src/mail/compose.ts';
import { type CopyDetails, MARKS, type MessageContent, type Tracking } from '../../../src/mail/content.ts';
import { changeLinks, parseLinkUrl, trackLinks } from '../../../src/mail/html/links.ts';
import { createTokens } from '../../../src/mail/tokens.ts';

const PREFIX = 'https://t.example/c/';

/** Replaces every http(s) URL by `https://t.example/c/<n>`; returns the original URLs. */
function replaceUrls(html: string) {
  const addresses: string[] = [];
  const changed = changeLinks(html, {
    address: (href) => {
      const address = parseLinkUrl(href);
      return address === null ? null : PREFIX + (addresses.push(address) - 1);
    },
    atEnd: '',
  });
  return { changed, addresses };
}

describe('a link', () => {
  it.each([
    ['double quotes', '<a href="https://x.example/">', '<a href="T">', 'https://x.example/'],
    ['single quotes', "<a href='https://x.example/'>", "<a href='T'>", 'https://x.example/'],
    ['no quotes', '<a href=https://x.example/p>', '<a href=T>', 'https://x.example/p'],
    ['no quotes and a slash', '<a href=https://x.example/>', '<a href=T>', 'https://x.example/'],
    ['upper case', '<A HREF="HTTP://X.EXAMPLE/P">', '<A HREF="T">', 'HTTP://X.EXAMPLE/P'],
    [
      'white space around the equals sign',
      '<a href \n=\t"https://x.example">',
      '<a href \n=\t"T">',
      'https://x.example',
    ],
    [
      'white space in the value',
      '<a href=" \n https://x.\nexample/\t">',
      '<a href="T">',
      'https://x.example/',
    ],
    ['no space before it', '<a id="1"href="http://x.example">', '<a id="1"href="T">', 'http://x.example'],
    ['a slash before it', '<a/href="http://x.example">', '<a/href="T">', 'http://x.example'],
    ['a self-closing tag', '<a href="http://x.example"/>', '<a href="T"/>', 'http://x.example'],
    [
      'an angle bracket in another value',
      '<a title="a>b" href="http://x.example">',
      '<a title="a>b" href="T">',
      'http://x.example',
    ],
    ['a second href', '<a href="http://x.example" href="y">', '<a href="T" href="y">', 'http://x.example'],
    ['an area', '<area href="http://x.example">', '<area href="T">', 'http://x.example'],
    ['amp', '<a href="http://x.example?a=1&amp;b=2">', '<a href="T">', 'http://x.example?a=1&b=2'],
    [
      'bare ampersands',
      '<a href="http://x.example?a=1&copy=2&lt=3">',
      '<a href="T">',
      'http://x.example?a=1&copy=2&lt=3',
    ],
    ['numbers', '<a href="&#104;ttp&#x3A;//x.example">', '<a href="T">', 'http://x.example'],
    ['names', '<a href="http&colon;//x.example/&lpar;a&rpar;">', '<a href="T">', 'http://x.example/(a)'],
    ['twice escaped', '<a href="http://x.example?a=&amp;amp;">', '<a href="T">', 'http://x.example?a=&amp;'],
    [
      'other letters',
      '<a href="https://bücher.example/ü?q=é">',
      '<a href="T">',
      'https://xn--bcher-kva.example/%C3%BC?q=%C3%A9',
    ],
    ['blanks within', '<a href="https://x.example/a b">', '<a href="T">', 'https://x.example/a%20b'],
    ['too few slashes', '<a href="https:x.example">', '<a href="T">', 'https://x.example/'],
    ['too many slashes', '<a href="https:////x.example">', '<a href="T">', 'https://x.example/'],
    [
      'a name and a password',
      '<a href="https://u:p%40@x.example">',
      '<a href="T">',
      'https://u:p%40@x.example',
    ],
    [
      'Outlook only',
      '<!--[if mso]><a href="http://x.example">o</a><![endif]-->',
      '<!--[if mso]><a href="T">o</a><![endif]-->',
      'http://x.example',
    ],
    [
      'some Outlooks',
      '<!--[if (gte mso 9)|(IE)]><a href=http://x.example><![endif]-->',
      '<!--[if (gte mso 9)|(IE)]><a href=T><![endif]-->',
      'http://x.example',
    ],
    [
      'all but Outlook',
      '<!--[if !mso]><!--><a href="http://x.example"><!--<![endif]-->',
      '<!--[if !mso]><!--><a href="T"><!--<![endif]-->',
      'http://x.example',
    ],
  ])('%s', (_, html, expected, address) => {
    expect(replaceUrls(html)).toEqual({ changed: expected.replace('T', `${PREFIX}0`), addresses: [address] });
  });

  it.each([
    ...[
      'mailto:a@x.example',
      'tel:+1',
      'sms:+1',
      '#top',
      '',
      '/path',
      '//x.example',
      'ftp://x.example',
      'cid:1',
    ].map((href) => `<a href="${href}">`),
    '<a href>',
    '<a href=>',
    '<a name="https://x.example">',
    '<a data-href="https://x.example">',
    '<a xlink:href="https://x.example">',
    '<a href="javascript:location=\'https://x.example\'">',
    '<a href="https://">',
    '<a href="https://exa mple/">',
    '<a href="xhttps://x.example/">',
    `<a href="https://x.example/${'x'.repeat(9000)}">`,
    '<a data-no-track href="https://x.example/">',
    '<a href="https://x.example/" DATA-NO-TRACK="false">',
    '<a href="https://x.example/" clicktracking="off">',
    "<a ClickTracking=' OFF ' href='https://x.example/'>",
    '<link href="https://x.example/">',
    '<base href="https://x.example/">',
    '<form action="https://x.example/">',
    '<v:roundrect href="https://x.example/">',
    '<abbr href="https://x.example/">',
    '<!-- <a href="https://x.example/"> -->',
    '<!--[iffy]><a href="https://x.example/"> -->',
    '<!--[if mso]><v:rect href="https://x.example/"><![endif]-->',
    '<!--[if mso]><style><a href="https://x.example/"></style><![endif]-->',
    '<style><a href="https://x.example/"></style>',
    '<script>"<a href=\'https://x.example/\'>"</script>',
    '<title><a href="https://x.example/"></title>',
    '<textarea><a href="https://x.example/"></textarea>',
    '<a href="https://x.example/',
    '<a href="https://x.example/"',
    '</a href="https://x.example/">',
    '< a href="https://x.example/">',
    '&lt;a href="https://x.example/">',
  ])('is not recognized in %s', (html) => {
    expect(replaceUrls(html)).toEqual({ changed: html, addresses: [] });
  });

  it('has its new URL escaped', () => {
    const changed = changeLinks("<a href='x'>", { address: () => "https://t.example/?a='1'&b=2", atEnd: '' });
    expect(changed).toBe("<a href='https://t.example/?a=&#39;1&#39;&amp;b=2'>");
  });
});

describe('HTML inserted at the end', () => {
  it.each([
    ['<body><p>Hello</p></body></html>', '<body><p>Hello</p>+</body></html>'],
    ['<BODY>Hello</BODY >', '<BODY>Hello+</BODY >'],
    ['<p>Hello</p></html>\n', '<p>Hello</p>+</html>\n'],
    ['<p>Hello', '<p>Hello+'],
    ['', '+'],
    ['<body>a</body>b<body>c</body>d', '<body>a</body>b<body>c+</body>d'],
    ['<p>a<!-- </body> --><style></body></style>', '<p>a<!-- </body> --><style></body></style>+'],
    ['<body>a<!--[if mso]></body><![endif]--></body>', '<body>a<!--[if mso]></body><![endif]-->+</body>'],
  ])('%j', (html, expected) => {
    expect(changeLinks(html, { address: () => null, atEnd: '+' })).toBe(expected);
  });

  it('is inserted before links that follow the body', () => {
    const html = '<a href="http://x.example">a</a></body><a href="http://y.example">b</a>';
    expect(changeLinks(html, { address: () => 'T', atEnd: '+' })).toBe(
      '<a href="T">a</a>+</body><a href="T">b</a>',
    );
  });
});

/** A realistic newsletter: nested tables, conditional comments, all forms of links, partly broken. */
describe('a newsletter of 200 links', () => {
  const html = readFileSync(new URL('../newsletter/newsletter.html', import.meta.url), 'utf8');
  const links: string[] = JSON.parse(
    readFileSync(new URL('../newsletter/links.json', import.meta.url), 'utf8'),
  );
  const { changed, addresses } = replaceUrls(html);

  it('has all its URLs passed to the callback', () => {
    expect(links).toHaveLength(200);
    expect(addresses).toEqual(links);
  });

  it('is otherwise unchanged', () => {
    const around = changed.split(/https:\/\/t\.example\/c\/\d+/);
    expect(around).toHaveLength(201);
    let at = around[0]?.length ?? 0;
    expect(html.slice(0, at)).toBe(around[0]);
    for (const [index, link] of links.entries()) {
      const next = around[index + 1] ?? '';
      const end = html.indexOf(next, at);
      expect(unescaped(html.slice(at, end))).toBe(link);
      at = end + next.length;
    }
    expect(at).toBe(html.length);
  });

  it('is changed completely: a second run finds only the new links', () => {
    expect(replaceUrls(changed).addresses).toEqual(links.map((_, index) => PREFIX + index));
  });
});

/** The escaped characters of the newsletter's links. */
function unescaped(value: string): string {
  return value
    .trim()
    .replace(/&(?:amp|#38|#x26);/g, '&')
    .replaceAll('&colon;', ':');
}

describe('any HTML', () => {
  interface Piece {
    source: string;
    /** With `T` for a tracked link's address. */
    expected: string;
    links: string[];
  }
  const same = (source: string): Piece => ({ source, expected: source, links: [] });

  const name = fc.stringMatching(/^[a-z][a-z0-9_]{0,8}$/);
  const url = fc
    .tuple(
      fc.constantFrom('http', 'https', 'HTTPS'),
      fc.stringMatching(/^[a-z]{1,8}\.example(:[1-9][0-9]{0,3})?$/),
      fc
        .stringMatching(/^(\/[A-Za-z0-9._~!$'()*+,;:@%=-]{0,10}){0,3}$/)
        .filter((path) => !/%(?![0-9]{2})/.test(path)),
      fc.array(fc.tuple(name, fc.stringMatching(/^[A-Za-z0-9._~'"<>()*+/?:@=|{}^`[\]-]{0,8}$/)), {
        maxLength: 4,
      }),
    )
    .map(([scheme, host, path, query]) => {
      const search = query.map(([key, value]) => `${key}=${value}`).join('&');
      return `${scheme}://${host}${path}${search === '' ? '' : `?${search}`}`;
    });

  /** A value in its quotes, some characters as references; those that would end it always. */
  const value = (text: string) =>
    fc
      .tuple(
        fc.constantFrom('"', "'", ''),
        fc.array(fc.constantFrom('plain', 'dec', 'hex'), { minLength: text.length, maxLength: text.length }),
      )
      .map(([quote, ways]) => {
        const endsIt = (char: string) => (quote === '' ? /[\s"'=<>`]/.test(char) : char === quote);
        const isPlain = (index: number) => ways[index] === 'plain' && !endsIt(text[index] ?? '');
        // `&eth&#61;` is the letter eth and `&lt_` begins with `<` (HTML, named character reference state): only
        // before a plain `=` is such an `&` itself.
        const beginsReference = (index: number) => {
          let end = index + 1;
          while (/[A-Za-z0-9]/.test(text[end] ?? '') && isPlain(end)) end++;
          return text[index] === '&' && !(text[end] === '=' && isPlain(end));
        };
        const written = Array.from(text, (char, index) => {
          const mustEscape = endsIt(char) || beginsReference(index);
          const way = mustEscape && ways[index] === 'plain' ? 'dec' : ways[index];
          if (way === 'plain') return char;
          const code = char.codePointAt(0) ?? 0;
          return way === 'dec' ? `&#${code};` : `&#x${code.toString(16)};`;
        });
        return { quote, written: written.join('') };
      });

  const blank = fc.constantFrom(' ', '\n', '\t', '\r\n  ');
  const harmless = fc.constantFrom(
    'class=x',
    'style="color:#fff"',
    "title='a > b'",
    'disabled',
    'data-href="https://x.example/"',
    'ID=Z',
  );
  const attributes = fc.array(
    fc.tuple(blank, harmless).map((parts) => parts.join('')),
    { maxLength: 3 },
  );
  const off = fc.constantFrom(' data-no-track', ' clicktracking=off', ' CLICKTRACKING="Off"');

  const link: fc.Arbitrary<Piece> = fc
    .tuple(
      fc.constantFrom('a', 'A', 'area', 'AREA'),
      fc.constantFrom('href', 'HREF'),
      attributes,
      attributes,
      blank,
      url,
    )
    .chain(([tag, attribute, before, after, gap, address]) =>
      value(address).map(({ quote, written }) => {
        const html = (inside: string) =>
          `<${tag}${before.join('')}${gap}${attribute}=${quote}${inside}${quote}${after.join('')}>`;
        return { source: html(written), expected: html('T'), links: [address] };
      }),
    );
  const untracked = fc
    .tuple(off, url)
    .chain(([attribute, address]) =>
      value(address).map(({ quote, written }) => same(`<a${attribute} href=${quote}${written}${quote}>`)),
    );
  // An unquoted URL that ends with two hyphens ends a comment with the element's `>`.
  const linkInComment = link.filter(({ source }) => !/--!?>/.test(source));
  const conditional = linkInComment.map((piece) => ({
    ...piece,
    source: `<!--[if mso]>${piece.source}<![endif]-->`,
    expected: `<!--[if mso]>${piece.expected}<![endif]-->`,
  }));
  const hidden = linkInComment.chain(({ source }) =>
    fc
      .constantFrom(
        ['<!--', '-->'],
        ['<style>', '</style>'],
        ['<title>', '</title>'],
        ['<textarea>', '</TEXTAREA>'],
      )
      .map(([open, close]) => same(`${open}${source}${close}`)),
  );
  const other = fc
    .oneof(
      fc.constantFrom(
        '</a>',
        '<p>',
        '</td></tr>',
        '<br/>',
        '<table width=100%>',
        '</',
        '<!doctype html>',
        '<td',
        '<img src="https://x.example/i">',
      ),
      fc.string({ unit: 'grapheme', maxLength: 20 }).map((text) => text.replaceAll('<', '< ')),
      fc.constantFrom('&amp; &copy &#0; &', 'a < b > c', '"\'`='),
    )
    // An unfinished construct must not include the text after it.
    .map((text) => same(/<\/?\w*$/.test(text) ? `${text}>` : text));

  const html = fc.array(fc.oneof(link, link, untracked, conditional, hidden, other), { maxLength: 20 });

  it('is unchanged except for the URLs of its links', () => {
    fc.assert(
      fc.property(html, (pieces) => {
        const { changed, addresses } = replaceUrls(pieces.map(({ source }) => source).join(''));
        expect(addresses).toEqual(pieces.flatMap(({ links }) => links));
        let count = 0;
        const expected = pieces
          .map((piece) =>
            piece.links.length === 0
              ? piece.source
              : piece.expected.replace(/(=["']?)T(["'\s>])/, (_, a, b) => `${a}${PREFIX}${count++}${b}`),
          )
          .join('');
        expect(changed).toBe(expected);
      }),
      { numRuns: 300 },
    );
  });

  it('is never lost, whatever its content', () => {
    const noise = fc.array(
      fc.oneof(
        fc.string({ unit: 'binary', maxLength: 8 }),
        fc.constantFrom(
          ...'<a href="\' = > < / https://x.example <!-- --> [if mso]> & &#x; </ <style>'.split(' '),
        ),
      ),
      { maxLength: 40 },
    );
    fc.assert(
      fc.property(noise, (parts) => {
        const source = parts.join('');
        const { changed, addresses } = replaceUrls(source);
        if (addresses.length === 0) expect(changed).toBe(source);
        expect(changed.split(PREFIX)).toHaveLength(addresses.length + 1);
      }),
      { numRuns: 300 },
    );
  });
});

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
