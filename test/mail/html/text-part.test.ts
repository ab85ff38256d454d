import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MARKS } from '../../../src/mail/content.ts';
import { textFromHtml } from '../../../src/mail/html/text-part.ts';

describe('the text part', () => {
  it.each<[string, string, string]>([
    ['collapses white space', ' a \n\t b&nbsp;&nbsp;c ', 'a b c'],
    ['joins the words of a run', 'w<b>or</b>d, <i>two</i>', 'word, two'],
    ['decodes entities', 'R&amp;D &lt;x&gt; &euro; &#128077;', 'R&D <x> € 👍'],
    ['separates paragraphs by an empty line', '<p>a</p><p>b</p>', 'a\n\nb'],
    ['never has two empty lines', '<div><p>a</p></div><br><br><br><h2>b</h2>', 'a\n\nb'],
    ['breaks lines', 'a<br>b<br/>c<div>d</div>e', 'a\nb\nc\nd\ne'],
    [
      'puts table rows on lines',
      '<table><tr><td>a</td><td>b</td></tr><tr><td>c<td>d</table>e',
      'a b\nc d\n\ne',
    ],
    [
      'formats lists',
      '<p>x</p><ul><li>a</li><li>b<ol><li>c<li>d</ol></ul>y',
      'x\n\n- a\n- b\n  1. c\n  2. d\n\ny',
    ],
    ['keeps the lines of pre', '<pre>a\n  b\n</pre>c', 'a\n  b\n\n\nc'],
    ['formats rules', 'a<hr>b', 'a\n\n---\n\nb'],
    [
      'omits elements that are not rendered',
      '<style>a{}</style><title>t</title><script>s</script><!-- c -->a',
      'a',
    ],
    ['omits elements that are not displayed', '<div style="color:red; DISPLAY : none">p<b>q</b></div>a', 'a'],
    ['ends a hidden element without end tag', '<td><div style="display:none">p</td><td>a</td>', 'a'],
    ['omits hidden elements', '<p hidden>p</p>a<img hidden alt="x">', 'a'],
    [
      'removes fixed-width spaces and other padding of preview lines',
      'New&#8202;&zwnj;&#8202;&zwnj;\u200a&#847;&#65279;&nbsp;&shy;&shy;&#8199;<p>a</p>',
      'New\n\na',
    ],
    ['keeps a joiner that is an entity', 'می&zwnj;خواهم &#128105;&zwj;&#128103;', 'می\u200cخواهم 👩\u200d👧'],
    ['separates adjacent images', '<img alt="Facebook"><img alt="Instagram">now', 'Facebook Instagram now'],
    ['adds no space between punctuation and an image', '(<img alt="A">), "<img alt="B">".', '(A), "B".'],
    [
      'puts block images on separate lines',
      'a<img alt="B" style="display:block"><img alt="C" style="display: block;">d',
      'a\nB\nC\nd',
    ],
    [
      'puts inline elements with block style on separate lines',
      'a<span style="display:block">b</span>c',
      'a\nb\nc',
    ],
    [
      'starts a list at its start attribute',
      '<ol start="4"><li>a<li>b<li value=" 9">c<li>d</ol>',
      '4. a\n5. b\n9. c\n10. d',
    ],
    [
      'numbers a reversed list',
      '<ol reversed start="2"><li>a</li><li>b</li><li>c</li></ol>',
      '2. a\n1. b\n0. c',
    ],
    ['does not number a reversed list without start', '<ol reversed><li>a<li>b</ol>', '- a\n- b'],
    ['ignores a start that is not a number', '<ol start="x"><li value="">a</ol>', '1. a'],
    ['removes the padding of preview lines', 'a&zwnj;b&shy;c\u200b&#847; d', 'abc d'],
    ['keeps joiners that letters and emoji need', '👩\u200d👧 می\u200cخواهم', '👩\u200d👧 می\u200cخواهم'],
    [
      'includes the alternative text of images',
      '<img src="x" alt="Our logo"> a <img src="y"><img alt="">',
      'Our logo a',
    ],
    ['is empty for HTML without text', '<p> </p><br>', ''],
  ])('%s', (_, html, expected) => {
    expect(textFromHtml(html)).toBe(expected);
  });

  it.each<[string, string]>([
    ['<a href="https://x.example/?a=1&amp;b=2">here</a>, now', 'here <https://x.example/?a=1&b=2>, now'],
    ['<a href="https://x.example">a <b>b</b></a>', 'a b <https://x.example>'],
    ['<a href="https://x.example/">https://x.example/</a>', 'https://x.example/'],
    ['<a href="https://x.example/">x.example</a>', 'x.example'],
    ['<a href="https://x.example"><img src="y" alt="Logo"></a>', 'Logo <https://x.example>'],
    ['<a href="https://x.example"><img src="y"></a>', 'https://x.example'],
    ['<a href="https://example.org/">https://example.org</a>', 'https://example.org'],
    ['<a href="https://example.org">http://EXAMPLE.org/</a>', 'http://EXAMPLE.org/'],
    ['<a href="https://example.org/a/">Read https://example.org/a</a>', 'Read https://example.org/a'],
    ['<a href="https://example.org/A">example.org/a</a>', 'example.org/a <https://example.org/A>'],
    ['<a href="https://example.org/?x">example.org</a>', 'example.org <https://example.org/?x>'],
    ['<a href="tel:+15550100999">+1 (555) 010-0999</a>', '+1 (555) 010-0999'],
    ['<a href="tel:+4930901820">Call 030 / 90 18 20</a>', 'Call 030 / 90 18 20'],
    ['<a href="tel:+442079460000;ext=1">+44 (0)20 7946 0000</a>', '+44 (0)20 7946 0000'],
    ['<a href="tel:+15550100999">Call us</a>', 'Call us <+15550100999>'],
    ['<a href="tel:+15550100999">24/7</a>', '24/7 <+15550100999>'],
    ['<a href="mailto:a@example.com?subject=Hi">A@example.com</a>', 'A@example.com'],
    ['<a href="a"><img src="y"></a><a href="b"><img src="z"></a>', 'a b'],
    ['<td style="font-size:0"><a href="a">x</a><a href="b"><img></a></td>', 'b'],
    ['<a href="a">1</a><a href="b">2</a>', '1 <a> 2 <b>'],
    ['<a href="a">1<a href="b">2', '1 <a> 2 <b>'],
    ['<a href="https://x.example"><div>a</div></a>b', 'a <https://x.example>\nb'],
    ['<a href="mailto:a@example.com">a@example.com</a>', 'a@example.com'],
    ['<a href="mailto:a@example.com">us</a>', 'us <a@example.com>'],
    ['<a href="#top">top</a> <a href="javascript:x()">x</a> <a>y</a> <a href="">z</a>', 'top x y z'],
  ])('formats the link %s', (html, expected) => {
    expect(textFromHtml(html)).toBe(expected);
  });

  it.each([
    '<div style="display:none;max-height:0;overflow:hidden">HIDDEN</div>',
    '<div style="max-height:0; overflow:hidden; mso-hide:all">HIDDEN</div>',
    '<div style="MAX-HEIGHT : 0px !important; overflow: hidden">HIDDEN<table><tr><td>HIDDEN</table></div>',
    '<span style="color:#fff;opacity:0">HIDDEN</span>',
    '<span style="opacity:0.0">HIDDEN</span>',
    '<span style="visibility:hidden">HIDDEN <b>HIDDEN</b><img alt="HIDDEN"></span>',
    '<span style="font-size:0">HIDDEN <b style="font-size:100%">HIDDEN</b></span>',
    '<span style="font-size: 0px; line-height: 0">HIDDEN</span>',
    '<span style="font-size:.0em">HIDDEN</span>',
    '<span style="font:0/0 a">HIDDEN</span>',
    '<span style="display:none!important;display:block">HIDDEN</span>',
    '<img alt="HIDDEN" style="display:none">',
    '<div style="display:none"><a href="https://HIDDEN.example">HIDDEN</a></div>',
    '<div style="visibility:hidden"><a href="https://HIDDEN.example"></a></div>',
    '<p style="display:none">HIDDEN<p>',
  ])('omits %s', (hidden) => {
    expect(textFromHtml(`${hidden}Hello`)).toBe('Hello');
  });

  it.each([
    // Layout cells whose content sets a font size.
    '<td style="font-size:0px;padding:10px"><div style="font-size:13px">SHOWN</div></td>',
    '<td style="font-size:0"><p><b style="font:bold 13px/20px Arial">SHOWN</b></p></td>',
    '<td style="font-size:0"><img alt="SHOWN" style="font-size:13px"></td>',
    '<div style="font-size:0"></div>SHOWN',
    '<div style="visibility:hidden"><i style="visibility:visible">SHOWN</i></div>',
    // Content that intentionally overflows its box.
    '<div style="max-height:0;position:relative">SHOWN</div>',
    // A button for all clients except Outlook.
    '<a style="background:#fff;mso-hide:all">SHOWN</a>',
    '<p style="font-size:10px;opacity:0.8;max-height:0.5em;overflow:hidden">SHOWN</p>',
    '<p style="opacity:.05">SHOWN</p>',
    '<p style="display:none;display:block">SHOWN</p>',
    '<p style="display:inline-block;--x:none">SHOWN</p>',
    '<p style="font:400 12px Arial">SHOWN</p>',
    // Broken: an end tag of an element that is not open ends the open ones.
    '<td style="font-size:0"><div style="font-size:9px">SHOWN</p></b></div></td>',
    '<td style="font-size:0"><div style="font-size:9px"></p>SHOWN</div></td>',
    '<div style="font-size:0"></div></div></div>SHOWN',
  ])('includes %s', (html) => {
    expect(textFromHtml(html)).toBe('SHOWN');
  });

  it('hides text again after an element that is displayed', () => {
    const html =
      '<div style="font-size:0">a<table><tr><td style="font-size:9px">b<div>c</div></td><td>d</td></tr></table>e</div>f';
    expect(textFromHtml(html)).toBe('b\nc\n\nf');
  });

  it('keeps marks', () => {
    const html = `<p>To ${MARKS.recipient}: <a href="${MARKS.unsubscribeUrl}">leave</a> ${MARKS.reportAbuseUrl}</p>`;
    expect(textFromHtml(html)).toBe(
      `To ${MARKS.recipient}: leave <${MARKS.unsubscribeUrl}> ${MARKS.reportAbuseUrl}`,
    );
  });

  it('is derived in linear time from hostile HTML', () => {
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
      '<img alt=x>',
      'x&zwj;',
      '<b style="font-size:0"><i style="font-size:1px">x',
      '<b style="visibility:hidden"></i>',
      '<span style="display:block">x',
      '<a href=tel:12345>12345',
      '<ol start=999999999><li>',
    ];
    for (const piece of pieces) {
      const html = piece.repeat(100_000 / piece.length);
      expect(textFromHtml(html).length).toBeLessThan(8 * html.length);
    }
  });

  it('never throws, and never contains a mark that is not in the HTML', () => {
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
