import { describe, expect, it } from 'vitest';
import { parseSubmitted, type SubmittedMail } from '../../../src/smtp/submission/submitted-mail.ts';
import { sample } from '../../support/samples.ts';

function read(text: string): SubmittedMail {
  const mail = parseSubmitted(Buffer.from(text.replaceAll('\n', '\r\n')));
  if ('problem' in mail) throw new Error(mail.problem);
  return mail;
}

function problem(text: string | Buffer): string {
  const mail = parseSubmitted(typeof text === 'string' ? Buffer.from(text) : text);
  return 'problem' in mail ? mail.problem : '';
}

const HEAD = 'From: a@example.com\nTo: b@example.net\nSubject: Hi\nMIME-Version: 1.0\n';

describe('the text of a submitted mail', () => {
  it.each<[string, string, { text: string | null; html: string | null }]>([
    ['plain text', 'Content-Type: text/plain\n\nHello\n', { text: 'Hello\n', html: null }],
    ['no content type', '\nHello\n', { text: 'Hello\n', html: null }],
    ['html alone', 'Content-Type: text/html\n\n<p>Hello</p>', { text: null, html: '<p>Hello</p>' }],
    [
      'both',
      'Content-Type: multipart/alternative; boundary=b\n\n--b\n\nHello\n--b\nContent-Type: text/html\n\n<p>Hello</p>\n--b--\n',
      { text: 'Hello', html: '<p>Hello</p>' },
    ],
    [
      'another charset, encoded',
      'Content-Type: text/plain; charset=iso-8859-1\nContent-Transfer-Encoding: quoted-printable\n\nGr=FC=DFe=\n!\n',
      { text: 'Grüße!\n', html: null },
    ],
    [
      'a footer below both',
      `Content-Type: multipart/mixed; boundary=m

--m
Content-Type: multipart/alternative; boundary=b

--b

Hello
--b
Content-Type: text/html

<p>Hello</p>
--b--
--m

Sent by <us>
--m--
`,
      {
        text: 'Hello\nSent by <us>',
        html: '<p>Hello</p>\n<pre style="font:inherit;white-space:pre-wrap">Sent by &lt;us&gt;</pre>',
      },
    ],
    [
      'html below text',
      'Content-Type: multipart/mixed; boundary=m\n\n--m\n\nHello\n--m\nContent-Type: text/html\n\n<b>you</b>\n--m--\n',
      { text: null, html: '<pre style="font:inherit;white-space:pre-wrap">Hello</pre>\n<b>you</b>' },
    ],
    [
      'a choice whose HTML is in several parts',
      `Content-Type: multipart/alternative; boundary=a

--a

both parts
--a
Content-Type: multipart/mixed; boundary=m

--m
Content-Type: text/html

<p>first</p>
--m
Content-Type: application/pdf
Content-Disposition: inline; filename=x.pdf

x
--m
Content-Type: text/html

<p>second</p>
--m--
--a--
`,
      { text: 'both parts', html: '<p>first</p>\n<p>second</p>' },
    ],
    [
      'a choice whose text is in several parts',
      `Content-Type: multipart/alternative; boundary=a

--a
Content-Type: multipart/mixed; boundary=m

--m

first
--m

second
--m--
--a
Content-Type: text/html

<p>both</p>
--a--
`,
      { text: 'first\nsecond', html: '<p>both</p>' },
    ],
    [
      'a part with a file name',
      'Content-Type: text/plain; name="mail.txt"\n\nHello\n',
      { text: 'Hello\n', html: null },
    ],
    [
      'choices with file names',
      'Content-Type: multipart/alternative; boundary=b\n\n--b\nContent-Type: text/plain; name=a\n\nHello\n--b\nContent-Type: text/html; name=b\n\n<p>Hello</p>\n--b--\n',
      { text: 'Hello', html: '<p>Hello</p>' },
    ],
    [
      'format=flowed',
      'Content-Type: text/plain; format=flowed\n\nOne \nparagraph\n  stuffed\n> quoted \n> text\n>> deeper\nbye\n-- \nMe\n',
      { text: 'One paragraph\n stuffed\n> quoted text\n>> deeper\nbye\n-- \nMe\n', html: null },
    ],
    [
      'format=flowed with delsp',
      'Content-Type: text/plain; format=flowed; delsp=yes\n\nhttps://x.example/aa \nbb?t=1\n',
      { text: 'https://x.example/aabb?t=1\n', html: null },
    ],
  ])('is read from %s', (_, body, expected) => {
    expect(read(HEAD + body)).toMatchObject(expected);
  });

  it.each([
    'Content-Type: application/pdf\n\nx',
    'Content-Type: multipart/mixed; boundary=m\n\n--m\nContent-Type: application/pdf\n\nx\n--m--\n',
    'Content-Type: text/plain; name=list.txt\nContent-Disposition: attachment\n\nx',
  ])('is empty in a mail that has a file only: %j', (body) => {
    const { text, html, attachments } = read(HEAD + body);
    expect([text, html, attachments.length]).toEqual(['', null, 1]);
  });
});

describe('the addresses', () => {
  it('are read where name and address share one encoded word', () => {
    const encoded = Buffer.from('Zoë Müller <zoe@example.net>').toString('base64');
    const mail = read(`From: a@example.com\nTo: =?utf-8?b?${encoded}?=, bob@example.net\n\nx`);
    expect(mail.to).toEqual([
      { name: 'Zoë Müller', address: 'zoe@example.net' },
      { name: '', address: 'bob@example.net' },
    ]);
  });

  it('are read with names in any encoding, and groups are flattened', () => {
    const mail = read(`From: =?utf-8?q?L=C3=A4den_=26_S=C3=B6hne?= <shop@example.com>
To: "Doe, John" <john@example.net>, =?iso-8859-1?q?Zo=EB?= <zoe@example.net>,
 friends: ada@example.net, bob@example.net;
Cc: undisclosed-recipients:;
Reply-To: help@example.com
Subject: =?utf-8?b?R3LDvMOfZQ==?= und
 mehr

x`);
    expect(mail.from).toEqual([{ name: 'Läden & Söhne', address: 'shop@example.com' }]);
    expect(mail.to).toEqual([
      { name: 'Doe, John', address: 'john@example.net' },
      { name: 'Zoë', address: 'zoe@example.net' },
      { name: '', address: 'ada@example.net' },
      { name: '', address: 'bob@example.net' },
    ]);
    expect(mail.cc).toEqual([]);
    expect(mail.replyTo).toEqual([{ name: '', address: 'help@example.com' }]);
    expect(mail.subject).toBe('Grüße und mehr');
  });
});

describe('the attachments', () => {
  const MIXED = `${HEAD}Content-Type: multipart/related; boundary=r

--r
Content-Type: text/html

<img src="cid:logo@x"> Hello
--r
Content-Type: image/png
Content-ID: <logo@x>
Content-Transfer-Encoding: base64
Content-Disposition: inline; filename="../../logo.png"

aGVs
bG8=
--r
Content-Type: text/calendar; charset=utf-8; method=REQUEST

BEGIN:VCALENDAR
--r
Content-Type: application/octet-stream
Content-ID: <nobody-asks@x>
Content-Disposition: attachment;
 filename*0*=utf-8''Rechnung%20M;
 filename*1*=%C3%A4rz.pdf

raw
--r
Content-Type: message/rfc822

Subject: inner

Inner
--r
Content-Type: text/plain
Content-Disposition: attachment

A note
--r--
`;

  it.each(['cid:part1.a+b%40host', 'CID:part1.a%2Bb%40host', 'cid:part1.a+b@host'])(
    'are inline where the html refers to them by %s',
    (url) => {
      const html = `Content-Type: multipart/related; boundary=r\n\n--r\nContent-Type: text/html\n\n<img src="${url}">\n--r\n`;
      const image = 'Content-Type: image/png\nContent-ID: <part1.a+b@host>\n\nx\n--r--\n';
      expect(read(HEAD + html + image).attachments).toMatchObject([{ contentId: 'part1.a+b@host' }]);
    },
  );

  it('keep their names, types and bytes; those that the html shows are inline', () => {
    const { attachments, html, text } = read(MIXED);
    expect({ html, text }).toEqual({ html: '<img src="cid:logo@x"> Hello', text: null });
    const base64 = (content: string) => Buffer.from(content).toString('base64');
    expect(attachments).toEqual([
      { name: 'logo.png', contentType: 'image/png', content: 'aGVsbG8=', contentId: 'logo@x' },
      {
        name: 'attachment-2',
        contentType: 'text/calendar; charset=utf-8; method=REQUEST',
        content: base64('BEGIN:VCALENDAR'),
      },
      { name: 'Rechnung März.pdf', contentType: 'application/octet-stream', content: base64('raw') },
      {
        name: 'message-4.eml',
        contentType: 'application/octet-stream',
        content: base64('Subject: inner\r\n\r\nInner'),
      },
      { name: 'attachment-5', contentType: 'text/plain', content: base64('A note') },
    ]);
  });
});

describe('the alternatives', () => {
  const form = (type: string, body: string) => `--b\nContent-Type: ${type}\n\n${body}\n`;
  const forms = (...parts: string[]) =>
    read(`${HEAD}Content-Type: multipart/alternative; boundary=b\n\n${parts.join('')}--b--\n`);
  const shown = ({ alternatives }: SubmittedMail) =>
    alternatives.map(({ position, contentType, content }) => [
      position,
      contentType,
      Buffer.from(content, 'base64').toString(),
    ]);

  it('next to text and HTML are kept in order and are not attachments', () => {
    const mail = forms(
      form('text/enriched', '<bold>Hello</bold>'),
      form('text/plain', 'Hello'),
      form('text/x-amp-html', '<html amp4email></html>'),
      form('text/watch-html', '<b>Hi</b>'),
      form('text/html', '<p>Hello</p>'),
      form('text/calendar; method=REQUEST; charset="utf-8"; name="invite.ics"', 'BEGIN:VCALENDAR'),
    );
    expect(mail).toMatchObject({ text: 'Hello', html: '<p>Hello</p>', attachments: [] });
    expect(shown(mail)).toEqual([
      ['before-text', 'text/enriched; charset=utf-8', '<bold>Hello</bold>'],
      ['before-html', 'text/x-amp-html; charset=utf-8', '<html amp4email></html>'],
      ['before-html', 'text/watch-html; charset=utf-8', '<b>Hi</b>'],
      ['after-html', 'text/calendar; charset=utf-8; method=REQUEST; name=invite.ics', 'BEGIN:VCALENDAR'],
    ]);
  });

  it('next to text only do not add HTML', () => {
    const mail = forms(form('text/plain', 'Hello'), form('text/calendar; method=CANCEL', 'BEGIN:VCALENDAR'));
    expect(mail).toMatchObject({ text: 'Hello', html: null });
    expect(shown(mail)).toEqual([
      ['before-html', 'text/calendar; charset=utf-8; method=CANCEL', 'BEGIN:VCALENDAR'],
    ]);
  });

  it('in another charset are converted to UTF-8; other bytes are not changed', () => {
    const mail = forms(
      form('text/plain', 'x'),
      '--b\nContent-Type: text/calendar; charset=iso-8859-1\nContent-Transfer-Encoding: quoted-printable\n\nGr=FC=DFe\n',
      '--b\nContent-Type: application/x-form\nContent-Transfer-Encoding: base64\n\nAP8=\n',
    );
    expect(shown(mail)[0]?.[2]).toBe('Grüße');
    expect(mail.alternatives[1]).toMatchObject({ contentType: 'application/x-form', content: 'AP8=' });
  });

  it('that are files are attachments', () => {
    const mail = forms(
      form('text/plain', 'x'),
      '--b\nContent-Type: application/pdf; name=a.pdf\n\nx\n',
      '--b\nContent-Type: text/calendar\nContent-Disposition: attachment; filename=b.ics\n\nx\n',
      '--b\nContent-Type: image/png\nContent-ID: <logo@x>\n\nx\n',
      form('message/rfc822', 'Subject: x\n\nx'),
    );
    expect(mail.alternatives).toEqual([]);
    expect(mail.attachments.map(({ name }) => name)).toEqual([
      'a.pdf',
      'b.ics',
      'attachment-3',
      'message-4.eml',
    ]);
  });
});

describe('the Message-ID', () => {
  it.each<[string, string, string | null]>([
    ['one', 'Message-ID: <a.b$1=c@mail.example.com>\n', 'a.b$1=c@mail.example.com'],
    ['none', '', null],
    ['two', 'Message-ID: <a@example.com>\nMessage-ID: <b@example.com>\n', null],
    ['one without brackets', 'Message-ID: a@example.com\n', null],
    ['one with blanks', 'Message-ID: <a b@example.com>\n', null],
    ['one without a domain', 'Message-ID: <a>\n', null],
    ['two in one field', 'Message-ID: <a@example.com> <b@example.com>\n', null],
    ['one that is not ASCII', 'Message-ID: <ä@example.com>\n', null],
  ])('is read or ignored: %s', (_, field, expected) => {
    expect(read(`${field}${HEAD}\nx`).messageId).toBe(expected);
  });
});

describe('the header fields', () => {
  it('are custom fields, without those of the service and trace fields', () => {
    const mail = read(`Received: from somewhere
DKIM-Signature: v=1
Return-Path: <x@example.com>
Date: Thu, 15 Jan 2026 12:00:00 +0000
Message-ID: <1@example.com>
User-Agent: Something 1.0
In-Reply-To: <0@example.com>
x-order-id: 4711
X-Name: =?utf-8?q?zw=C3=B6lf?=
X-Order-Id: again
X-Postrider-Campaign: campaign_1_x
X-Postrider-Track: clicks
X-Postrider-Track: opens
X-Postrider-Tag: one
X-Postrider-Tag: two
${HEAD}Content-Type: text/plain
Bcc: hidden@example.net

x`);
    expect(mail.headers).toEqual([
      ['User-Agent', 'Something 1.0'],
      ['In-Reply-To', '<0@example.com>'],
      ['X-Order-Id', '4711'],
      ['X-Name', 'zwölf'],
    ]);
    expect(mail.controls).toEqual([
      ['campaign', 'campaign_1_x'],
      ['track', 'clicks'],
      ['tag', 'one'],
      ['tag', 'two'],
    ]);
  });
});

describe('a mail that cannot be parsed completely is refused', () => {
  const many = (count: number) =>
    `${HEAD}Content-Type: multipart/mixed; boundary=b\n\n${'--b\n\nx\n'.repeat(count)}--b--\n`;
  const deep = (depth: number): string =>
    depth === 0
      ? '\nx'
      : `Content-Type: multipart/mixed; boundary=b${depth}\n\n--b${depth}\n${deep(depth - 1)}\n--b${depth}--\n`;

  it.each<[string, string, RegExp]>([
    ['signed mail', `${HEAD}Content-Type: multipart/signed; boundary=b\n\n--b\n\nx\n--b--\n`, /signed/],
    [
      'encrypted mail, inside',
      `${HEAD}Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: multipart/encrypted; boundary=c\n\n--c\n\nx\n--c--\n--b--\n`,
      /Signed and encrypted/,
    ],
    [
      'a multipart without its parts',
      `${HEAD}Content-Type: multipart/mixed; boundary=b\n\nx`,
      /cannot be parsed/,
    ],
    ['multiparts nested too deep', HEAD + deep(9), /cannot be parsed/],
    ['too many parts', many(100), /100 parts/],
    ['too many header fields', `${'X-A: b\n'.repeat(500)}\nx`, /500 fields/],
    ['too long a header field', `X-A: ${'b'.repeat(17_000)}\n\nx`, /longer than 16384/],
    ['too long a header', `${'X-A: '.concat('b'.repeat(900), '\n').repeat(80)}\nx`, /longer than 65536/],
  ])('%s', (_, mail, words) => {
    expect(problem(mail)).toMatch(words);
  });

  it('more than 50 MB', () => {
    const mail = Buffer.concat([Buffer.from(`${HEAD}\nx`), Buffer.alloc(50 * 1024 * 1024, 'x')]);
    expect(problem(mail)).toBe('The mail is longer than 52428800 bytes');
  });

  it('and other mail is not', () => {
    expect(problem(many(80))).toBe('');
    expect(problem(HEAD + deep(8))).toBe('');
    expect(problem(`${'X-A: b\n'.repeat(400)}\n${'x\n\n'.repeat(50_000)}`)).toBe('');
  });
});

describe('a mail of other programs', () => {
  const parsed = (name: string): SubmittedMail => {
    const mail = parseSubmitted(sample(name));
    if ('problem' in mail) throw new Error(mail.problem);
    return mail;
  };

  it.each([
    ['windows-1252-body', 'Preis: 99 € – „heute“ It’s'],
    ['charset-cp866', 'Привет'],
    ['charset-cp932', '①こんにちは'],
    ['charset-iso-2022-kr', '안녕'],
    ['charset-utf-7', 'Grüße'],
    ['charset-x-mac-roman', 'Grüße'],
  ])('has its characters: %s', (name, text) => {
    expect(parsed(`sub-${name}.eml`).text?.trim()).toBe(text);
  });

  it('has the characters of its header fields', () => {
    expect(parsed('sub-windows-1252-from.eml').from).toEqual([{ name: 'O’Brien', address: 'a@sender.test' }]);
    expect(parsed('sub-windows-1252-subject.eml').subject).toBe('Angebot – nur 99 € It’s');
  });

  it('has a From whose colon follows a space (RFC 5322 §4.5.3)', () => {
    expect(parsed('sub-from-space-colon.eml').from).toEqual([{ name: '', address: 'a@sender.test' }]);
  });

  it('has file names with spaces and without quotes', () => {
    expect(parsed('sub-unquoted-filename.eml').attachments[0]?.name).toBe('This is a test.txt');
  });

  it('has decoded files in uuencode', () => {
    const content = parsed('sub-uuencode.eml').attachments[0]?.content ?? '';
    const [, line = ''] = sample('sub-uuencode.eml').toString().split('begin 644 x.bin\r\n');
    expect(Buffer.from(content, 'base64').toString('latin1')).toBe(uudecoded(line.split('\r\n', 1)[0] ?? ''));
  });

  it('keeps the spaces of a subject and of custom fields, wherever they are folded', () => {
    const mail = read('From: a@example.com\nSubject: Invoice  12   of\n  May\nX-Note: a  b\n\tc\n\nx\n');
    expect(mail.subject).toBe('Invoice  12   of  May');
    expect(mail.headers).toEqual([['X-Note', 'a  b c']]);
  });

  it('has file names of 255 characters at most, with their extension', () => {
    const name = `${'a'.repeat(300)}.tar`;
    const mail = read(
      `${HEAD}Content-Type: application/x-tar\nContent-Disposition: attachment; filename="${name}"\n\nx\n`,
    );
    expect(mail.attachments[0]?.name).toBe(`${'a'.repeat(251)}.tar`);
  });

  it.each([
    [
      `${HEAD}Content-Type: text/plain; charset=x-none\n\nx`,
      'The charset "x-none" of a text is not supported',
    ],
    [
      `${HEAD}Content-Type: multipart/alternative; boundary=b\n\n--b\n\nx\n--b\nContent-Type: text/html; charset=johab\n\nx\n--b--\n`,
      'The charset "johab" of a text is not supported',
    ],
    ['Subject: =?x-none?q?a?=\n\nx', 'The charset "x-none" of a header field is not supported'],
    [
      `${HEAD}Content-Type: application/pdf\nContent-Disposition: attachment; filename*=x-none''a\n\nx`,
      'The charset "x-none" of a header field is not supported',
    ],
    [
      `${HEAD}Content-Type: text/plain\nContent-Transfer-Encoding: x-yenc\n\nx`,
      'The transfer encoding "x-yenc" is not supported',
    ],
  ])('is refused when it cannot be decoded without guessing', (mail, words) => {
    expect(problem(mail)).toContain(words);
  });

  it('passes on files of an unknown charset byte for byte', () => {
    const mail = read(
      `${HEAD}Content-Type: multipart/mixed; boundary=b\n\n--b\n\nx\n--b\nContent-Type: text/csv; charset=x-none\nContent-Disposition: attachment; filename=a.csv\n\na;b\n--b--\n`,
    );
    expect(mail.attachments[0]).toMatchObject({
      contentType: 'text/csv; charset=x-none',
      content: Buffer.from('a;b').toString('base64'),
    });
  });
});

/** One line of uuencode, by the definition of POSIX. */
function uudecoded(line: string): string {
  const [length = 0, ...bits] = Array.from(line).map((char) => (char.charCodeAt(0) - 32) & 63);
  const binary = bits.map((each) => each.toString(2).padStart(6, '0')).join('');
  return Array.from({ length }, (_, n) =>
    String.fromCharCode(Number.parseInt(binary.slice(8 * n, 8 * n + 8), 2)),
  ).join('');
}
