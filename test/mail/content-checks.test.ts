import { describe, expect, it } from 'vitest';
import { readProgramFile } from '../../src/config/program-file.ts';
import { withoutPause } from '../../src/core/concurrency/slices.ts';
import { type CheckedContent, checkContentInSteps } from '../../src/mail/content-checks.ts';

function checked(changed: Partial<CheckedContent>) {
  const content = {
    subject: 'Hello',
    html: '',
    text: '',
    missing: [],
    required: [],
    leftovers: [],
    ...changed,
  };
  return withoutPause(checkContentInSteps({ ...content, bytes: changed.bytes ?? content.html.length }));
}

/** What is wrong: the id, level, and what is meant. */
function faults(changed: Partial<CheckedContent>) {
  return checked(changed)
    .checks.filter(({ level }) => level !== 'ok')
    .map(({ id, level, where, count }) => [id, level, where ?? count]);
}

describe('checks of content', () => {
  it.each<[string, Partial<CheckedContent>, unknown[][]]>([
    ['a subject', { subject: ' ' }, [['subject', 'bad', 1]]],
    ['capitals', { subject: 'SPRING OFFER' }, [['capitals', 'warn', 1]]],
    ['one word in capitals', { subject: 'SALE {{firstName}}' }, []],
    ['marks', { subject: 'Hurry!!! $$$' }, [['punctuation', 'warn', ['!!!', '$$$']]]],
    ['one mark', { subject: 'Ready? Go!' }, []],
    [
      'an opt-out',
      { required: ['unsubscribe_email_html'] },
      [['optOut', 'bad', ['{{unsubscribe_email_html}}']]],
    ],
    ['variables', { missing: ['shade', 'customFields.city', 'email'] }, [['values', 'bad', ['{{shade}}']]]],
    ['leftovers', { leftovers: ['{{ {'] }, [['leftovers', 'warn', ['{{ {']]]],
    ['a relative link', { html: '<a href="/x">a</a>' }, [['links', 'bad', ['/x']]]],
    [
      'links of other kinds',
      { html: '<a href="mailto:a@b.c">a</a><a href="#top">b</a><a href="{{x}}">c</a>' },
      [],
    ],
    [
      'a link without encryption',
      { html: '<a href="http://a.test/">a</a>' },
      [['linksEncrypted', 'warn', ['http://a.test/']]],
    ],
    [
      'a text with another site',
      { html: '<a href="https://shop.test.example.org/">www.bank.com</a>' },
      [['linkTexts', 'bad', ['www.bank.com → https://shop.test.example.org/']]],
    ],
    ['a text with the same site', { html: '<a href="https://shop.example.org/x">www.example.org</a>' }, []],
    [
      'a shortener',
      { html: '<a href="https://www.bit.ly/1">a</a>' },
      [['shorteners', 'warn', ['https://www.bit.ly/1']]],
    ],
    ['an image', { html: '<img src="a.png" alt="">' }, [['images', 'bad', ['a.png']]]],
    [
      'an alternative text',
      { html: '<img src="https://a.test/b.png">' },
      [['alternatives', 'warn', ['https://a.test/b.png']]],
    ],
    [
      'faint text',
      { html: '<div style="background:#fff"><p style="color:#aaa">Terms</p></div>' },
      [['contrast', 'warn', ['"Terms" (#aaaaaa on #ffffff)']]],
    ],
    ['dark text', { html: '<td bgcolor="#222222"><font color="#ffffff">Terms</font></td>' }, []],
    ['a background image', { html: '<td background="a.png"><p style="color:#fff">Terms</p></td>' }, []],
    [
      'colors of a style sheet',
      { html: '<style>p{background:#000}</style><p style="color:#ccc">Terms</p>' },
      [],
    ],
    [
      'faint text behind a style sheet',
      { html: '<style>a{color:red}</style><p style="color:#ccc;background:#ddd">Terms</p>' },
      [['contrast', 'warn', ['"Terms" (#cccccc on #dddddd)']]],
    ],
    ['hidden faint text', { html: '<p style="display:none;color:#eee">Terms</p>' }, []],
    ['a color without a known one', { html: '<p style="color:var(--x)">Terms</p>' }, []],
    ['large content', { bytes: 100_001 }, [['size', 'bad', 1]]],
    ['content of the limit', { bytes: 100_000 }, []],
  ])('judge %s', (_, content, expected) => {
    expect(faults(content)).toEqual(expected);
  });

  it('say what is in order, and in which order it is corrected', () => {
    const { checks } = checked({ html: '<a href="https://a.test/">a</a>' });
    expect(checks.map(({ id, level }) => `${id} ${level}`)).toEqual(
      ['subject', 'optOut', 'values', 'links', 'images', 'size'].map((id) => `${id} ok`),
    );
    expect(checks.find(({ id }) => id === 'links')?.message).toBe('Links with a complete address: 1.');
  });

  it('name at most three of many faults, cut', () => {
    const [fault] = checked({
      html: `<a href="${'x'.repeat(5000)}">a</a>`.repeat(9),
    }).checks.filter(({ id }) => id === 'links');
    expect(fault?.count).toBe(9);
    expect(fault?.where?.map(({ length }) => length)).toEqual([200, 200, 200]);
  });

  it.each([
    ['<br>', 300_000],
    ['<a href=x>', 200_000],
    ['<p style="color:#fff">x', 50_000],
    ['<style></style><b style="color:red">', 30_000],
    ['\u200b<i>', 200_000],
  ])('end with %s repeated', (piece, times) => {
    expect(checked({ html: piece.repeat(times) }).previewText.length).toBeLessThanOrEqual(140);
  });

  it('have a file of shorteners that are hosts', () => {
    const { hosts } = readProgramFile('url-shorteners.toml') as { hosts: string[] };
    expect(hosts).toEqual([...new Set(hosts)].toSorted());
    expect(hosts.filter((host) => !/^[a-z0-9-]+(\.[a-z0-9-]+)+$/.test(host))).toEqual([]);
  });
});

it('shows the beginning of the text behind the subject, with a hidden preheader', () => {
  const html =
    '<title>T</title><div style="display:none">Soon\u200b</div><style>p{}</style><p>Hello</p><p>Ann</p>';
  expect(checked({ html }).previewText).toBe('Soon Hello Ann');
  expect(checked({ text: 'Plain\n text' }).previewText).toBe('Plain text');
});
