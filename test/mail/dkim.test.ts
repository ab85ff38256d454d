import { spawnSync } from 'node:child_process';
import { createPrivateKey, createPublicKey } from 'node:crypto';
import * as fc from 'fast-check';
import { dkimVerify } from 'mailauth/lib/dkim/verify.js';
import { describe, expect, it } from 'vitest';
import { withoutPause } from '../../src/core/concurrency/slices.ts';
import { composeInSteps, messageBytes } from '../../src/mail/compose.ts';
import type { CopyDetails, MessageContent } from '../../src/mail/content.ts';
import {
  generateDkimKey,
  publicKeyRecordValue,
  relaxedBody,
  type SignableMessage,
  signDkim,
  signDkimInSteps,
} from '../../src/mail/dkim.ts';

/** Generated for this test only: the expected bytes of the signature depend on it. */
const key = createPrivateKey(`-----BEGIN PRIVATE KEY-----
MIIEvgIBADANBgkqhkiG9w0BAQEFAASCBKgwggSkAgEAAoIBAQC1O6bxJUTXvjFT
1dwqvA5arEY5u2zBLEkMZm1ok18VC3GhAzbAJekl4sPS4cpZxr2vp95r6mfSemCG
JILtVw+gMSPfA0CyHdhpdHgr+0LWqkZrn8tKz9cFuPwWGK87qnSFzbQLYBeEAeZ2
G30jd6fFw+A827sE3yPcGusrO4ilS09aDwjO/Li9aECdsoZ1Jbf/RO1qEnFMPAy6
CMIU1JSrJMvOau+jUieeakBt54t5TnswC9MzaBhhL+utYdBv4KEqVE1lVs6Y8Wvj
xnT/NgUlKkeXXleUpxEOieqBAhL9hgRVA46PnvOFue6J027dsXsCy7i5hdV8fs+Y
h8aoMCOfAgMBAAECggEAP3oxylPF7ZThvR3yXAt7MZoWjMEPYgerXEsB9jdr/biA
56bzBdEhfNIUyaepEtHP/ZbcCktTav7PERz3uL6eK/saN9HxVpGqi6EuOCVs7zg7
qxWQhFcQ1qHItcqWkdztrDH05mkVQ3jQ6jxNk98kpdmqEFbcBeRMMJtDFGTpQw9q
fiRyG1INe7oEmjyzb9ua7bmXnU+dwglwGa5I5u3Bv6bshzbvwIgdolOU5h50nZwu
UscUIIyvUDCanMXNdPWb+HP0SlWTsz/cIRpxBsYthjwOK6KoVI4L6Uv2iehaQriV
sO7P/gkwQBAJeOfgl1ixegRMEcZHvPkiWQOvjFYuuQKBgQDuy/o4MRsSaSMWmKKd
+DF/vR+iVwfVUkx8YnqrNl4GFBqXiXyCMEY9qfaSXLdoqkVVKLJy8FXSv3M1mJ46
CuoWEyHO7K+lsMkSqj2MPL7bEcZzMBwuGFkTmWfvFuaunBMjc3KsfqYCYnqiNS4a
7v6lbHE7PZ8lKKHcJsQAuT0HyQKBgQDCSg1AMFy1ZKGAzj/zgCM2k4UHMLGAA+pD
zoJESm29LMybX1/TlZZZFafxkL2i4LFBp2ZTPAT/GWYXjiju6KmDiLsCUBqdmlts
OTMOS+mDXoMln/cZvc9qSQ3MQ165Mz1268mEK2becXwBoy7xst+XXX1KY1V3ZZdm
gMf89aZUJwKBgQCrXOmFJYgd4CDz+DjKT++FkXyADSBr7xFAOZN6BhvXFNo4YMte
ybG+UpfFVI+xpm72u6vDW8Da6dSNY6Y4VNjDWptqWON7ba/9mvlsB7OWldzpkF7I
nWRe8jlpk++a4hnB2Pkz2/bZwz3p5WvenB9VKsrfDkuEaPIugAsr0cKAMQKBgQCe
4J9lVib5zoijJAX3wVkKUCgAcTk1Tf5L5Jtx7MtAX1oR1DQweaqwvpzPVWU9xDAv
WAy9E9+iG8r4iC/A7lFwVmdWxNp+9rK8FSpDDqCt5KOqKN2QFz990q+N0amsGNKy
ZK4tfrBoRrT5QdAppfRhevnx0rkZIeJk1/qySM7zEQKBgBl/Bjq0j578ALyxTZoB
DSC9VkRF18QNOAcn3Ks7D/QzMV7XhMkDxubxvWGqveSGTkuRXW3u+gzyh19DU3+E
QxJ5pJog54VL40HUE0hOpaAx1RXrntz61C9SbW4r4EIhV4r+/vpfQkVXujvofsZg
n8YjVkWwpLNk0Zu4A+civRQq
-----END PRIVATE KEY-----`);
const record = publicKeyRecordValue(key);
const signer = { domain: 'example.com', selector: 's1', key };
const now = 1_700_000_000_500;

const message = (header: string[], body: string): SignableMessage => ({ header, body: Buffer.from(body) });

const simple = message(
  [
    'From: Ann <ann@example.com>',
    'To: bob@example.net,\r\n eve@example.net',
    'Subject:  Hello \t there ',
    'Date: Tue, 14 Nov 2023 22:13:20 +0000',
  ],
  'Hello  there \r\n\r\nBye\r\n\r\n\r\n',
);

const wire = ({ header, body }: SignableMessage, signatures: string[]) =>
  Buffer.concat([Buffer.from(`${[...signatures, ...header].join('\r\n')}\r\n\r\n`), body]);

const signed = (unsigned: SignableMessage) => wire(unsigned, signDkim(unsigned, [signer], now));

/** The result of an independent verifier for each signature, in order. */
async function results(raw: Buffer | string): Promise<string[]> {
  const { results: signatures } = await dkimVerify(Buffer.from(raw), {
    resolver: async (name: string) => {
      if (name === 's1._domainkey.example.com' || name === 's2._domainkey.example.com') return [[record]];
      throw Object.assign(new Error('no such record'), { code: 'ENOTFOUND' });
    },
  });
  return signatures.map(({ status }) => status.result);
}

describe('a signature', () => {
  it('has exactly these bytes', () => {
    expect(signDkim(simple, [signer], now)).toEqual([
      [
        'DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed; t=1700000000;',
        ' d=example.com; s=s1;',
        ' h=From:From:To:To:Subject:Subject:Date:Date:Message-ID:Reply-To:Cc:',
        ' List-Unsubscribe:List-Unsubscribe-Post:Feedback-ID:MIME-Version:',
        ' Content-Type:CFBL-Address;',
        ' bh=/z6rRz1ID0pdJn8fAGecIbfeylcEi/yI7RSXutB+KOo=;',
        ' b=mA05A++IIVB3O9ElVyRP8tyLJ1v99rLFm2It18oAIWvjushcM6+jAKrY+yIgsSSi/T3ImK',
        ' icgXdWma7JUY6y7n0vAsZcIVVvPmvjuwp4JcHULY4nJaeS4msXZvr8L0ntDP+Zr+tTnrfj',
        ' TWP1qHe2ObP2Vq4uzpOPg7xPVl9no+RkaxUm0LoYuIIi4vT92gZ5dn+eFO4/4qTcbCPwcU',
        ' jrHEg6Q3iV7XyocgQpkKsT2HMTiqANxH6Rb47d2TL/eVpzlcdXJ3Cv4mysvX0nLzeDinaa',
        ' wRpk4bBNMe9+NxzmJ0FCnPyvHIu3FXyv1GeBhI3s4Qqh+ZPm4mrU6GptMqk2+A==',
      ].join('\r\n'),
    ]);
  });

  it('passes an independent verifier', async () => {
    expect(await results(signed(simple))).toEqual(['pass']);
  });

  it.each([
    ['no body', ''],
    ['nothing but line ends', '\r\n\r\n'],
    ['nothing but blanks', ' \t\r\n \r\n'],
    ['no last line end', 'a'],
    ['blanks before the end', 'a \t'],
    ['blanks at the start of a line', '  a\r\n\tb\r\n'],
    ['empty lines within', '\r\n\r\na\r\n\r\nb\r\n'],
  ])('passes for a body with %s', async (_, body) => {
    expect(await results(signed({ ...simple, body: Buffer.from(body) }))).toEqual(['pass']);
  });

  it('is added by every signer, over the same message', async () => {
    const signatures = signDkim(simple, [signer, { ...signer, selector: 's2' }], now);
    expect(signatures.map((field) => /s=(\w+);/.exec(field)?.[1])).toEqual(['s1', 's2']);
    expect(await results(wire(simple, signatures))).toEqual(['pass', 'pass']);
  });

  it('is absent without signers', () => {
    expect(signDkim(simple, [], now)).toEqual([]);
  });

  it('signs each listed field once more than it occurs', async () => {
    const twice = {
      ...simple,
      header: [...simple.header, 'CC: x@example.net', 'cc: y@example.net', 'X-Other: z'],
    };
    const [field = ''] = signDkim(twice, [signer], now);
    expect(await results(wire(twice, [field]))).toEqual(['pass']);
    const [, list = ''] = /h=([^;]+);/.exec(field) ?? [];
    expect(list.replace(/\s/g, '').replaceAll(':', ' ')).toBe(
      'From From To To Subject Subject Date Date Message-ID Reply-To Cc Cc Cc List-Unsubscribe ' +
        'List-Unsubscribe-Post Feedback-ID MIME-Version Content-Type CFBL-Address',
    );
  });
});

describe('fields that are signed only where they occur', () => {
  const fields = [
    'In-Reply-To: <a@example.net>',
    'References: <a@example.net>\r\n <b@example.net>',
    'List-Id: "News" <sgroup_1.example.com>',
    'Precedence: bulk',
    'Content-Transfer-Encoding: 7bit',
  ];
  const raw = signed({ ...simple, header: [...simple.header, ...fields] }).toString();

  it('are listed once each after the oversigned fields', async () => {
    const [, list = ''] = /h=([^;]+);/.exec(raw) ?? [];
    expect(list.replace(/\s/g, '')).toMatch(
      /:CFBL-Address:In-Reply-To:References:List-Id:Precedence:Content-Transfer-Encoding$/,
    );
    expect(await results(raw)).toEqual(['pass']);
  });

  it.each(fields)('%j cannot be changed or removed', async (field) => {
    expect(raw).toContain(`${field}\r\n`);
    expect(await results(raw.replace(field, `${field}x`))).not.toContain('pass');
    expect(await results(raw.replace(`${field}\r\n`, ''))).not.toContain('pass');
  });
});

describe('a changed message', () => {
  const raw = signed(simple).toString();

  it.each([
    ['a second From on top', `From: Eve <eve@example.org>\r\n${raw}`],
    ['a second Subject on top', `Subject: Buy this\r\n${raw}`],
    ['a Subject below the first', raw.replace('\r\nDate:', '\r\nSubject: Buy this\r\nDate:')],
    ['a Reply-To where there was none', raw.replace('\r\nDate:', '\r\nReply-To: eve@example.org\r\nDate:')],
    ['a Content-Type where there was none', `Content-Type: text/html\r\n${raw}`],
    ['a List-Unsubscribe where there was none', `List-Unsubscribe: <https://evil.example>\r\n${raw}`],
    ['another Subject', raw.replace('there', 'again')],
    ['another body', raw.replace('Bye', 'Buy')],
    ['more body', `${raw}more\r\n`],
  ])('with %s does not pass', async (_, changed) => {
    expect(await results(raw)).toEqual(['pass']);
    expect(await results(changed)).not.toContain('pass');
  });

  it.each([
    ['folded elsewhere', raw.replace('Hello \t there', 'Hello\r\n   there')],
    ['with other blanks', raw.replace('Hello  there ', 'Hello there\t')],
    ['with fields on top that nobody signs', `Received: from a by b\r\n${raw}`],
    ['with fewer empty lines at its end', raw.slice(0, -4)],
  ])('%s still passes', async (_, changed) => {
    expect(await results(changed)).toEqual(['pass']);
  });
});

describe('a composed message', () => {
  const word = fc.string({ unit: 'grapheme', maxLength: 40 });
  const text = fc
    .array(fc.oneof(word, fc.constantFrom('\n', ' \n', '\t', '.', 'From ', '\n\n')))
    .map((all) => all.join(''));
  const copy: CopyDetails = {
    recipient: 'bob@example.net',
    kind: 'marketing',
    unsubscribeUrl: 'https://t.example.com/u/abc',
    reportAbuseUrl: 'https://t.example.com/r/abc',
    unsubscribeAddress: 'unsubscribe-abc@return-a.example.com',
    signedId: 'abc',
    feedbackAddress: 'fbl-abc@return-a.example.com',
    feedbackId: 'camp:acct_1:mk:postrider',
  };
  const content = (subject: string, name: string, text: string): MessageContent => ({
    from: { name, address: 'ann@example.com' },
    to: [{ name, address: 'jörg@example.net' }],
    cc: [],
    replyTo: null,
    subject,
    html: `<p>${text}</p>`,
    text,
    headers: [['X-Note', subject]],
    attachments: [],
    messageId: 'msg_1700000000000_abcdefghijkl@example.com',
    date: 1_700_000_000_000,
  });

  it('passes whatever its content', async () => {
    await fc.assert(
      fc.asyncProperty(word, word, text, async (subject, name, body) => {
        const composed = withoutPause(composeInSteps(content(subject, name, body), copy));
        expect(await results(messageBytes(composed, signDkim(composed, [signer], now)))).toEqual(['pass']);
      }),
      { numRuns: 40 },
    );
  });

  const python = ['python3', '/usr/bin/python3'].find(
    (path) => spawnSync(path, ['-c', 'import dkim']).status === 0,
  );
  it.skipIf(python === undefined)('passes a verifier in another language', () => {
    const composed = withoutPause(
      composeInSteps(content('Grüße  aus Köln', 'Jörg, "the" one', 'Hello  \n\n.\n\n'), copy),
    );
    const raw = messageBytes(composed, signDkim(composed, [signer], now));
    const script = [
      'import sys, dkim',
      'record = sys.argv[1].encode()',
      'ok = dkim.verify(sys.stdin.buffer.read(), dnsfunc=lambda name, timeout=5: record)',
      'print("pass" if ok else "fail")',
    ].join('\n');
    const verify = (input: Buffer) =>
      spawnSync(python ?? '', ['-c', script, record], { input })
        .stdout.toString()
        .trim();
    expect(verify(raw)).toBe('pass');
    expect(verify(Buffer.concat([Buffer.from('Subject: Buy this\r\n'), raw]))).toBe('fail');
  });
});

describe('relaxedBody', () => {
  it.each([
    // RFC 6376 §3.4.5
    [' C \r\nD \t E\r\n\r\n\r\n', ' C\r\nD E\r\n'],
    ['', ''],
    ['\r\n\r\n', ''],
    [' \t \r\n', ''],
    ['a', 'a\r\n'],
    ['\r\na\r\n', '\r\na\r\n'],
    ['a\r\n \r\nb\t', 'a\r\n\r\nb\r\n'],
    ['a\r\n\r\nb\r\n', 'a\r\n\r\nb\r\n'],
    ['a\r\n\r\n\r\nb c\r\n\r\n', 'a\r\n\r\n\r\nb c\r\n'],
    ['a\r\n\r\n\r\n \r\n', 'a\r\n'],
    ['a\r\n\r\nb  c', 'a\r\n\r\nb c\r\n'],
  ])('canonicalizes %j to %j', (body, expected) => {
    expect(relaxed(body)).toBe(expected);
  });

  it('canonicalizes any body as the RFC describes it, line by line', () => {
    const parts = fc.constantFrom('a', 'b c', ' ', '  ', '\t', '\r\n', '\r', '\n', 'x'.repeat(600));
    const body = fc.array(parts, { maxLength: 12 }).map((some) => some.join(''));
    fc.assert(
      fc.property(body, (text) => {
        expect(relaxed(text)).toBe(asDescribed(text));
      }),
      { numRuns: 3_000 },
    );
  });

  it('canonicalizes a body that is longer than the shared memory', () => {
    const lines = 'a \t b  c \r\nd\r\n'.repeat(30_000);
    expect(relaxed(lines)).toBe('a b c\r\nd\r\n'.repeat(30_000));
  });

  it('canonicalizes long bodies in parts as in one', () => {
    // Around the end of the memory that is shared.
    const fill = fc
      .constantFrom('x', ' ', '\r\n', 'word\r\n', 'two  words \r\n', ' \r\n')
      .chain((piece) =>
        fc
          .integer({ min: 262_130, max: 262_160 })
          .map((length) => piece.repeat(length / piece.length + 1).slice(0, length)),
      );
    const tail = fc.array(fc.constantFrom('a', ' ', '\t', '\r\n', '\r', '\n'), { maxLength: 8 });
    const part = fc.tuple(fill, tail).map(([long, short]) => long + short.join(''));
    fc.assert(
      fc.property(fc.array(part, { minLength: 1, maxLength: 3 }), (parts) => {
        const text = parts.join('');
        expect(relaxed(text) === asDescribed(text)).toBe(true);
      }),
      { numRuns: 150 },
    );
  });

  it('signs in steps that take turns with those of other messages, which use the same memory', () => {
    const bodies = ['one  line \r\n', 'another   line\t\r\n'].map((line) =>
      message(['From: ann@example.com'], line.repeat(60_000)),
    );
    const works = bodies.map((body) => signDkimInSteps(body, [signer], now));
    const signatures: string[][] = [];
    let steps = 0;
    while (works.length > 0) {
      const work = works.shift() ?? expect.fail('no work is left');
      const { done, value } = work.next();
      steps++;
      if (done === true) signatures.push(value);
      else works.push(work);
    }
    expect(steps).toBeGreaterThan(bodies.length);
    expect(signatures).toEqual(bodies.map((body) => signDkim(body, [signer], now)));
  });

  /** RFC 6376 §3.4.4, line by line. */
  function asDescribed(text: string): string {
    const lines = text.split('\r\n').map((line) => line.replace(/[ \t]+/g, ' ').replace(/ $/, ''));
    while (lines.at(-1) === '') lines.pop();
    return lines.map((line) => `${line}\r\n`).join('');
  }

  function relaxed(body: string): string {
    return Array.from(relaxedBody(Buffer.from(body)), (lines) => lines.toString()).join('');
  }
});

describe('a key', () => {
  it('is published as its public key', () => {
    const published = publicKeyRecordValue(key);
    expect(published).toMatch(/^v=DKIM1; k=rsa; p=[A-Za-z0-9+/]{390,}={0,2}$/);
    expect(publicKeyRecordValue(createPublicKey(key))).toBe(published);
  });

  it('is generated with 2048 bits, a different one each time', async () => {
    const [one, two] = await Promise.all([generateDkimKey(), generateDkimKey()]);
    expect(one.asymmetricKeyDetails?.modulusLength).toBe(2048);
    expect(publicKeyRecordValue(one)).not.toBe(publicKeyRecordValue(two));
  });
});
