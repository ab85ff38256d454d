import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseFile } from '../../../src/mail/incoming/parse.ts';

/*
 * Real bounces, changed as servers change mail in transit, and with other people, hosts and years: a parser that parses
 * them differently is fitted to the corpus.
 */
const corpus = join(import.meta.dirname, '../../data/bounces');
const names = readdirSync(corpus).filter((name) => name.endsWith('.eml'));

const CHANGES: [string, (mail: string) => string][] = [
  ['lines that end with CRLF', (mail) => mail.replaceAll(/\r?\n/g, '\r\n')],
  ['lines that end with LF', (mail) => mail.replaceAll('\r\n', '\n')],
  [
    'another hop',
    (mail) =>
      `Received: from a.example (a.example [198.51.100.7])\n\tby b.example with ESMTPS id 4QxyZ;\n\tThu, 1 Jan 2026 00:00:00 +0000\n${mail}`,
  ],
  [
    'a spam filter result',
    (mail) =>
      `Authentication-Results: mx.example; spf=none; dkim=none\nX-Spam-Status: No, score=0.1\nDelivered-To: b-abc@return-a.example\n${mail}`,
  ],
  ['field names in small letters', (mail) => inHead(mail, (name) => name.toLowerCase())],
  ['field names in capitals', (mail) => inHead(mail, (name) => name.toUpperCase())],
  ['blanks at the ends of lines', (mail) => inBody(mail, (body) => body.replaceAll(/(\S)(\r?\n)/g, '$1 $2'))],
  ['another year', (mail) => mail.replaceAll(/\b(?:19|20)\d\d\b/g, '2026')],
  [
    'other host addresses',
    (mail) => mail.replaceAll('192.0.2.', '198.51.100.').replaceAll('203.0.113.', '198.18.0.'),
  ],
  [
    'other people',
    (mail) =>
      mail
        .replaceAll(/kijitora/gi, 'j.r.smith')
        .replaceAll(/s(?:h?)ironeko/gi, 'anna-m')
        .replaceAll(/mikeneko/gi, 'carol')
        .replaceAll(/sabineko/gi, 'dave')
        .replaceAll(/libsisimai|bouncehammer/gi, 'contoso')
        .replaceAll(/nya+n/gi, 'lorem')
        .replaceAll(/neko/gi, 'mail'),
  ],
  ['without the message that came back', withoutReturned],
];

function headEnd(mail: string): number {
  const at = mail.search(/\r?\n\r?\n/);
  return at < 0 ? mail.length : at;
}

function inHead(mail: string, change: (name: string) => string): string {
  const end = headEnd(mail);
  return mail.slice(0, end).replaceAll(/^[a-z-]+:/gim, change) + mail.slice(end);
}

function inBody(mail: string, change: (body: string) => string): string {
  const end = headEnd(mail);
  return mail.slice(0, end) + change(mail.slice(end));
}

/** Removes the returned message, as some receivers do. */
function withoutReturned(mail: string): string {
  const part =
    /\n--[^\n]+\r?\n(?:[\w-]+:[^\n]*\n)*?content-type: *(?:message\/rfc822|text\/rfc822-headers)/i.exec(mail);
  return part === null ? mail : `${mail.slice(0, part.index)}\n`;
}

/** The part of the result that must not change. */
function gist(mail: string) {
  const { kind, reports } = parseFile(Buffer.from(mail, 'latin1'));
  return {
    kind,
    reports: reports.map(({ action, status, bounceType, classification, suppress }) => ({
      action,
      status,
      bounceType,
      classification,
      suppress,
    })),
  };
}

describe('a real bounce is parsed the same', () => {
  const mails = names.map((name) => [name, readFileSync(join(corpus, name), 'latin1')] as const);
  const plain = new Map(mails.map(([name, mail]) => [name, gist(mail)]));

  it.each(CHANGES)('with %s', (_, change) => {
    const changed = new Map(mails.map(([name, mail]) => [name, gist(change(mail))]));
    expect(changed).toEqual(plain);
  });
});
