import { gzipSync } from 'node:zlib';
import { seededNumbers } from './seeded-numbers.ts';

/** What the generators of a mail share: numbers of its seed. */
interface Dice {
  /** 0 to `below` - 1. */
  number(below: number): number;
  one<Item>(items: readonly Item[]): Item;
  /** Random bytes. */
  bytes(length: number): Buffer;
}

type Generator = (dice: Dice) => string | Buffer;

const CRLF = '\r\n';
const FROM = 'From: Eve <eve@hostile.example>';
const mixed = (boundary: string) => `Content-Type: multipart/mixed; boundary="${boundary}"`;

function inBase64(bytes: Buffer): string {
  return bytes.toString('base64').replaceAll(/.{76}/g, `$&${CRLF}`);
}

/** A mail with these header fields. */
function mail(fields: readonly string[], body: string): string {
  return [FROM, ...fields, '', body].join(CRLF);
}

/** A mail with one attachment. */
function attached(fields: readonly string[], body: string): string {
  return mail(
    ['MIME-Version: 1.0', mixed('b')],
    ['--b', 'Content-Type: text/plain', '', 'See the file.', '--b', ...fields, '', body, '--b--', ''].join(
      CRLF,
    ),
  );
}

function nested(depth: number): string {
  return depth === 0
    ? `Content-Type: text/plain${CRLF}${CRLF}hello`
    : `${mixed(`b${depth}`)}${CRLF}${CRLF}--b${depth}${CRLF}${nested(depth - 1)}${CRLF}--b${depth}--${CRLF}`;
}

function embedded(depth: number): string {
  let inner = `${FROM}${CRLF}Subject: inner${CRLF}${CRLF}hello`;
  for (let n = 0; n < depth; n++)
    inner = `Content-Type: message/rfc822${CRLF}Message-ID: <same@hostile.example>${CRLF}${CRLF}${inner}`;
  return inner;
}

/** Kinds of hostile mail. Most have some kilobytes: what they cost is what the parser does with them. */
const KINDS: Record<string, Generator> = {
  'multiparts in multiparts': ({ number }) =>
    `${FROM}${CRLF}MIME-Version: 1.0${CRLF}${nested(1 + number(400))}`,
  'more parts than are read': ({ number }) =>
    mail(
      [mixed('b')],
      `${`--b${CRLF}Content-Type: text/plain${CRLF}${CRLF}a${CRLF}`.repeat(450 + number(300))}--b--`,
    ),
  'many attachments': ({ number }) =>
    mail(
      [mixed('b')],
      `${`--b${CRLF}Content-Disposition: attachment; filename="../../etc/passwd"${CRLF}${CRLF}a${CRLF}`.repeat(number(480))}--b--`,
    ),
  'boundaries that overlap': ({ number }) =>
    mail([mixed('-')], '--'.repeat(number(20_000)) + '\r\n--'.repeat(number(2000))),
  'a boundary that does not end': ({ number, one }) =>
    mail(
      [mixed('b')],
      `--b${CRLF}${one(['Content-Type: text/html', mixed('b'), mixed('c'), 'Content-Type: message/rfc822'])}${CRLF}${CRLF}${'x'.repeat(number(3000))}`,
    ),
  'a boundary without name': ({ one }) =>
    mail(
      [
        one([
          'Content-Type: multipart/mixed',
          'Content-Type: multipart/mixed; boundary',
          'Content-Type: multipart/alternative; boundary=""',
          `Content-Type: multipart/mixed; boundary="${'b'.repeat(5000)}"`,
        ]),
      ],
      `--${CRLF}${CRLF}x${CRLF}----${CRLF}`,
    ),
  'mails in mails': ({ number }) => `${FROM}${CRLF}${embedded(1 + number(300))}`,
  'broken encodings': ({ number, one, bytes }) =>
    mail(
      [
        `Content-Transfer-Encoding: ${one(['base64', 'quoted-printable', 'uuencode', '8bit', 'x-unknown', '=?utf-8?b?'])}`,
        'Content-Type: text/plain; charset=utf-8',
      ],
      one(['=3D=', '====', `=${CRLF}`, 'YWJj\u0000', '=E2=28=A1', '#']).repeat(number(2000)) +
        bytes(number(2000)).toString('latin1'),
    ),
  'bad charsets': ({ one, bytes, number }) =>
    Buffer.concat([
      Buffer.from(
        mail(
          [
            `Content-Type: text/${one(['plain', 'html'])}; charset=${one(['utf-7', 'utf-16', 'utf-32le', 'iso-2022-jp', 'hz-gb-2312', 'x-none', '"; charset="utf-8', 'ibm-9999', 'gb18030', '../../utf-8', 'constructor', '__proto__'])}`,
            'Subject: =?constructor?q?=FF?= =?utf-7?q?+ADw-?= =?iso-2022-jp?b?GyRC?=',
          ],
          '',
        ),
      ),
      bytes(number(4000)),
    ]),
  'a flood of header fields': ({ number, one }) =>
    mail(
      Array.from({ length: number(3000) }, (_, n) =>
        one([`X-${n}: y`, 'Subject: again', 'X: y', ': z', 'no colon']),
      ),
      'x',
    ),
  'a header without end': ({ number }) =>
    `${FROM}${CRLF}Subject: a${`${CRLF} ${' '.repeat(number(20))}b`.repeat(number(5000))}`,
  'names of properties': () =>
    mail(
      [
        '__proto__: x',
        'constructor: y',
        'hasOwnProperty: z',
        'toString: 1',
        'Content-Type: __proto__/constructor',
      ],
      'x',
    ),
  'encoded words without end': ({ number, one }) =>
    mail(
      [
        `Subject: ${one(['=?utf-8?q?a', '=?utf-8?b?', '=?', '=?utf-8?q?=?=', '=?utf-8?q?a?= '])}`.padEnd(20) +
          '=?utf-8?q?a'.repeat(number(3000)),
      ],
      'x',
    ),
  'invalid addresses': ({ number, one }) =>
    mail(
      [
        `To: ${one(['(', '"', '<', 'a:', '\\', ',', 'a@b,', '((a)', '<a@b>'])}`.repeat(1 + number(800)),
        `Reply-To: ${'(('.repeat(number(2000))}`,
        `Cc: ${'"\\'.repeat(number(2000))}`,
        `From: ${one(['<>', '@', 'eve@', '=?utf-8?q?eve=40bank.example?= <x>', 'a@b@c', '<<<<a@b>>>>'])}`,
      ],
      'x',
    ),
  'parameters without end': ({ number }) =>
    attached(
      [
        `Content-Disposition: attachment; ${Array.from({ length: number(500) }, (_, n) => `filename*${n}*=utf-8''%ff%0`).join('; ')}`,
        `Content-Type: application/pdf; name="${'\\"'.repeat(number(2000))}`,
      ],
      'x',
    ),
  'hostile file names': ({ one }) =>
    attached(
      [
        `Content-Disposition: attachment; filename="${one(['../../../etc/passwd', 'a\u0000.exe', '<script>1</script>.html', 'CON', '.', '..', ' ', 'a'.repeat(3000), 'a\u202Efdp.exe', '=?utf-8?b?PHNjcmlwdD4=?='])}"`,
        'Content-Type: text/html',
      ],
      '<script>document.title=1</script>',
    ),
  'invalid dates': ({ one }) =>
    mail(
      [
        `Date: ${one(['', 'now', 'Thu, 99 Foo 99999 99:99:99 +9999', '-1', '1e309', 'Mon, 1 Jan 1970 00:00:00 GMT'.repeat(300), '\u0000'])}`,
        `Received: from a by b; ${'('.repeat(2000)}`,
      ],
      'x',
    ),
  'NULs and control characters': ({ number, bytes }) =>
    Buffer.concat([
      Buffer.from(
        mail(['Subject: a\u0000b\u0007', `X-${'\u0000'.repeat(50)}: y`], '\u0000'.repeat(number(5000))),
      ),
      bytes(number(5000)),
    ]),
  'all bytes': ({ bytes, number }) => bytes(1 + number(20_000)),
  'no header': ({ one, number }) => one(['', '.', CRLF, `${CRLF}.`, ' ', ':']) + 'x'.repeat(number(100)),
  'a long line': ({ number }) => mail([], 'x'.repeat(number(400_000))),
  'a long field': ({ number }) => mail([`Subject: ${'x '.repeat(number(100_000))}`], 'x'),
  'forged results': ({ number }) =>
    mail(
      [
        ...Array.from(
          { length: 1 + number(300) },
          () =>
            'Authentication-Results: mx.postrider.example; spf=pass; dkim=pass header.d=bank.example; dmarc=pass',
        ),
        'Received-SPF: pass (mx.postrider.example: ok)',
        'Auto-Submitted: no',
        'From: Bank <pay@bank.example>',
      ],
      'x',
    ),
  'thousands of signatures': ({ number }) =>
    mail(
      Array.from(
        { length: 200 + number(2000) },
        (_, n) =>
          `DKIM-Signature: v=1; a=rsa-sha256; d=d${n % 7}.hostile.example; s=s${n}; h=from:from:from; bh=AAAA; b=AAAA`,
      ),
      'x',
    ),
  'signatures with long tags': ({ number, one }) =>
    mail(
      Array.from(
        { length: 1 + number(6) },
        () =>
          `DKIM-Signature: v=1; a=${one(['rsa-sha256', 'ed25519-sha256', 'rsa-sha1', 'none'])}; c=relaxed/relaxed; l=${one(['0', '-1', '1e99', '99999999999'])}; d=hostile.example; s=s1; h=${'from:'.repeat(number(500))}; bh=${'A'.repeat(number(2000))}; b=${'B '.repeat(number(1000))}`,
      ),
      `${' '.repeat(number(30_000))}${CRLF}`.repeat(3),
    ),
  'a long ARC chain': ({ number, one }) =>
    mail(
      Array.from({ length: number(120) }, (_, n) => [
        `ARC-Seal: i=${one([n, 1, -1])}; a=rsa-sha256; cv=${one(['none', 'pass', 'fail', ''])}; d=arc.example; s=s1; b=AAAA`,
        `ARC-Message-Signature: i=${n}; a=rsa-sha256; d=arc.example; s=s1; h=from; bh=AAAA; b=AAAA`,
        `ARC-Authentication-Results: i=${n}; mx.example; dmarc=pass`,
      ]).flat(),
      'x',
    ),
  'quotations without end': ({ number, one }) =>
    mail(
      ['Content-Type: text/plain; charset=utf-8'],
      one([
        () => `${'> '.repeat(number(5000))}x${CRLF}`.repeat(10),
        () => `On Monday Ann${CRLF}`.repeat(number(5000)),
        () => `On Monday Ann wrote${CRLF}${' '.repeat(300)}:${CRLF}`.repeat(number(500)),
        () => `From: a${CRLF}`.repeat(number(8000)),
        () => `-----Original Message${'-'.repeat(number(10_000))}`,
        () => `> a${CRLF}b${CRLF}`.repeat(number(8000)),
        () => `Am ${'schrieb '.repeat(number(20_000))}:`,
        () => CRLF.repeat(number(30_000)),
        () => `\u00a0${'\u3000'.repeat(number(20_000))}`,
      ])(),
    ),
  'HTML without end': ({ number, one }) =>
    mail(
      ['Content-Type: text/html; charset=utf-8'],
      one([
        () => '<div>'.repeat(number(20_000)),
        () => '<a '.repeat(number(20_000)),
        () => '<!--'.repeat(number(20_000)),
        () => '<table><tr><td>'.repeat(number(8000)),
        () => '&amp'.repeat(number(20_000)),
        () => `<p ${'a="'.repeat(number(20_000))}`,
        () => '<script>document.title=1</script>'.repeat(number(2000)),
        () => `<style>${'{'.repeat(number(20_000))}`,
        () => '<svg><foreignObject>'.repeat(number(5000)),
        () => '<![CDATA['.repeat(number(10_000)),
        () => '<b><i>x</b></i>'.repeat(number(8000)),
        () => `<a href="${'javascript:'.repeat(number(8000))}">x</a>`,
      ])(),
    ),
  'calendars without end': ({ number }) =>
    mail(
      ['Content-Type: text/calendar; method=REQUEST; charset=utf-8'],
      `BEGIN:VCALENDAR${CRLF}${`BEGIN:VEVENT${CRLF}RRULE:FREQ=SECONDLY${CRLF}`.repeat(number(4000))}`,
    ),
  TNEF: ({ number, bytes }) =>
    attached(
      [
        'Content-Type: application/ms-tnef; name=winmail.dat',
        'Content-Transfer-Encoding: base64',
        'Content-Disposition: attachment; filename=winmail.dat',
      ],
      inBase64(Buffer.concat([Buffer.from('789f3e22', 'hex'), bytes(number(20_000))])),
    ),
  'compressed bombs': ({ one, number }) =>
    attached(
      [
        `Content-Type: ${one(['application/gzip', 'application/zip', 'text/xml', 'application/x-gzip'])}`,
        'Content-Transfer-Encoding: base64',
        'Content-Disposition: attachment; filename=report.xml.gz',
      ],
      inBase64(gzipSync(Buffer.alloc(1_000_000 + number(4_000_000)))),
    ),
  'embedded pictures': ({ number }) =>
    mail(
      ['Content-Type: multipart/related; boundary=b'],
      `--b${CRLF}Content-Type: text/html${CRLF}${CRLF}${'<img src="cid:a">'.repeat(number(3000))}${CRLF}${`--b${CRLF}Content-ID: <a>${CRLF}Content-Type: image/png${CRLF}${CRLF}x${CRLF}`.repeat(number(200))}--b--`,
    ),
  'text in flowed lines': ({ number, one }) =>
    mail(
      [`Content-Type: text/plain; format=flowed; delsp=${one(['yes', 'no', '?'])}`],
      one([` ${CRLF}`, `>> ${CRLF}`, `-- ${CRLF}`, `a ${CRLF}`]).repeat(number(8000)),
    ),
  'text within text': ({ number }) =>
    mail(
      ['Content-Type: text/plain; charset=utf-8'],
      'https://a.example/?'.repeat(number(4000)) + 'a@b.example '.repeat(number(4000)),
    ),
  references: ({ number }) =>
    mail(
      [
        `References: ${'<a@b> '.repeat(number(5000))}`,
        `In-Reply-To: ${'<msg_1769860800000_2w4e6r8t1y3u@'.repeat(number(500))}`,
        `Message-ID: ${'<'.repeat(number(5000))}`,
        'List-Unsubscribe: <'.repeat(number(200)),
        `List-Id: ${'<('.repeat(number(2000))}`,
      ],
      'x',
    ),
  'a report for nobody': ({ number }) =>
    mail(
      ['Content-Type: multipart/report; report-type=delivery-status; boundary=b'],
      `--b${CRLF}Content-Type: message/delivery-status${CRLF}${CRLF}${`Final-Recipient: rfc822; a@b${CRLF}Action: failed${CRLF}Status: 5.1.1${CRLF}${CRLF}`.repeat(number(2000))}--b--`,
    ),
  'lines of dots and bare line ends': ({ number, one }) =>
    mail([], one(['..\r\n', '\n', '\r', '\n.\n', 'a\r', '\r\n\u0000']).repeat(number(10_000))),
};

/** The largest ones: some of each run. */
const LARGE: Record<string, Generator> = {
  'an attachment of 8 MB': ({ bytes }) =>
    attached(
      [
        'Content-Type: application/octet-stream',
        'Content-Transfer-Encoding: base64',
        'Content-Disposition: attachment; filename=large.bin',
      ],
      inBase64(bytes(8_000_000)),
    ),
  'HTML of 6 MB': () => mail(['Content-Type: text/html'], '<div><a href="x">y</a>'.repeat(280_000)),
  'text of 6 MB': () => mail([], `> On Monday Ann wrote:${CRLF}`.repeat(260_000)),
  'a header of 5 MB': () =>
    mail(
      Array.from({ length: 250_000 }, (_, n) => `X-Field-${n}: y`),
      'x',
    ),
  'a line of 6 MB': () => mail(['Content-Transfer-Encoding: quoted-printable'], '=41'.repeat(2_000_000)),
  '200,000 parts': () => mail([mixed('b')], `--b${CRLF}${CRLF}x${CRLF}`.repeat(200_000)),
};
/** One of so many mails is a large one. */
const LARGE_INTERVAL = 250;

export interface HostileMail {
  kind: string;
  content: Buffer;
}

/** The hostile mail with this number; the seed determines all of them. */
export function hostileMail(seed: number, n: number): HostileMail {
  const next = seededNumbers(seed * 1_000_003 + n);
  const number = (below: number) => Math.floor(next() * below);
  const dice: Dice = {
    number,
    one: (items) => {
      const item = items[number(items.length)];
      if (item === undefined) throw new Error('there are no items');
      return item;
    },
    bytes: (length) => {
      const bytes = Buffer.alloc(length);
      for (let at = 0; at < length; at++) bytes[at] = number(256);
      return bytes;
    },
  };
  const isLarge = n % LARGE_INTERVAL === LARGE_INTERVAL - 1;
  const kinds = Object.entries(isLarge ? LARGE : KINDS);
  const position = isLarge ? Math.floor(n / LARGE_INTERVAL) : n;
  const [kind, generate] = kinds[position % kinds.length] ?? ['', () => ''];
  const content = generate(dice);
  return { kind, content: typeof content === 'string' ? Buffer.from(content) : content };
}
