import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MARKS } from '../../src/mail/content.ts';
import { textFromHtml } from '../../src/mail/text-part.ts';

describe('the text part', () => {
  it.each<[string, string, string]>([
    ['collapses blanks', ' a \n\t b&nbsp;&nbsp;c ', 'a b c'],
    ['keeps words of one run together', 'w<b>or</b>d, <i>two</i>', 'word, two'],
    ['decodes entities', 'R&amp;D &lt;x&gt; &euro; &#128077;', 'R&D <x> € 👍'],
    ['parts paragraphs by an empty line', '<p>a</p><p>b</p>', 'a\n\nb'],
    ['never has two empty lines', '<div><p>a</p></div><br><br><br><h2>b</h2>', 'a\n\nb'],
    ['breaks lines', 'a<br>b<br/>c<div>d</div>e', 'a\nb\nc\nd\ne'],
    [
      'puts table rows on lines',
      '<table><tr><td>a</td><td>b</td></tr><tr><td>c<td>d</table>e',
      'a b\nc d\n\ne',
    ],
    ['lists', '<p>x</p><ul><li>a</li><li>b<ol><li>c<li>d</ol></ul>y', 'x\n\n- a\n- b\n  1. c\n  2. d\n\ny'],
    ['keeps the lines of pre', '<pre>a\n  b\n</pre>c', 'a\n  b\n\n\nc'],
    ['draws rules', 'a<hr>b', 'a\n\n---\n\nb'],
    ['leaves out what is no text', '<style>a{}</style><title>t</title><script>s</script><!-- c -->a', 'a'],
    ['leaves out what is not displayed', '<div style="color:red; DISPLAY : none">p<b>q</b></div>a', 'a'],
    [
      'shows again after a hidden element whose end is missing',
      '<td><div style="display:none">p</td><td>a</td>',
      'a',
    ],
    ['leaves out what is hidden', '<p hidden>p</p>a<img hidden alt="x">', 'a'],
    ['drops the padding of preview lines', 'a&zwnj;b&shy;c\u200b&#847; d', 'a\u200cbc d'],
    ['keeps joiners that letters and emoji need', '👩\u200d👧 می\u200cخواهم', '👩\u200d👧 می\u200cخواهم'],
    ['names images', '<img src="x" alt="Our logo"> a <img src="y"><img alt="">', 'Our logo a'],
    ['is empty for nothing', '<p> </p><br>', ''],
  ])('%s', (_, html, expected) => {
    expect(textFromHtml(html)).toBe(expected);
  });

  it.each<[string, string]>([
    ['<a href="https://x.example/?a=1&amp;b=2">here</a>, now', 'here [https://x.example/?a=1&b=2], now'],
    ['<a href="https://x.example">a <b>b</b></a>', 'a b [https://x.example]'],
    ['<a href="https://x.example/">https://x.example/</a>', 'https://x.example/'],
    ['<a href="https://x.example/">x.example</a>', 'x.example'],
    ['<a href="https://x.example"><img src="y" alt="Logo"></a>', 'Logo [https://x.example]'],
    ['<a href="https://x.example"><img src="y"></a>', 'https://x.example'],
    ['<a href="a">1</a><a href="b">2</a>', '1 [a] 2 [b]'],
    ['<a href="a">1<a href="b">2', '1 [a] 2 [b]'],
    ['<a href="https://x.example"><div>a</div></a>b', 'a [https://x.example]\nb'],
    ['<a href="mailto:a@example.com">a@example.com</a>', 'a@example.com'],
    ['<a href="mailto:a@example.com">us</a>', 'us [a@example.com]'],
    ['<a href="#top">top</a> <a href="javascript:x()">x</a> <a>y</a> <a href="">z</a>', 'top x y z'],
  ])('writes the link %s', (html, expected) => {
    expect(textFromHtml(html)).toBe(expected);
  });

  it('keeps marks', () => {
    const html = `<p>To ${MARKS.recipient}: <a href="${MARKS.unsubscribeUrl}">leave</a> ${MARKS.reportAbuseUrl}</p>`;
    expect(textFromHtml(html)).toBe(
      `To ${MARKS.recipient}: leave [${MARKS.unsubscribeUrl}] ${MARKS.reportAbuseUrl}`,
    );
  });

  it('comes to an end on masses of rubbish', () => {
    const pieces = [
      '<div>',
      '<',
      '<a ',
      '<!--',
      '&',
      '&amp',
      '<a href=x>',
      '<a href="',
      '<ul><li>',
      '<li>x',
      '<td>x',
      '<pre>\n',
      '<div style="display:none"><b>',
      '<p hidden></b>x',
      '<template>',
      '\u00a0',
      '</p>',
      '<br>x',
    ];
    for (const piece of pieces) {
      const html = piece.repeat(400_000 / piece.length);
      expect(textFromHtml(html).length).toBeLessThan(8 * html.length);
    }
  });

  it('never throws, and never makes up a mark', () => {
    const piece = fc.oneof(
      fc.constantFrom(
        '<p>',
        '</p>',
        '<a href="x">',
        '</a>',
        '<ul>',
        '</ul>',
        '<li>',
        '<pre>',
        '</pre>',
        '<br>',
        '<td>',
      ),
      fc.constantFrom('<b style="display:none">', '</b>', '<!--', '-->', '&lt;', '&#0;', ' ', 'a', 'é'),
    );
    fc.assert(
      fc.property(fc.array(piece), (pieces) => {
        expect(textFromHtml(pieces.join(''))).not.toMatch(/\n{3}|\0/);
      }),
    );
  });
});
