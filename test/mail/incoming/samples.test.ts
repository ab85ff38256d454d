import { describe, expect, it } from 'vitest';
import { parseFile } from '../../../src/mail/incoming/parse.ts';
import { sample } from '../../support/samples.ts';

describe('the bounces of public reports', () => {
  it.each(['dsn-500-no-such-user.eml', 'text-dsn-zh.eml'])('%s is hard', (name) => {
    expect(parseFile(sample(name))).toMatchObject({
      kind: 'dsn',
      reports: [{ recipient: 'ada@dest.test', bounceType: 'hard', classification: 'invalid-recipient' }],
    });
  });

  it('dsn-521.eml does not concern the recipient', () => {
    expect(parseFile(sample('dsn-521.eml'))).toMatchObject({
      kind: 'dsn',
      reports: [
        { recipient: 'ada@dest.test', classification: 'protocol-error', scope: 'message', suppress: 'never' },
      ],
    });
  });
});

it.each(['oof-m365-da.eml', 'oof-x-autoresponder.eml', 'oof-x-precedence.eml'])(
  '%s is an automatic reply',
  (name) => {
    expect(parseFile(sample(name))).toMatchObject({
      kind: 'auto-reply',
      reports: [{ recipient: 'ada@dest.test', action: 'replied', bounceType: null, suppress: 'never' }],
    });
  },
);

it('arf-list-to.eml names no recipient, because nobody knows who complained', () => {
  expect(parseFile(sample('arf-list-to.eml'))).toMatchObject({ kind: 'arf', reports: [{ recipient: '' }] });
});

it.each(['dmarc-forwarded.eml', 'dmarc-macosx-zip.eml', 'dmarc-textplain.eml'])('%s is read', (name) => {
  expect(parseFile(sample(name))).toMatchObject({
    kind: 'dmarc-report',
    problem: null,
    aggregate: { organization: 'dest.test', reportId: 'r1', domain: 'sender.test', sources: [{ count: 3 }] },
  });
});

it('tls-numeric-id.eml is read', () => {
  expect(parseFile(sample('tls-numeric-id.eml'))).toMatchObject({
    kind: 'tls-report',
    problem: null,
    tls: { reportId: expect.stringMatching(/^\d+$/), policies: [{ domain: 'sender.test' }] },
  });
});

it.each(['rfc822; <@relay.test:ada@dest.test>', 'rfc822;@relay.test,@other.test:ada@dest.test'])(
  'reads the recipient behind a source route: %s',
  (recipient) => {
    const text = reportWith('5.1.1', '550 5.1.1 User unknown')
      .toString()
      .replace('rfc822; ada@dest.test', recipient);
    expect(parseFile(Buffer.from(text)).reports).toMatchObject([{ recipient: 'ada@dest.test' }]);
  },
);

it('reads the recipient behind a source route in a notice', () => {
  const notice = `From: MAILER-DAEMON@mx.relay.test
Subject: failure notice

I wasn't able to deliver your message.

<@relay.test:ada@dest.test>:
Sorry, no mailbox here by that name. (#5.1.1)
`;
  expect(parseFile(Buffer.from(notice)).reports).toMatchObject([{ recipient: 'ada@dest.test' }]);
});

/** A report of one failed recipient, without the command to which the receiver replied. */
function reportWith(status: string, diagnostic: string): Buffer {
  return Buffer.from(`From: MAILER-DAEMON@mx.relay.test
To: b-x@return-a.sender.test
Subject: Undelivered Mail
Content-Type: multipart/report; report-type=delivery-status; boundary=B

--B
Content-Type: text/plain

Your message could not be delivered.

--B
Content-Type: message/delivery-status

Reporting-MTA: dns; mx.relay.test

Final-Recipient: rfc822; ada@dest.test
Action: failed
Status: ${status}
Diagnostic-Code: smtp; ${diagnostic}

--B--
`);
}

describe('a report that does not name the command', () => {
  it.each([
    ['5.0.0', '550 User not found'],
    ['5.0.0', '550 User unknown'],
    ['5.0.0', '550 <ada@dest.test>: Recipient address rejected: User unknown in virtual alias table'],
    ['5.0.0', "554 delivery error: dd This user doesn't have a dest.test account (ada@dest.test) [-9]"],
    ['5.0.0', 'Sorry, no mailbox here by that name.'],
    ['5.0.0', "This user doesn't have a dest.test account (ada@dest.test)"],
    ['5.5.0', '550 Usuario desconocido'],
    ['5.0.0', '550 用户不存在'],
  ])('is hard when the text is about the recipient: %s %s', (status, diagnostic) => {
    expect(parseFile(reportWith(status, diagnostic)).reports).toMatchObject([
      { bounceType: 'hard', classification: 'invalid-recipient' },
    ]);
  });

  it.each([
    [
      '5.0.0',
      '521 5.2.1 :  (HVU:B1) The URL contained in your email has generated a high volume of complaints',
    ],
    ['5.0.0', '521 mx.dest.test'],
    ['5.0.0', '550 IP-Adresse gesperrt'],
    ['5.1.1', '550 5.1.1 Absender abgelehnt'],
    ['5.0.0', '550 mumble'],
  ])('never suppresses when it is about something else: %s %s', (status, diagnostic) => {
    expect(parseFile(reportWith(status, diagnostic)).reports).toMatchObject([{ suppress: 'never' }]);
  });

  it.each([
    ['4.1.1', '450 4.1.1 User unknown'],
    ['5.2.1', '550 5.2.1 <ada@dest.test>... User unknown'],
  ])(
    'is soft without the class invalid-recipient when the codes contradict the text: %s %s',
    (status, diagnostic) => {
      expect(parseFile(reportWith(status, diagnostic)).reports).toMatchObject([
        { bounceType: 'soft', classification: 'inactive-mailbox', suppress: 'never' },
      ]);
    },
  );
});
