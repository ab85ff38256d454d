import * as fc from 'fast-check';
import { type ParsedMail, simpleParser } from 'mailparser';
import { describe, expect, it } from 'vitest';
import { withoutPause } from '../../src/core/concurrency/slices.ts';
import { composeInSteps, messageBytes } from '../../src/mail/compose.ts';
import {
  type Alternative,
  type Attachment,
  CONTENT_ID,
  type CopyDetails,
  MARKS,
  type MessageContent,
} from '../../src/mail/content.ts';

const content = (changes: Partial<MessageContent> = {}): MessageContent => ({
  from: { name: 'Ann Cole', address: 'ann@example.com' },
  to: [{ name: '', address: 'bob@example.net' }],
  cc: [],
  replyTo: null,
  subject: 'Hello',
  html: '<p>Hello</p>',
  text: 'Hello',
  headers: [],
  attachments: [],
  messageId: 'msg_1700000000000_abcdefghijkl@example.com',
  date: 1_700_000_000_000,
  ...changes,
});

const copy = (changes: Partial<CopyDetails> = {}): CopyDetails => ({
  recipient: 'bob@example.net',
  kind: 'marketing',
  unsubscribeUrl: 'https://t.example.com/u/abc',
  reportAbuseUrl: 'https://t.example.com/r/abc',
  unsubscribeAddress: 'unsubscribe-abc@return-a.example.com',
  signedId: 'abc',
  feedbackAddress: 'fbl-abc@return-a.example.com',
  feedbackId: 'camp:acct_1:mk:postrider',
  ...changes,
});

const made = (changes: Partial<MessageContent> = {}, details: Partial<CopyDetails> = {}) =>
  messageBytes(withoutPause(composeInSteps(content(changes), copy(details))));

/** All values of a field, unfolded, in order. */
function fieldsOf(message: Buffer, name: string): string[] {
  const [header = ''] = message.toString().split('\r\n\r\n');
  const unfolded = header.replace(/\r\n(?=[ \t])/g, '').split('\r\n');
  const start = `${name.toLowerCase()}:`;
  return unfolded
    .filter((line) => line.toLowerCase().startsWith(start))
    .map((line) => line.slice(start.length).trim());
}

/** `mixed(alternative(text/plain,text/html),image/png)` */
function outline(entity: string): string {
  const end = entity.indexOf('\r\n\r\n');
  const header = entity.slice(0, end).replace(/\r\n +/g, ' ');
  const [, type = ''] = /^content-type: ([^;\r\n]+)/im.exec(header) ?? [];
  const [, boundary] = /boundary="([^"]+)"/i.exec(header) ?? [];
  if (boundary === undefined) return type;
  const body = `\r\n${entity.slice(end + 4)}`;
  const [preamble = '', ...parts] = body.split(`\r\n--${boundary}`);
  expect(preamble).toBe('');
  expect(parts.pop()).toBe('--\r\n');
  return `${type.replace('multipart/', '')}(${parts.map((part) => outline(part.replace(/^\r\n/, ''))).join(',')})`;
}

const attachment = (name: string, data: string | Buffer, changes: Partial<Attachment> = {}): Attachment => ({
  name,
  contentType: 'application/pdf',
  content: Buffer.from(data).toString('base64'),
  ...changes,
});

describe('a composed message', () => {
  it('has exactly these bytes', () => {
    const golden = [
      'Date: Tue, 14 Nov 2023 22:13:20 +0000',
      'From: Ann Cole <ann@example.com>',
      'To: bob@example.net, =?utf-8?b?SsO2cmc=?= <joerg@example.net>',
      'Cc: "Cole, Eve" <eve@example.net>',
      'Reply-To: help@example.com',
      'Subject: Your order from =?utf-8?q?Z=C3=BCrich?=',
      'Message-ID: <msg_1700000000000_abcdefghijkl@example.com>',
      'Feedback-ID: camp:acct_1:mk:postrider',
      'X-Postrider-Id: abc',
      'List-Unsubscribe: <https://t.example.com/u/abc>,',
      ' <mailto:unsubscribe-abc@return-a.example.com>',
      'List-Unsubscribe-Post: List-Unsubscribe=One-Click',
      'Precedence: bulk',
      'CFBL-Address: fbl-abc@return-a.example.com; report=arf',
      'X-Order: 17',
      'MIME-Version: 1.0',
      'Content-Type: multipart/alternative;',
      ' boundary="=_a_msg1700000000000abcdefghijklexamplecom"',
      '',
      '--=_a_msg1700000000000abcdefghijklexamplecom',
      'Content-Type: text/plain; charset=utf-8',
      'Content-Transfer-Encoding: 7bit',
      '',
      'Hello bob@example.net',
      '--=_a_msg1700000000000abcdefghijklexamplecom',
      'Content-Type: text/html; charset=utf-8',
      'Content-Transfer-Encoding: quoted-printable',
      '',
      '<p>Gr=C3=BC=C3=9Fe</p>',
      '<a href=3D"https://t.example.com/u/abc">x</a>',
      '',
      '--=_a_msg1700000000000abcdefghijklexamplecom--',
      '',
    ].join('\r\n');
    const message = made({
      to: [
        { name: '', address: 'bob@example.net' },
        { name: 'Jörg', address: 'joerg@example.net' },
      ],
      cc: [{ name: 'Cole, Eve', address: 'eve@example.net' }],
      replyTo: { name: '', address: 'help@example.com' },
      subject: 'Your order from Zürich',
      html: `<p>Grüße</p>\n<a href="${MARKS.unsubscribeUrl}">x</a>\n`,
      text: `Hello ${MARKS.recipient}`,
      headers: [['X-Order', '17']],
    });
    expect(message.toString()).toBe(golden);
  });

  it('is deterministic', () => {
    expect(made({ subject: 'é' }).equals(made({ subject: 'é' }))).toBe(true);
  });

  it.each<[string, Partial<MessageContent>, string]>([
    ['html and text', {}, 'alternative(text/plain,text/html)'],
    ['html alone', { text: '' }, 'text/html'],
    ['html and a text to be derived', { text: null }, 'alternative(text/plain,text/html)'],
    ['html that has no text in it', { html: '<img src="cid:a">', text: null }, 'text/html'],
    ['text alone', { html: '' }, 'text/plain'],
    ['nothing', { html: '', text: '' }, 'text/plain'],
    [
      'a file',
      { attachments: [attachment('a.pdf', 'x')] },
      'mixed(alternative(text/plain,text/html),application/pdf)',
    ],
    [
      'an inline image',
      { attachments: [attachment('a.png', 'x', { contentType: 'image/png', contentId: 'a' })] },
      'alternative(text/plain,related(text/html,image/png))',
    ],
    [
      'both',
      {
        attachments: [
          attachment('a.pdf', 'x'),
          attachment('a.png', 'x', { contentType: 'image/png', contentId: 'a' }),
          attachment('b.pdf', 'x'),
        ],
      },
      'mixed(alternative(text/plain,related(text/html,image/png)),application/pdf,application/pdf)',
    ],
    [
      'a file and text alone',
      { html: '', attachments: [attachment('a.pdf', 'x')] },
      'mixed(text/plain,application/pdf)',
    ],
    [
      'an inline image without html to show it in',
      { html: '', attachments: [attachment('a.png', 'x', { contentType: 'image/png', contentId: 'a' })] },
      'mixed(text/plain,image/png)',
    ],
    [
      'files whose types may not be base64',
      {
        attachments: [
          attachment('a.eml', 'x', { contentType: 'message/rfc822' }),
          attachment('b', 'x', { contentType: 'Multipart/mixed; boundary=x' }),
        ],
      },
      'mixed(alternative(text/plain,text/html),application/octet-stream,application/octet-stream)',
    ],
  ])('of %s has the expected structure', (_, changes, expected) => {
    expect(outline(made(changes).toString())).toBe(expected);
  });
});

describe('alternatives', () => {
  const alternative = (position: Alternative['position'], contentType: string, data = 'x'): Alternative => ({
    position,
    contentType,
    content: Buffer.from(data).toString('base64'),
  });
  const invitation = alternative(
    'after-html',
    'text/calendar; charset=utf-8; method=REQUEST',
    'BEGIN:VCALENDAR\r\n',
  );

  it.each<[string, Partial<MessageContent>, string]>([
    ['html', { alternatives: [invitation] }, 'alternative(text/plain,text/html,text/calendar)'],
    ['text alone', { html: '', alternatives: [invitation] }, 'alternative(text/plain,text/calendar)'],
    [
      'files',
      {
        alternatives: [invitation],
        attachments: [attachment('invite.ics', 'x', { contentType: 'application/ics' })],
      },
      'mixed(alternative(text/plain,text/html,text/calendar),application/ics)',
    ],
    [
      'others, in their order',
      {
        alternatives: [
          alternative('before-text', 'text/enriched; charset=utf-8'),
          alternative('before-html', 'text/x-amp-html; charset=utf-8'),
          alternative('before-html', 'text/watch-html; charset=utf-8'),
          alternative('after-html', 'image/png'),
        ],
      },
      'alternative(text/enriched,text/plain,text/x-amp-html,text/watch-html,text/html,image/png)',
    ],
  ])('are next to %s', (_, changes, expected) => {
    expect(outline(made(changes).toString())).toBe(expected);
  });

  it('keep their type, parameters and content', async () => {
    const event = 'BEGIN:VCALENDAR\r\nSUMMARY:Grüße — 漢字\r\nEND:VCALENDAR\r\n';
    const message = made({
      alternatives: [
        alternative('after-html', 'text/calendar; charset=utf-8; method=REQUEST', event),
        alternative('after-html', 'image/png', '\u0000\n\r'),
      ],
    });
    expect(message.toString()).toContain('Content-Type: text/calendar; charset=utf-8; method=REQUEST\r\n');
    const [calendar, image] = (await simpleParser(message)).attachments;
    expect(calendar?.content.toString()).toBe(event);
    expect(image?.content.toString()).toBe('\u0000\n\r');
  });
});

describe('the fields', () => {
  it('omit blind recipients, and have an empty group if there are no others', () => {
    const message = made({ to: [], cc: [] }, { recipient: 'blind@example.net' });
    expect(fieldsOf(message, 'To')).toEqual(['undisclosed-recipients:;']);
    expect(fieldsOf(message, 'Cc')).toEqual([]);
    expect(message.toString()).not.toContain('blind@');
  });

  it('have no To when there are only Cc recipients', () => {
    const message = made({ to: [], cc: [{ name: '', address: 'eve@example.net' }] });
    expect(fieldsOf(message, 'To')).toEqual([]);
    expect(fieldsOf(message, 'Cc')).toEqual(['eve@example.net']);
  });

  it('omit fields without value', () => {
    const message = made({}, { feedbackAddress: null, unsubscribeAddress: null });
    expect(fieldsOf(message, 'CFBL-Address')).toEqual([]);
    expect(fieldsOf(message, 'Reply-To')).toEqual([]);
    expect(fieldsOf(message, 'List-Unsubscribe')).toEqual(['<https://t.example.com/u/abc>']);
    expect(fieldsOf(message, 'List-Unsubscribe-Post')).toEqual(['List-Unsubscribe=One-Click']);
  });

  const ours = '<https://t.example.com/u/abc>, <mailto:unsubscribe-abc@return-a.example.com>';
  const oneClick = 'List-Unsubscribe=One-Click';
  it.each<[string, [string, string][], string[], string[]]>([
    ['nothing', [], [ours], [oneClick]],
    ['an https link', [['List-Unsubscribe', '<https://x.example/u>']], ['<https://x.example/u>'], []],
    ['an address', [['list-unsubscribe', '<mailto:u@x.example>']], ['<mailto:u@x.example>'], []],
    [
      'both fields',
      [
        ['List-Unsubscribe', '<mailto:u@x.example>, <https://x.example/u>'],
        ['LIST-UNSUBSCRIBE-POST', oneClick],
      ],
      ['<mailto:u@x.example>, <https://x.example/u>'],
      [oneClick],
    ],
    [
      'both fields, but no https link',
      [
        ['List-Unsubscribe-Post', oneClick],
        ['List-Unsubscribe', '<mailto:u@x.example>'],
      ],
      ['<mailto:u@x.example>'],
      [],
    ],
    ['the Post field alone', [['List-Unsubscribe-Post', 'X=Y']], [ours], ['X=Y']],
  ])('of unsubscribing, when the caller sets %s', (_, headers, list, post) => {
    const message = made({ headers });
    expect(fieldsOf(message, 'List-Unsubscribe')).toEqual(list);
    expect(fieldsOf(message, 'List-Unsubscribe-Post')).toEqual(post);
  });

  it.each<[string, Partial<CopyDetails>, [string, string][], string[], string[]]>([
    ['transactional mail', { kind: 'transactional' }, [], [ours], []],
    [
      'transactional mail with a Post field alone',
      { kind: 'transactional' },
      [['List-Unsubscribe-Post', oneClick]],
      [ours],
      [],
    ],
    [
      'transactional mail with both fields',
      { kind: 'transactional' },
      [
        ['List-Unsubscribe', '<https://x.example/u>'],
        ['List-Unsubscribe-Post', oneClick],
      ],
      ['<https://x.example/u>'],
      [oneClick],
    ],
    ['essential mail', { kind: 'essential' }, [], [], []],
    [
      'essential mail with a Post field',
      { kind: 'essential' },
      [['List-Unsubscribe-Post', oneClick]],
      [],
      [],
    ],
    [
      'essential mail with its own link',
      { kind: 'essential' },
      [['List-Unsubscribe', '<https://x.example/u>']],
      ['<https://x.example/u>'],
      [],
    ],
    [
      'marketing mail with an http link',
      { unsubscribeUrl: 'http://t.example.com/u/abc' },
      [],
      ['<http://t.example.com/u/abc>, <mailto:unsubscribe-abc@return-a.example.com>'],
      [],
    ],
    [
      'marketing mail with an http link and a Post field',
      { unsubscribeUrl: 'http://t.example.com/u/abc' },
      [['List-Unsubscribe-Post', oneClick]],
      ['<http://t.example.com/u/abc>, <mailto:unsubscribe-abc@return-a.example.com>'],
      [],
    ],
  ])('of unsubscribing in %s', (_, details, headers, list, post) => {
    const message = made({ headers }, details);
    expect(fieldsOf(message, 'List-Unsubscribe')).toEqual(list);
    expect(fieldsOf(message, 'List-Unsubscribe-Post')).toEqual(post);
  });

  const id = 'sgroup_1700000000000_abcdefghijkl';
  it.each<[string, Partial<MessageContent>, string[]]>([
    ['no list', {}, []],
    ['a name', { list: { id, name: 'Monthly "news"' } }, [`"Monthly \\"news\\"" <${id}.example.com>`]],
    ['no name', { list: { id, name: '' } }, [`<${id}.example.com>`]],
    [
      'a name beyond ASCII',
      { list: { id, name: 'Grüße' } },
      [`=?utf-8?b?R3LDvMOfZQ==?= <${id}.example.com>`],
    ],
    ['an identifier above 255 bytes', { list: { id: 'x'.repeat(250), name: '' } }, []],
    [
      "the caller's own",
      { list: { id, name: '' }, headers: [['list-id', '<mine.example.com>']] },
      [`<${id}.example.com>`],
    ],
  ])('of marketing mail have List-Id, with %s', (_, changes, expected) => {
    expect(fieldsOf(made(changes), 'List-Id')).toEqual(expected);
    expect(fieldsOf(made(changes, { kind: 'transactional' }), 'List-Id')).toEqual(
      changes.headers === undefined ? [] : ['<mine.example.com>'],
    );
  });

  it('of marketing mail have Precedence once', () => {
    expect(fieldsOf(made(), 'Precedence')).toEqual(['bulk']);
    expect(fieldsOf(made({ headers: [['Precedence', 'list']] }), 'Precedence')).toEqual(['bulk']);
    expect(fieldsOf(made({}, { kind: 'transactional' }), 'Precedence')).toEqual([]);
  });

  it("include the caller's fields, in order", async () => {
    const headers: [string, string][] = [
      ['X-One', 'plain'],
      ['References', '<a@example.com> <b@example.com>'],
      ['X-Two', 'Grüße 👍'],
      ['X-Long', 'w'.repeat(2000)],
    ];
    const parsed = await simpleParser(made({ headers }));
    expect(parsed.headers.get('x-one')).toBe('plain');
    expect(parsed.references).toEqual(['<a@example.com>', '<b@example.com>']);
    expect(fieldsOf(made({ headers }), 'X-Two')).toEqual(['=?utf-8?b?R3LDvMOfZSDwn5GN?=']);
    expect(fieldsOf(made({ headers }), 'X-Long')[0]).toMatch(/^=\?utf-8\?q\?w{50,}\?= =\?/);
  });

  it.each<[string, Partial<MessageContent>, Partial<CopyDetails>, boolean]>([
    ['nobody', {}, {}, false],
    ['a name only', { from: { name: 'Jörg', address: 'j@example.com' } }, {}, false],
    ['a recipient', { to: [{ name: '', address: 'jörg@example.net' }] }, {}, true],
    ['another recipient', { cc: [{ name: '', address: 'jörg@example.net' }] }, {}, true],
    ['a blind recipient', {}, { recipient: 'jörg@example.net' }, true],
    ['the sender', { from: { name: '', address: 'jörg@example.com' } }, {}, true],
    ['the address for replies', { replyTo: { name: '', address: 'jörg@example.com' } }, {}, true],
  ])('need SMTPUTF8 for %s: %#', (_, changes, details, expected) => {
    expect(withoutPause(composeInSteps(content(changes), copy(details))).needsSmtpUtf8).toBe(expected);
  });

  it('contain an SMTPUTF8 address as UTF-8', () => {
    expect(fieldsOf(made({ to: [{ name: '', address: 'jörg@example.net' }] }), 'To')).toEqual([
      'jörg@example.net',
    ]);
  });
});

describe('a MIME parser finds', () => {
  const addresses = (field: ParsedMail['to']) =>
    (Array.isArray(field) ? field : field ? [field] : []).flatMap((list) => list.value);

  it('every word unchanged, in any script', async () => {
    const words = 'שלום עולם · مرحبا · Grüße · 漢字かな · 👩‍👩‍👧 👍🏽 · Ελληνικά';
    const parsed = await simpleParser(
      made({
        from: { name: words, address: 'ann@example.com' },
        to: Array.from({ length: 50 }, (_, index) => ({
          name: `${words}, ${index}`,
          address: `to-${index}@example.net`,
        })),
        replyTo: { name: 'Help "desk" (24h), Inc.', address: 'help@example.com' },
        subject: `${words} ${words} ${words}`,
        text: `${words}\r\nFrom here\n.\n..\n${'x'.repeat(2000)}  \nend`,
        html: `<p dir="rtl">${words}</p>`,
      }),
    );
    expect(parsed.from?.value).toEqual([{ name: words, address: 'ann@example.com' }]);
    expect(addresses(parsed.to)).toEqual(
      Array.from({ length: 50 }, (_, index) => ({
        name: `${words}, ${index}`,
        address: `to-${index}@example.net`,
      })),
    );
    expect(parsed.replyTo?.value).toEqual([{ name: 'Help "desk" (24h), Inc.', address: 'help@example.com' }]);
    expect(parsed.subject).toBe(`${words} ${words} ${words}`);
    expect(parsed.text).toBe(`${words}\nFrom here\n.\n..\n${'x'.repeat(2000)}  \nend`);
    expect(parsed.html).toBe(`<p dir="rtl">${words}</p>`);
    expect(parsed.date?.getTime()).toBe(1_700_000_000_000);
    expect(parsed.messageId).toBe('<msg_1700000000000_abcdefghijkl@example.com>');
  });

  it('ten files and an inline image, with names and bytes', async () => {
    const names = [
      'report.pdf',
      'with blanks and "quotes".pdf',
      'Größe.pdf',
      '漢字.pdf',
      '👍🏽.pdf',
      'שלום.pdf',
      `${'long-'.repeat(50)}.pdf`,
      `${'ü'.repeat(120)}.pdf`,
      "it's 100% (new); final=yes.pdf",
      'tail.',
    ];
    const bytes = (index: number) =>
      Buffer.from(Array.from({ length: 300 * index }, (_, at) => (at * 7) % 256));
    const logo = attachment('lögo.png', bytes(9), {
      contentType: 'image/png',
      contentId: 'logo@example.com',
    });
    const parsed = await simpleParser(
      made({
        html: '<img src="cid:logo@example.com">',
        attachments: [logo, ...names.map((name, index) => attachment(name, bytes(index)))],
      }),
      { keepCidLinks: true },
    );
    const [inline, ...files] = parsed.attachments;
    expect(inline).toMatchObject({
      cid: 'logo@example.com',
      filename: 'lögo.png',
      contentDisposition: 'inline',
      related: true,
    });
    expect(inline?.content.equals(bytes(9))).toBe(true);
    expect(files.map((file) => file.filename)).toEqual(names);
    expect(files.every((file, index) => file.content.equals(bytes(index)))).toBe(true);
    expect(files.every((file) => file.contentDisposition === 'attachment')).toBe(true);
  });

  it.each([
    ['text/csv', 'a;b\r\n1;2\r\n', '7bit'],
    ['text/plain; charset=iso-8859-1', 'Gr\u00f6\u00dfe\nund noch eine lange Zeile\n', 'quoted-printable'],
    ['application/json', '{"name": "a longer value"}\n', 'quoted-printable'],
    ['application/atom+xml', '<feed/>', '7bit'],
    ['application/octet-stream', 'plain', 'base64'],
    ['application/xmlish', 'plain', 'base64'],
  ])('a file of the type %s with its bytes, as readable as possible', async (contentType, data, encoding) => {
    const bytes = Buffer.from(data, 'latin1');
    const message = made({ attachments: [attachment('file', bytes, { contentType })] });
    const [, header = ''] =
      /\r\n(Content-Disposition: [\s\S]*?)\r\n\r\n/.exec(message.toString('latin1')) ?? [];
    expect(header).toMatch(new RegExp(`^Content-Transfer-Encoding: ${encoding}$`, 'm'));
    const { attachments } = await simpleParser(message);
    expect(attachments[0]?.content.equals(bytes)).toBe(true);
  });

  it('the text of the HTML, with the links of the copy, when the caller sent none', async () => {
    const html = `<p>Hello <b>R&amp;D</b></p><p><a href="${MARKS.unsubscribeUrl}">Leave</a></p>`;
    const parsed = await simpleParser(
      made({ html, text: null }, { unsubscribeUrl: 'https://t.example.com/u/a?b&c' }),
    );
    expect(parsed.text).toBe('Hello R&D\n\nLeave <https://t.example.com/u/a?b&c>');
    expect(parsed.html).toContain('href="https://t.example.com/u/a?b&amp;c"');
  });

  it('a part that looks like a boundary', async () => {
    const boundary = '--=_a_msg1700000000000abcdefghijklexamplecom--';
    const parsed = await simpleParser(
      made({ text: `a\n${boundary}\nb`, html: `<pre>\n${boundary}\n</pre>` }),
    );
    expect(parsed.text).toBe(`a\n${boundary}\nb`);
    expect(parsed.html).toBe(`<pre>\n${boundary}\n</pre>`);
  });
});

describe('the text part', () => {
  const type = 'Content-Type: text/plain; charset=utf-8';

  it('is flowed when it is derived', () => {
    const html = `<p>${'Many words '.repeat(20)}</p><p>&gt; From</p>`;
    const message = made({ html, text: null }).toString();
    expect(message).toContain(`${type}; format=flowed\r\n`);
    expect(message).toContain(`${'Many words '.repeat(6)}Many \r\n`);
    expect(message).toContain('\r\n > From');
  });

  it("is the caller's text unchanged", () => {
    const text = `${'Many words '.repeat(20)}\n> From`;
    const message = made({ text }).toString();
    expect(message).toContain(`${type}\r\n`);
    expect(message).toContain('\r\n> From');
    expect(message.replace(/\r\n/g, '\n')).toContain(text);
  });
});

describe('any content', () => {
  const hostile = fc
    .array(
      fc.oneof(
        fc.string({ unit: 'binary' }),
        fc.constantFrom(
          '\r\n',
          '\n',
          '\r',
          '\u0000',
          '=?utf-8?q?',
          '--=_a_',
          '👍',
          'From ',
          '\r\nBcc: x@example.com\r\n\r\n',
        ),
        fc.nat({ max: 1500 }).map((length) => 'x'.repeat(length)),
      ),
      { maxLength: 8 },
    )
    .map((pieces) => pieces.join(''));
  const any = fc.record({
    from: fc.record({ name: hostile, address: fc.constant('ann@example.com') }),
    subject: hostile,
    html: hostile,
    text: hostile,
    headers: fc.array(fc.tuple(fc.constantFrom('X-A', 'X-B'), hostile), { maxLength: 3 }),
    attachments: fc.array(
      fc.record({
        name: hostile,
        contentType: fc.constant('text/plain'),
        content: fc.base64String({ maxLength: 500 }),
        contentId: fc.option(fc.stringMatching(CONTENT_ID), { nil: undefined }),
      }),
      { maxLength: 3 },
    ),
  });

  it('is composed as ASCII in CRLF lines of at most 998 bytes, with exactly the expected fields', () => {
    const names = withoutPause(
      composeInSteps(
        content({
          headers: [
            ['X-A', ''],
            ['X-B', ''],
          ],
        }),
        copy(),
      ),
    ).header.map((field) => field.split(':')[0]);
    const known = new Set([...names, 'Content-Transfer-Encoding']);
    fc.assert(
      fc.property(any, (changes) => {
        const message = made(changes).toString('latin1');
        expect(message.endsWith('\r\n')).toBe(true);
        for (const line of message.split('\r\n')) {
          expect(line).toMatch(/^[\t -~]*$/);
          expect(line.length).toBeLessThanOrEqual(998);
        }
        const [header = ''] = message.split('\r\n\r\n');
        for (const field of header.split(/\r\n(?! )/)) expect(known).toContain(field.split(':')[0]);
      }),
    );
  });
});
