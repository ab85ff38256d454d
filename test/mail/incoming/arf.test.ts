import { describe, expect, it } from 'vitest';
import { parseIncoming } from '../../../src/mail/incoming/parse.ts';

const parse = (text: string) => parseIncoming(Buffer.from(text));

function arf(
  fields: string,
  original = 'Message-ID: <m.1@example.com>\nX-Postrider-Id: signed.token\nTo: a@x.example',
): string {
  return `From: fbl@provider.example
Content-Type: multipart/report; report-type=feedback-report; boundary=b

--b

This is an email abuse report.
--b
Content-Type: message/feedback-report

${fields}
--b
Content-Type: message/rfc822

${original}

Hello
--b--`;
}

describe('a complaint (RFC 5965)', () => {
  it('has the recipient, the type and the ids of the message', () => {
    const complaint = parse(
      arf(
        'Feedback-Type: abuse\nUser-Agent: Loop/1.0\nVersion: 1\nOriginal-Rcpt-To: <a@x.example>\nReporting-MTA: dns; mx.x.example\nOriginal-Envelope-Id: envelope.1',
      ),
    );
    expect(complaint).toMatchObject({
      kind: 'arf',
      originalMessageId: 'm.1@example.com',
      originalEnvelopeId: 'envelope.1',
      postriderId: 'signed.token',
    });
    expect(complaint.reports).toMatchObject([
      {
        recipient: 'a@x.example',
        action: 'complained',
        feedbackType: 'abuse',
        bounceType: null,
        remoteMta: 'mx.x.example',
      },
    ]);
  });

  it.each([
    [
      'several recipients',
      'Feedback-Type: abuse\nOriginal-Rcpt-To: a@x.example\nOriginal-Rcpt-To: b@x.example',
      ['a@x.example', 'b@x.example'],
    ],
    ['only the returned message to go by', 'Feedback-Type: fraud', ['a@x.example']],
    ['an address to remove', 'Feedback-Type: opt-out\nRemoval-Recipient: c@x.example', ['c@x.example']],
    [
      'empty lines among the fields',
      'Feedback-Type: abuse\n\nOriginal-Rcpt-To: a@x.example',
      ['a@x.example'],
    ],
  ])('with %s', (_, fields, recipients) => {
    expect(parse(arf(fields)).reports.map(({ recipient }) => recipient)).toEqual(recipients);
  });

  it('has the signed id when the recipient is redacted', () => {
    const redacted = arf('Feedback-Type: abuse', 'X-Postrider-Id: signed.token\nTo: [redacted]');
    expect(parse(redacted)).toMatchObject({
      postriderId: 'signed.token',
      reports: [{ recipient: '' }],
    });
  });
});

describe('the recipient of a complaint', () => {
  it.each([
    ['undisclosed-recipients:;', ['']],
    ['Ada Lovelace', ['']],
    ['ada@dest.test, bob@dest.test', ['']],
    ['"Lovelace, Ada" <ada@dest.test>', ['ada@dest.test']],
    ['"bob@dest.test" <ada@dest.test>', ['ada@dest.test']],
  ])('is the only address in To: %s', (to, recipients) => {
    expect(parse(arf('Feedback-Type: abuse', `To: ${to}`)).reports.map(({ recipient }) => recipient)).toEqual(
      recipients,
    );
  });

  it.each([
    ['Original-Rcpt-To: ada@dest.test, bob@dest.test', ['ada@dest.test', 'bob@dest.test']],
    ['Original-Rcpt-To: <@relay.test:ada@dest.test>', ['ada@dest.test']],
    ['Original-Rcpt-To: ada@dest.test\nOriginal-Rcpt-To: Ada@dest.test', ['ada@dest.test']],
    ['Original-Rcpt-To: Ada Lovelace', ['shop@dest.test']],
  ])('is each address in %s', (field, recipients) => {
    expect(
      parse(arf(`Feedback-Type: abuse\n${field}`, 'To: shop@dest.test')).reports.map(
        ({ recipient }) => recipient,
      ),
    ).toEqual(recipients);
  });
});

describe('a complaint in another form', () => {
  it.each([
    [
      'the fields as plain text',
      'Subject: Abuse\n\nFeedback-Type: abuse\nUser-Agent: x\nOriginal-Rcpt-To: a@x.example',
      'abuse',
    ],
    [
      'Hotmail’s',
      'From: staff@hotmail.com\nSubject: complaint about message from 192.0.2.1\n\nReceived: x',
      'abuse',
    ],
    [
      'Apple Mail’s unsubscribe button',
      'From: a@x.example\nX-Apple-Unsubscribe: true\nSubject: unsubscribe\n\n',
      'opt-out',
    ],
    [
      'SES’s JSON',
      'From: no-reply@sns.amazonaws.com\n\n{"notificationType":"Complaint","complaint":{"complainedRecipients":[{"emailAddress":"a@x.example"}],"complaintFeedbackType":"abuse"},"mail":{"messageId":"m.1"}}',
      'abuse',
    ],
  ])('%s', (_, mail, feedbackType) => {
    expect(parse(mail)).toMatchObject({ kind: 'arf', reports: [{ action: 'complained', feedbackType }] });
  });
});
