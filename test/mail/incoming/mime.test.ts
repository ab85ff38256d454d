import { describe, expect, it } from 'vitest';
import { INCOMING_LIMITS, type IncomingLimits } from '../../../src/mail/incoming/limits.ts';
import { contentOf, leavesOf, type Part, readMail, textOf } from '../../../src/mail/incoming/mime.ts';

const read = (text: string, limits: Partial<IncomingLimits> = {}) =>
  readMail(Buffer.from(text, 'latin1'), { ...INCOMING_LIMITS, ...limits });
const leaves = (mail: Part) => [...leavesOf(mail)].map((part) => `${part.type}:${textOf(part, 1000).trim()}`);

const TWO_PARTS = `Content-Type: multipart/mixed; boundary="b"

preamble
--b
Content-Type: text/plain

one
--b
Content-Type: text/html

two
--b--
epilogue`;

describe('parts', () => {
  it.each([
    ['LF', TWO_PARTS],
    ['CRLF', TWO_PARTS.replaceAll('\n', '\r\n')],
    ['CR alone', TWO_PARTS.replaceAll('\n', '\r')],
    ['an mbox separator', `From a@example.com Thu Apr 29 23:34:45 2015\n${TWO_PARTS}`],
    ['empty lines before the header', `\n\n${TWO_PARTS}`],
    ['no end', TWO_PARTS.replace('\n--b--\nepilogue', '')],
    [
      'a boundary that is not named',
      TWO_PARTS.replace('; boundary="b"', '').replaceAll('--b', '--bound').replace('preamble\n', ''),
    ],
    [
      'a boundary that is not used',
      TWO_PARTS.replace('"b"', '"c"').replaceAll('--b', '--bound').replace('preamble\n', ''),
    ],
  ])('are found in a mail with %s', (_, mail) => {
    expect(leaves(read(mail))).toEqual(['text/plain:one', 'text/html:two']);
  });

  it('are separate when one boundary is the prefix of another', () => {
    const mail = `Content-Type: multipart/mixed; boundary=b\n\n--b\n\n--bc\none\n--b--`;
    expect(leaves(read(mail))).toEqual(['text/plain:--bc\none']);
  });

  it('are absent in a multipart without delimiters, which is a leaf', () => {
    expect(leaves(read('Content-Type: multipart/mixed; boundary=b\n\nhello'))).toEqual([
      'multipart/mixed:hello',
    ]);
  });

  it('are leaves when they are messages', () => {
    const mail =
      'Content-Type: message/rfc822\n\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nx\n--b--';
    expect(leaves(read(mail))).toHaveLength(1);
  });
});

describe('limits', () => {
  const nested = (levels: number) =>
    Array.from(
      { length: levels },
      (_, i) => `Content-Type: multipart/mixed; boundary=b${i}\n\n--b${i}\n`,
    ).join('');
  const depthOf = (part: Part): number => 1 + Math.max(0, ...part.children.map(depthOf));

  it('bound the levels of nesting', () => {
    expect(depthOf(read(nested(1000)))).toBe(INCOMING_LIMITS.depth + 1);
  });

  it('bound the number of parts', () => {
    const mail = `Content-Type: multipart/mixed; boundary=b\n\n${'--b\n\nx\n'.repeat(5000)}`;
    expect([...leavesOf(read(mail))].length).toBeLessThan(INCOMING_LIMITS.parts);
  });

  it('end a header without end', () => {
    const mail = read(`${'X-A: b\n'.repeat(1000)}Subject: late\n\nbody`, { headerBytes: 700 });
    expect(mail.fields.get('subject')).toBe('');
    expect(mail.fields.all('x-a')).toHaveLength(100);
  });

  it('bound a field and the number of fields', () => {
    const mail = read(`X-A: ${'b'.repeat(100)}\n${'X-B: c\n'.repeat(50)}\n`, {
      fieldChars: 10,
      headerFields: 20,
    });
    expect(mail.fields.get('x-a')).toBe('bbbbbbbbbb');
    expect(mail.fields.all('x-b')).toHaveLength(19);
  });

  it('bound the decoded content', () => {
    const encoded = Buffer.alloc(1000, 'a').toString('base64');
    expect(contentOf(read(`Content-Transfer-Encoding: base64\n\n${encoded}`), 10)).toHaveLength(10);
    expect(
      contentOf(read(`Content-Transfer-Encoding: quoted-printable\n\n${'=61'.repeat(100)}`), 10),
    ).toHaveLength(10);
    expect(contentOf(read('X-A: b\n\n123456789012'), 10)).toHaveLength(10);
  });
});

describe('text', () => {
  it.each([
    ['7bit', 'utf-8', 'grün', 'grün'],
    ['quoted-printable', 'utf-8', 'gr=C3=BCn =\nab', 'grün ab'],
    ['quoted-printable', 'utf-8', 'soft = \t \nbreak=', 'soft break='],
    ['quoted-printable', 'utf-8', 'a =ZZ b', 'a =ZZ b'],
    ['base64', 'iso-2022-jp', 'GyRCJWEhPCVrGyhC', 'メール'],
    ['7bit', 'iso-2022-jp', '\x1b$B%a!<%k\x1b(B', 'メール'],
    ['7bit', '', '\x1b$B%a!<%k\x1b(B', 'メール'],
    ['8bit', 'koi8-r', '\xd0\xcf\xde\xd4\xc1', 'почта'],
    ['8bit', 'iso-8859-1', 'gr\xfcn', 'grün'],
    ['8bit', 'utf-8', 'gr\xfcn', 'grün'],
    ['8bit', 'no-such-charset', 'gr\xfcn', 'grün'],
    ['8bit', 'cp1251', '\xef\xee\xf7\xf2\xe0', 'почта'],
  ])('in %s and %s', (encoding, charset, body, text) => {
    const bytes = charset === 'utf-8' && body === 'grün' ? Buffer.from(body) : Buffer.from(body, 'latin1');
    const type = charset === '' ? 'text/plain' : `text/plain; charset=${charset}`;
    const head = Buffer.from(`Content-Type: ${type}\nContent-Transfer-Encoding: ${encoding}\n\n`);
    expect(textOf(readMail(Buffer.concat([head, bytes]), INCOMING_LIMITS), 1000)).toBe(text);
  });
});

describe('malformed mail', () => {
  const read = (mail: string | Buffer) => readMail(Buffer.from(mail), INCOMING_LIMITS);

  it('has base64 decoded after inner padding', () => {
    const part = read('Content-Transfer-Encoding: base64\n\nSGVsbG8g\nd29ybGQ=\nIQ==\n');
    expect(contentOf(part, 1000).toString()).toBe('Hello world!');
  });

  it('has a header line with an invalid byte decoded separately as Windows-1252', () => {
    const { fields } = read(
      Buffer.concat([Buffer.from('Subject: Grüße\nX-Name: Zo'), Buffer.from([0xeb]), Buffer.from('\n\n')]),
    );
    expect([fields.get('subject'), fields.get('x-name')]).toEqual(['Grüße', 'Zoë']);
  });

  it('has digest parts of type message', () => {
    const part = read('Content-Type: multipart/digest; boundary=b\n\n--b\n\nSubject: one\n\nx\n--b--\n');
    expect(part.children.map(({ type }) => type)).toEqual(['message/rfc822']);
  });
});
