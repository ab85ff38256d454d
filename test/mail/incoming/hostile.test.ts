import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { INCOMING_LIMITS } from '../../../src/mail/incoming/limits.ts';
import { type ParsedIncoming, parseFile } from '../../../src/mail/incoming/parse.ts';

/**
 * Whatever comes in, the parser answers, within its limits, with what can be printed. The runner's own time
 * limit is the watch against work that grows faster than the mail.
 */
function expectSane(parsed: ParsedIncoming): void {
  expect(parsed.reports.length).toBeLessThanOrEqual(50 * INCOMING_LIMITS.reports);
  expect(JSON.parse(JSON.stringify(parsed))).toBeTypeOf('object');
  for (const { recipient, diagnostic, bounceType, suppress, scope } of parsed.reports) {
    expect(recipient.length).toBeLessThanOrEqual(500);
    expect(diagnostic.length).toBeLessThanOrEqual(2000);
    if (suppress !== 'never')
      expect({ bounceType, scope }).toEqual({ bounceType: 'hard', scope: 'recipient' });
  }
}

const HEAD = 'From: MAILER-DAEMON@x.example\r\nSubject: Undelivered Mail\r\n';
const MIB = 1024 * 1024;

describe('mail made to hurt', () => {
  const groups = (text: string) =>
    `${HEAD}Content-Type: multipart/report; boundary=b\r\n\r\n--b\r\nContent-Type: message/delivery-status\r\n\r\n${`Final-Recipient: rfc822; a@x.example\r\nAction: failed\r\nDiagnostic-Code: smtp; 550 ${text}\r\n\r\n`.repeat(2000)}`;

  it.each<[string, () => string | Buffer]>([
    [
      '2 MB of multiparts in one another',
      () =>
        HEAD +
        Array.from(
          { length: 35_000 },
          (_, i) => `Content-Type: multipart/mixed; boundary=b${i}\r\n\r\n--b${i}\r\n`,
        ).join(''),
    ],
    [
      'multiparts that share a boundary',
      () => HEAD + 'Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n'.repeat(40_000),
    ],
    ['a line of 50 MB', () => `${HEAD}\r\n${'a'.repeat(50 * MIB)}`],
    ['a line of 50 MB of addresses', () => `${HEAD}\r\n${'a@'.repeat(25 * MIB)}`],
    ['a header field of 50 MB', () => `X-A: ${'b'.repeat(50 * MIB)}`],
    ['a header without end', () => HEAD + 'X-A: b\r\n'.repeat(2 * MIB)],
    ['a field folded without end', () => `${HEAD}X-A: b\r\n${' b\r\n'.repeat(2 * MIB)}`],
    ['only NUL', () => Buffer.alloc(20 * MIB)],
    ['only CR', () => Buffer.alloc(20 * MIB, 13)],
    ['only LF', () => Buffer.alloc(20 * MIB, 10)],
    [
      'a million parts',
      () => `${HEAD}Content-Type: multipart/mixed; boundary=b\r\n\r\n${'--b\r\n\r\nx\r\n'.repeat(MIB)}`,
    ],
    [
      'a million false delimiters',
      () => `${HEAD}Content-Type: multipart/mixed; boundary=b\r\n\r\n${'--b x\r\n'.repeat(MIB)}`,
    ],
    ['thousands of recipients with long diagnostics', () => groups('no '.repeat(600))],
    ['diagnostics that nearly match', () => groups('ip mailbox user '.repeat(100))],
    ['lines that are nearly addresses', () => `${HEAD}\r\n${`${'a@'.repeat(900)}\r\n`.repeat(5000)}`],
    [
      'lines that are nearly sentences',
      () => `${HEAD}\r\n${`${'deliver '.repeat(200)}x@y to\r\n`.repeat(5000)}`,
    ],
    [
      'lines that are nearly encoded words',
      () => `${HEAD}\r\n${`${'=?utf-8?q?'.repeat(180)}\r\n`.repeat(5000)}`,
    ],
    ['tags that never close', () => `${HEAD}Content-Type: text/html\r\n\r\n${'<'.repeat(10 * MIB)}`],
    [
      'quoted-printable that never ends a line',
      () => `${HEAD}Content-Transfer-Encoding: quoted-printable\r\n\r\n${'= '.repeat(10 * MIB)}`,
    ],
    ['XML nested a million deep', () => `<feedback>${'<a>'.repeat(MIB)}`],
    [
      'XML of a hundred thousand records',
      () =>
        `<feedback><report_metadata><report_id>x</report_id></report_metadata>${'<record><row><count>1</count></row></record>'.repeat(100_000)}`,
    ],
    ['JSON nested a million deep', () => '['.repeat(MIB)],
    ['an mbox of a hundred thousand mails', () => 'From a Thu Apr 29 23:34:45 2015\n\n'.repeat(100_000)],
    [
      'sixty zip bombs',
      () =>
        `Subject: Report Domain: x\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n${`--b\r\nContent-Type: application/gzip\r\nContent-Transfer-Encoding: base64\r\n\r\n${gzipSync(Buffer.alloc(50 * MIB)).toString('base64')}\r\n`.repeat(60)}`,
    ],
  ])('%s', (_, make) => {
    expectSane(parseFile(Buffer.from(make())));
  });
});

const corpus = join(import.meta.dirname, '../../data/bounces');
const mails = readdirSync(corpus)
  .filter((name) => name.endsWith('.eml'))
  .map((name) => readFileSync(join(corpus, name)));

describe('real mail, damaged', () => {
  const anyMail = fc.nat(mails.length - 1).map((i) => mails[i] ?? Buffer.alloc(0));
  const position = fc.double({ min: 0, max: 1, noNaN: true });

  it('by being cut off', () => {
    fc.assert(
      fc.property(anyMail, position, (mail, at) => {
        expectSane(parseFile(mail.subarray(0, Math.floor(at * mail.length))));
      }),
      { numRuns: 300 },
    );
  });

  it('by flipped bytes', () => {
    fc.assert(
      fc.property(
        anyMail,
        fc.array(fc.tuple(position, fc.nat(255)), { minLength: 1, maxLength: 50 }),
        (mail, flips) => {
          const damaged = Buffer.from(mail);
          for (const [at, byte] of flips) damaged[Math.floor(at * (damaged.length - 1))] = byte;
          expectSane(parseFile(damaged));
        },
      ),
      { numRuns: 300 },
    );
  });

  it('by pieces that are doubled or swapped', () => {
    fc.assert(
      fc.property(anyMail, anyMail, position, position, (one, other, at, to) => {
        const cut = Math.floor(at * one.length);
        const end = Math.floor(to * other.length);
        expectSane(
          parseFile(Buffer.concat([one.subarray(0, cut), other.subarray(0, end), one.subarray(cut), other])),
        );
      }),
      { numRuns: 200 },
    );
  });
});

describe('noise', () => {
  it('of any bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 2000 }), (bytes) => expectSane(parseFile(Buffer.from(bytes)))),
      { numRuns: 500 },
    );
  });

  it('in the forms that the parser looks for', () => {
    const piece = fc.constantFrom(
      'From: MAILER-DAEMON@x\n',
      'Content-Type: multipart/report; boundary=b\n',
      'Content-Type: message/delivery-status\n',
      'Content-Type: message/rfc822\n',
      'Content-Type: text/html\n',
      'Content-Transfer-Encoding: base64\n',
      '\n',
      '--b\n',
      '--b--\n',
      'Final-Recipient: rfc822; a@x.example\n',
      'Action: failed\n',
      'Status: 5.1.1\n',
      'Diagnostic-Code: smtp; 550 no\n',
      '<a@x.example>:\n',
      '550 5.1.1 user unknown\n',
      '>>> RCPT To:<a@x.example>\n',
      '<<< 550 no\n',
      'Feedback-Type: abuse\n',
      '{"notificationType":"Bounce","bounce":{"bouncedRecipients":[{}]}}\n',
      '<feedback>',
      '--- Below this line is a copy of the message.\n',
      '=?utf-8?b?',
      '\u0000',
      '\ud800',
      'X-Failed-Recipients: a@x.example\n',
      'Received: x\nReceived: y\nTo: z\n',
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 60 }), (pieces) =>
        expectSane(parseFile(Buffer.from(pieces.join('')))),
      ),
      { numRuns: 1000 },
    );
  });
});
