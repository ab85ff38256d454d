import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { withoutPause } from '../../src/core/concurrency/slices.ts';
import { composeInSteps, messageBytes } from '../../src/mail/compose.ts';
import { MARKS, type Tracking } from '../../src/mail/content.ts';
import {
  isPreparedFor,
  mergeContent,
  partsOf,
  preparePartsInSteps,
  type SharedContent,
} from '../../src/mail/shared-content.ts';
import { copyWith, IDENTITY, sharedContent, TRACKING } from '../support/campaign-copy.ts';

const TRACKINGS = [
  undefined,
  TRACKING,
  { ...TRACKING, clickSigner: null },
  { ...TRACKING, pixelUrl: null },
] satisfies (Tracking | undefined)[];

/** The message with prepared parts, that without them, and which parts were prepared. */
function both(shared: SharedContent, values: string[], tracking: Tracking | undefined) {
  const copy = copyWith(tracking);
  const own = { name: 'Ann', values: ['subject', ...values] };
  const content = mergeContent(shared, own, IDENTITY, copy.recipient);
  const prepared = withoutPause(preparePartsInSteps(shared, tracking));
  const parts = partsOf(prepared, shared, own.values, copy);
  const compose = (...args: Parameters<typeof composeInSteps>) =>
    messageBytes(withoutPause(composeInSteps(...args))).toString('latin1');
  return {
    plain: compose(content, copy),
    shared: compose(content, copy, parts),
    text: parts.text !== null,
    html: parts.html !== null,
  };
}

const NEWSLETTER = readFileSync(new URL('newsletter/newsletter.html', import.meta.url), 'utf8');
const PERSONAL = NEWSLETTER.replace(/<p\b[^>]*>/, '$&Hello {0} {1}, ');

describe('the prepared parts of a copy', () => {
  it.each([
    ['a newsletter', NEWSLETTER],
    ['a newsletter with names', PERSONAL],
    ['a newsletter in one line', PERSONAL.replaceAll('\n', ' ')],
    ['short HTML', '<p>Hello {0}</p>'],
    ['Cyrillic text', `<p>Привет, {0}</p>\n`.repeat(50)],
    ['HTML with marks', `<p>{0}</p>\n<a href="${MARKS.unsubscribeUrl}">Unsubscribe</a> ${MARKS.recipient}`],
    [
      'HTML with the links of the service',
      Object.values(MARKS)
        .filter((mark) => mark !== MARKS.recipient)
        .map((mark) => `<p>{0}</p>\n<a href="${mark}">x</a>\n`)
        .join(''),
    ],
  ])('of %s are used, and result in the same message', (_, html) => {
    for (const tracking of TRACKINGS) {
      for (const value of ['Ann', 'Ann-Marie van Dijk', 'José', 'Анна', '7']) {
        const { plain, shared, text, html: isHtml } = both(sharedContent(html), [value, 'Meyer'], tracking);
        expect(shared).toBe(plain);
        expect({ text, isHtml }).toEqual({ text: true, isHtml: true });
      }
    }
  });

  it.each<[string, string, string]>([
    ['with a tag', '<p>{0}</p>', '<b>x</b>'],
    ['with an entity', '<p>{0}</p>', 'a&amp;b'],
    ['that is empty', '<p>Hello {0} x</p>', ''],
    ['with two spaces', '<p>{0}</p>', 'a  b'],
    ['in a URL', '<a href="https://shop.example/{0}">Shop</a>', 'Ann'],
    ['in the text of a link', '<a href="https://shop.example/">{0}</a>', 'shop.example'],
    ['in a tag', '<p class={0}>x</p>', 'Ann'],
    ['in a comment', '<!-- {0} --> x', 'Ann'],
    ['in a style sheet', '<style>{0}</style> x', 'Ann'],
    ['that continues an entity', '<p>&am{0};</p>', 'p'],
    ['that starts a tag', '<p>a <{0} ></p>', 'b'],
    ['before a joiner', '<p>{0}\u200dx</p>', 'س'],
    ['before a joiner in another element', '<p><b>{0}</b>&zwj;x</p>', 'س'],
    ['in a link that ends in hidden text', '<a href="//anna"><i hidden></a></i>{0}</a>', 'Anna'],
  ])('do without the text when there is a value %s', (_, html, value) => {
    for (const tracking of TRACKINGS) {
      const result = both(sharedContent(html), [value], tracking);
      expect(result.shared).toBe(result.plain);
      expect(result.text).toBe(false);
      // Without tracked links no value matters to the HTML.
      if (tracking === undefined) expect(result.html).toBe(true);
    }
  });

  it('do not track a link when its address or text depends on the recipient', () => {
    for (const html of [
      `<a href="https://shop.example/?for=${MARKS.recipient}">Shop</a>`,
      `<a href="https://shop.example/">${MARKS.recipient}</a>`,
    ]) {
      const result = both(sharedContent(html), [], TRACKING);
      expect(result.shared).toBe(result.plain);
      expect(result.html).toBe(false);
    }
  });

  it('leave a given text as it is', () => {
    const result = both(sharedContent('<p>{0}</p>', 'Given'), ['Ann'], TRACKING);
    expect(result).toMatchObject({ shared: result.plain, text: false, html: true });
  });

  it('of a message of text only are none', () => {
    const shared = { ...sharedContent('', 'Given'), html: null };
    const result = both(shared, [], TRACKING);
    expect(result).toMatchObject({ shared: result.plain, text: false, html: false });
  });

  it('are prepared again when something else is tracked', () => {
    const shared = sharedContent('<a href="https://shop.example/">Shop</a>');
    const prepared = withoutPause(preparePartsInSteps(shared, TRACKING));
    const other = { ...TRACKING, linkPrefix: 'https://other.news.example/c/' };
    expect(isPreparedFor(prepared, { ...TRACKING, messageId: 'msg_1700000000001_abcdefghijkl' })).toBe(true);
    for (const tracking of [undefined, other, { ...TRACKING, clickSigner: null }]) {
      expect(isPreparedFor(prepared, tracking)).toBe(false);
      expect(partsOf(prepared, shared, [''], copyWith(tracking)).html).toBeNull();
    }
  });

  it('result in the same message when it ends with an empty value', () => {
    const { plain, shared } = both(sharedContent('\n{1}'), ['Ann', ''], undefined);
    expect(shared).toBe(plain);
  });

  it('result in the same message for any HTML, values and tracking', () => {
    const piece = fc.constantFrom(
      '{0}',
      '{1}',
      ' {0} ',
      '\n',
      '\r\n',
      '\r',
      ' ',
      'Hello',
      'shop.example',
      '<p>',
      '</p>',
      '<br>',
      '<a href="https://shop.example/a?b=1&amp;c=2">',
      '<a href="https://shop.example/{0}">',
      `<a href="${MARKS.unsubscribeUrl}">`,
      '</a>',
      '<i hidden>',
      '</i>',
      '<img alt="(">',
      '<img alt="x" src=y>',
      '<ul><li>',
      '</ul>',
      '<pre>',
      '</pre>',
      '<style>',
      '</style>',
      '<!--',
      '-->',
      '<!--[if mso]><a href="https://shop.example/mso">x</a><![endif]-->',
      '</body>',
      '&am',
      '&zwj;',
      '\u200b',
      '<',
      '"',
      'Grüße',
      'From ',
      MARKS.recipient,
      'x'.repeat(500),
    );
    const value = fc.constantFrom(
      'Ann',
      'a b',
      '',
      ' ',
      'shop.example',
      '&lt;',
      '<b>',
      'p;',
      '1',
      'س',
      '\r',
      '\nFrom ',
    );
    const tracking = fc.constantFrom(...TRACKINGS);
    fc.assert(
      fc.property(
        fc.array(piece, { minLength: 1, maxLength: 30 }),
        value,
        value,
        tracking,
        (pieces, first, second, tracked) => {
          const { plain, shared } = both(sharedContent(pieces.join('')), [first, second], tracked);
          expect(shared).toBe(plain);
        },
      ),
      { numRuns: 1000 },
    );
  });
});
