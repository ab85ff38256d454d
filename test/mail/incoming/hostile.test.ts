import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { INCOMING_LIMITS } from '../../../src/mail/incoming/limits.ts';
import { type ParsedIncoming, parseFile } from '../../../src/mail/incoming/parse.ts';

/**
 * Any input is parsed within the limits into a value that can be printed. The time limit of the test runner detects work
 * that grows faster than the input.
 */
function expectBounded(parsed: ParsedIncoming): void {
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

describe('hostile mail', () => {
  const groups = (text: string) =>
    `${HEAD}Content-Type: multipart/report; boundary=b\r\n\r\n--b\r\nContent-Type: message/delivery-status\r\n\r\n${`Final-Recipient: rfc822; a@x.example\r\nAction: failed\r\nDiagnostic-Code: smtp; 550 ${text}\r\n\r\n`.repeat(500)}`;

  it.each<[string, () => string | Buffer]>([
    [
      '2 MB of nested multiparts',
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
    ['a line of 10 MB', () => `${HEAD}\r\n${'a'.repeat(10 * MIB)}`],
    ['a line of 10 MB of addresses', () => `${HEAD}\r\n${'a@'.repeat(5 * MIB)}`],
    ['a header field of 10 MB', () => `X-A: ${'b'.repeat(10 * MIB)}`],
    ['a header without end', () => HEAD + 'X-A: b\r\n'.repeat(MIB / 2)],
    ['a field folded without end', () => `${HEAD}X-A: b\r\n${' b\r\n'.repeat(MIB / 2)}`],
    ['only NUL', () => Buffer.alloc(5 * MIB)],
    ['only CR', () => Buffer.alloc(5 * MIB, 13)],
    ['only LF', () => Buffer.alloc(5 * MIB, 10)],
    [
      'a million parts',
      () => `${HEAD}Content-Type: multipart/mixed; boundary=b\r\n\r\n${'--b\r\n\r\nx\r\n'.repeat(MIB)}`,
    ],
    [
      'a million false delimiters',
      () => `${HEAD}Content-Type: multipart/mixed; boundary=b\r\n\r\n${'--b x\r\n'.repeat(MIB)}`,
    ],
    ['thousands of recipients with long diagnostics', () => groups('no '.repeat(600))],
    ['diagnostics that almost match', () => groups('ip mailbox user '.repeat(100))],
    ['lines that are almost addresses', () => `${HEAD}\r\n${`${'a@'.repeat(900)}\r\n`.repeat(5000)}`],
    [
      'lines that are almost sentences',
      () => `${HEAD}\r\n${`${'deliver '.repeat(200)}x@y to\r\n`.repeat(5000)}`,
    ],
    [
      'lines that are almost encoded-words',
      () => `${HEAD}\r\n${`${'=?utf-8?q?'.repeat(180)}\r\n`.repeat(5000)}`,
    ],
    ['a line of 1 MB of spaces', () => `${HEAD}\r\n<a@x.example>: 550 no${' '.repeat(MIB)}x`],
    [
      'half a million spaces below a quoted field',
      () => `${HEAD}\r\nSubject: x\r\n${' '.repeat(MIB / 2)}\r\nx`,
    ],
    [
      'half a million marks below a quoted field',
      () => `${HEAD}\r\nSubject: x\r\n${'> '.repeat(MIB / 4)}\r\nx`,
    ],
    ['tags without end', () => `${HEAD}Content-Type: text/html\r\n\r\n${'<'.repeat(10 * MIB)}`],
    [
      'quoted-printable without line ends',
      () => `${HEAD}Content-Transfer-Encoding: quoted-printable\r\n\r\n${'= '.repeat(10 * MIB)}`,
    ],
    ['XML nested a million deep', () => `<feedback>${'<a>'.repeat(MIB)}`],
    [
      'XML of a hundred thousand records',
      () =>
        `<feedback><report_metadata><report_id>x</report_id></report_metadata>${'<record><row><count>1</count></row></record>'.repeat(100_000)}`,
    ],
    ['JSON nested a million deep', () => '['.repeat(MIB)],
    ['JSON nested a million deep inside', () => `{"report-id":"r","policies":${'['.repeat(MIB)}`],
    ['JSON of escaped quotes', () => `{"report-id":"${'\\"'.repeat(MIB / 4)}`],
    ['an mbox of a hundred thousand mails', () => 'From a Thu Apr 29 23:34:45 2015\n\n'.repeat(100_000)],
    [
      'sixty zip bombs',
      () =>
        `Subject: Report Domain: x\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n${`--b\r\nContent-Type: application/gzip\r\nContent-Transfer-Encoding: base64\r\n\r\n${gzipSync(Buffer.alloc(50 * MIB)).toString('base64')}\r\n`.repeat(60)}`,
    ],
  ])('%s', (_, make) => {
    expectBounded(parseFile(Buffer.from(make())));
  });
});

const corpus = join(import.meta.dirname, '../../data/bounces');
const mails = readdirSync(corpus)
  .filter((name) => name.endsWith('.eml'))
  .map((name) => readFileSync(join(corpus, name)));
const reports = readdirSync(join(corpus, '../dmarc-reports'))
  .filter((name) => !/README|LICENSE/.test(name))
  .map((name) => readFileSync(join(corpus, '../dmarc-reports', name)));

/**
 * Every run uses the same inputs. `FUZZ=100` (`npm run fuzz`) uses a hundred times as many, different ones each time; a
 * failure prints its seed.
 */
const TIMES = Number(process.env['FUZZ'] ?? 1);
const runs = (numRuns: number) => ({ numRuns: numRuns * TIMES, ...(TIMES === 1 ? { seed: 5965 } : {}) });
const TIMEOUT_MS = 20_000 * TIMES;

const position = fc.double({ min: 0, max: 1, noNaN: true });
const at = (length: number, part: number) => Math.floor(part * length);

/** Kinds of damage; each uses numbers between 0 and 1 as positions. */
const DAMAGES: Record<string, (mail: Buffer, other: Buffer, numbers: readonly number[]) => Buffer> = {
  truncated: (mail, _, [end = 0]) => mail.subarray(0, at(mail.length, end)),
  'without its beginning': (mail, _, [start = 0]) => mail.subarray(at(mail.length, start)),
  'with other bytes': (mail, _, numbers) => {
    const damaged = Buffer.from(mail);
    for (let n = 0; n + 1 < numbers.length; n += 2)
      damaged[at(mail.length - 1, numbers[n] ?? 0)] = at(255, numbers[n + 1] ?? 0);
    return damaged;
  },
  'with NULs': (mail, _, numbers) => {
    const damaged = Buffer.from(mail);
    for (const number of numbers) damaged[at(mail.length - 1, number)] = 0;
    return damaged;
  },
  'without a line': (mail, _, [where = 0]) =>
    inLines(mail, (lines) => void lines.splice(at(lines.length, where), 1)),
  'with a line doubled': (mail, _, [from = 0, to = 0]) =>
    inLines(mail, (lines) => void lines.splice(at(lines.length, to), 0, lines[at(lines.length, from)] ?? '')),
  'with a block moved': (mail, _, [from = 0, to = 0, size = 0]) =>
    inLines(mail, (lines) => {
      const block = lines.splice(at(lines.length, from), at(30, size));
      lines.splice(at(lines.length, to), 0, ...block);
    }),
  'with a part of another mail inserted': (mail, other, [from = 0, start = 0, end = 0]) =>
    Buffer.concat([
      mail.subarray(0, at(mail.length, from)),
      other.subarray(at(other.length, Math.min(start, end)), at(other.length, Math.max(start, end))),
      mail.subarray(at(mail.length, from)),
    ]),
};

function inLines(mail: Buffer, change: (lines: string[]) => void): Buffer {
  const lines = mail.toString('latin1').split('\n');
  change(lines);
  return Buffer.from(lines.join('\n'), 'latin1');
}

describe.each([
  ['real mail', mails],
  ['real DMARC and TLS reports', reports],
])('%s, damaged', (_, originals) => {
  const any = fc.nat(originals.length - 1).map((i) => originals[i] ?? Buffer.alloc(0));
  const numbers = fc.array(position, { minLength: 3, maxLength: 60 });

  it.each(Object.entries(DAMAGES))(
    '%s',
    (_, damage) => {
      fc.assert(
        fc.property(any, any, numbers, (mail, other, where) => {
          expectBounded(parseFile(damage(mail, other, where)));
        }),
        runs(100),
      );
    },
    TIMEOUT_MS,
  );
});

describe('a bounce of a valid address', () => {
  const soft = mails.filter((mail) =>
    parseFile(mail).reports.every(({ bounceType }) => bounceType !== 'hard'),
  );

  /** Damaged bytes anywhere. Lost lines are not tested, as they may contain the reason. */
  it.each(['with other bytes', 'with NULs', 'with a line doubled'])(
    'rarely becomes a hard bounce by damage: %s',
    (name) => {
      const damage = DAMAGES[name] ?? expect.unreachable();
      let wrong = 0;
      const all = runs(1000);
      fc.assert(
        fc.property(
          fc.nat(soft.length - 1),
          fc.array(position, { minLength: 2, maxLength: 10 }),
          (i, where) => {
            const { reports } = parseFile(damage(soft[i] ?? Buffer.alloc(0), Buffer.alloc(0), where));
            if (reports.some(({ suppress }) => suppress === 'now')) wrong++;
          },
        ),
        all,
      );
      // Rarely the damage changes the decisive digit.
      expect(wrong / all.numRuns).toBeLessThanOrEqual(0.002);
    },
    TIMEOUT_MS,
  );
});

describe('random input', () => {
  it(
    'of any bytes is parsed',
    () => {
      fc.assert(
        fc.property(fc.uint8Array({ maxLength: 2000 }), (bytes) =>
          expectBounded(parseFile(Buffer.from(bytes))),
        ),
        runs(500),
      );
    },
    TIMEOUT_MS,
  );

  it(
    'of the forms that the parser recognizes is parsed',
    () => {
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
          expectBounded(parseFile(Buffer.from(pieces.join('')))),
        ),
        runs(1000),
      );
    },
    TIMEOUT_MS,
  );
});
