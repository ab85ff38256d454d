import { describe, expect, it } from 'vitest';
import { parseIncoming } from '../../../src/mail/incoming/parse.ts';

const parse = (text: string) => parseIncoming(Buffer.from(text));
const outline = (text: string) =>
  parse(text).reports.map(
    ({ recipient, action, status, classification }) => `${recipient} ${action} ${status} ${classification}`,
  );

const RETURNED = `Message-ID: <m.1@example.com>
X-Postrider-Id: signed.token
From: s@example.com
To: a@x.example
Subject: Hello

Hi`;

/** An RFC 3464 report with the notice and the fields of one recipient. */
function standard(notice: string, fields: string): string {
  return `From: MAILER-DAEMON@mx.example.net
Content-Type: multipart/report; report-type=delivery-status; boundary=b

--b

${notice}
--b
Content-Type: message/delivery-status

Reporting-MTA: dns; mx.example.net
Original-Envelope-Id: envelope.1

${fields}
--b
Content-Type: message/rfc822

${RETURNED}
--b--`;
}

describe('a standard report', () => {
  const report = parse(
    standard(
      '<a@x.example>: host mx.x.example said: 550 User unknown (in reply to RCPT TO command)',
      'Final-Recipient: rfc822; a@x.example\nAction: failed\nStatus: 5.0.0\nRemote-MTA: dns; mx.x.example\nDiagnostic-Code: smtp; 550 User unknown',
    ),
  );

  it('is parsed completely', () => {
    expect(report.reports).toEqual([
      {
        recipient: 'a@x.example',
        action: 'failed',
        status: '5.0.0',
        bounceType: 'hard',
        classification: 'invalid-recipient',
        replyCode: '550',
        diagnostic: '550 User unknown',
        remoteMta: 'mx.x.example',
        scope: 'recipient',
        suppress: 'now',
      },
    ]);
  });

  it('has the ids of the message', () => {
    expect(report).toMatchObject({
      kind: 'dsn',
      originalMessageId: 'm.1@example.com',
      originalEnvelopeId: 'envelope.1',
      postriderId: 'signed.token',
    });
  });
});

describe('the bounce type of "user unknown"', () => {
  const judged = (notice: string, status: string, diagnostic: string) =>
    parse(
      standard(
        notice,
        `Final-Recipient: rfc822; a@x.example\nAction: failed\nStatus: ${status}\nDiagnostic-Code: smtp; ${diagnostic}`,
      ),
    ).reports[0];

  it.each([
    ['in answer to RCPT', '(in reply to RCPT TO command)', '5.0.0', '550 User unknown', 'hard'],
    ['with a code that confirms it', '', '5.1.1', '550 5.1.1 User unknown', 'hard'],
    ['with the reporter’s code', '', '5.1.1', '550 User unknown', 'hard'],
    ['after DATA', '(in reply to end of DATA command)', '5.0.0', '550 User unknown', 'soft'],
    [
      'after DATA, the code being the reporter’s',
      '(in reply to end of DATA command)',
      '5.1.1',
      '550 User unknown',
      'soft',
    ],
    ['in an unknown phase', '', '5.0.0', '550 User unknown', 'hard'],
    ['by a server that still retries', '', '4.1.1', '450 4.1.1 User unknown', 'soft'],
    ['in reply to MAIL', '(in reply to MAIL FROM command)', '5.0.0', '550 User unknown', 'block'],
    [
      'when the notice mentions a disabled account',
      'The account is disabled. (in reply to RCPT TO command)',
      '5.0.0',
      '550 User unknown',
      'soft',
    ],
  ])('%s', (_, notice, status, diagnostic, bounceType) => {
    expect(judged(notice, status, diagnostic)).toMatchObject({ bounceType });
  });

  it('is not hard for unknown wording or a delay', () => {
    expect(judged('(in reply to RCPT TO command)', '5.0.0', '550 mumble')).toMatchObject({
      bounceType: 'soft',
      suppress: 'never',
    });
    const delayed = standard('', 'Final-Recipient: rfc822; a@x.example\nAction: delayed\nStatus: 5.1.1');
    expect(parse(delayed).reports[0]).toMatchObject({
      action: 'delayed',
      bounceType: 'soft',
      suppress: 'never',
    });
  });
});

it.each(['delivered', 'relayed', 'expanded'])('%s is not a bounce', (action) => {
  const fields = `Final-Recipient: rfc822; a@x.example\nAction: ${action}\nStatus: 2.1.5\nDiagnostic-Code: smtp; 250 Ok`;
  expect(parse(standard('', fields)).reports).toMatchObject([
    { action, status: '2.1.5', bounceType: null, suppress: 'never' },
  ]);
});

it('prefers the code of the quoted reply to that of the reporting server', () => {
  const fields =
    'Final-Recipient: rfc822; a@x.example\nAction: failed\nStatus: 5.1.1\nDiagnostic-Code: smtp; 550 5.7.1 blacklisted';
  expect(outline(standard('', fields))).toEqual(['a@x.example failed 5.7.1 reputation-block']);
});

/** Notices without machine-readable fields, as servers write them; `To` is always the sender. */
const NOTICES: [server: string, header: string, body: string, reports: string[]][] = [
  [
    'qmail',
    'From: MAILER-DAEMON@mx.example.net\nSubject: failure notice',
    `Hi. This is the qmail-send program at mx.example.net.
I'm afraid I wasn't able to deliver your message to the following addresses.

<a@x.example>:
Sorry, no mailbox here by that name. (#5.1.1)

<b@x.example>:
192.0.2.1 does not like recipient.
Remote host said: 552 5.2.2 over quota
Giving up on 192.0.2.1.

--- Below this line is a copy of the message.

${RETURNED}`,
    ['a@x.example failed 5.1.1 invalid-recipient', 'b@x.example failed 5.2.2 mailbox-full'],
  ],
  [
    'Exim',
    'From: Mail Delivery System <Mailer-Daemon@mx.example.net>\nX-Failed-Recipients: a@x.example,\n b@x.example\nAuto-Submitted: auto-replied',
    `A message that you sent could not be delivered to one or more of its
recipients. This is a permanent error. The following address(es) failed:

  a@x.example
    host mx.x.example [192.0.2.1]
    SMTP error from remote mail server after RCPT TO:<a@x.example>:
    550 5.1.1 unknown user
  b@x.example
    (generated from c@x.example)
    retry timeout exceeded

------ This is a copy of the message, including all the headers. ------

${RETURNED}`,
    ['a@x.example failed 5.1.1 invalid-recipient', 'b@x.example failed 5.0.0 expired'],
  ],
  [
    'Postfix before it sent reports',
    'From: MAILER-DAEMON@mx.example.net (Mail Delivery System)\nSubject: Undelivered Mail Returned to Sender',
    `This is the Postfix program at host mx.example.net.
For further assistance, please contact <postmaster@mx.example.net>

<a@x.example>: host mx.x.example[192.0.2.1] said: 550 5.7.1 blocked using
    bl.spamcop.net (in reply to RCPT TO command)`,
    ['a@x.example failed 5.7.1 reputation-block'],
  ],
  [
    'Sendmail 5',
    'From: Mail Delivery Subsystem <MAILER-DAEMON@mx.example.net>\nSubject: Returned mail: User unknown',
    `   ----- Transcript of session follows -----
While talking to mx.x.example:
>>> RCPT To:<a@x.example>
<<< 550 <a@x.example>... User unknown
550 <a@x.example>... User unknown
550 y.example (smtp)... 550 Host unknown
554 <b@y.example>... 550 Host unknown (Authoritative answer from name server)

   ----- Unsent message follows -----
${RETURNED}`,
    ['a@x.example failed 5.0.0 invalid-recipient', 'b@y.example failed 5.0.0 invalid-domain'],
  ],
  [
    'OpenSMTPD',
    'From: Mailer Daemon <MAILER-DAEMON@mx.example.net>\nSubject: Delivery status notification: error',
    `    An error has occurred while attempting to deliver a message for
    the following list of recipients:

a@x.example: 550 5.2.2 Mailbox Full
b@x.example: 550 5.1.1 User unknown

    Below is a copy of the original message:

${RETURNED}`,
    ['a@x.example failed 5.2.2 mailbox-full', 'b@x.example failed 5.1.1 invalid-recipient'],
  ],
  [
    'a warning',
    'From: Mailer Daemon <MAILER-DAEMON@mx.example.net>\nSubject: Delivery status notification: warning',
    `    A message is delayed for more than 10 minutes for the following
    list of recipients:

a@x.example: Network error on destination MXs`,
    ['a@x.example delayed 4.0.0 network-error'],
  ],
  [
    'Gmail, old form',
    'From: Mail Delivery Subsystem <mailer-daemon@googlemail.com>\nX-Failed-Recipients: a@x.example',
    `Delivery to the following recipient failed permanently:

     a@x.example

Technical details of permanent failure:
The error that the other server returned was: 550 550 5.1.1 no such user (state 13).

----- Original message -----

${RETURNED}`,
    ['a@x.example failed 5.1.1 invalid-recipient'],
  ],
  [
    'GMX',
    'From: MAILER-DAEMON@mail.gmx.com\nSubject: Mail delivery failed: returning message to sender',
    `failed:

"a@x.example":
SMTP error from remote server after RCPT command:
host: mx.x.example
5.2.2 Mailbox Full

--- The header of the original message is following. ---

${RETURNED}`,
    ['a@x.example failed 5.2.2 mailbox-full'],
  ],
  [
    'Exchange before 2007',
    'From: System Administrator <postmaster@x.example>\nSubject: Undeliverable: Hello',
    `Your message

  To:      someone@x.example
  Subject: Hello

did not reach the following recipient(s):

a@x.example on Thu, 29 Apr 2010 00:00:00 -0000
    The recipient name is not recognized`,
    ['a@x.example failed 5.0.0 invalid-recipient'],
  ],
  [
    'Notes, the reason first',
    'From: postmaster@n.x.example\nSubject: Undeliverable message',
    `------- Failure Reasons  --------

User not listed in public Name & Address Book
a@x.example

------- Returned Message --------

${RETURNED}`,
    ['a@x.example failed 5.0.0 invalid-recipient'],
  ],
  [
    'a gateway with a sentence',
    'From: postmaster@gw.x.example\nSubject: Message delivery has failed',
    `Unable to deliver message to: <a@x.example>
Delivery failed for the following reason:
mx.x.example[192.0.2.1] responded with failure: 552 mailbox is over quota (#5.2.2)`,
    ['a@x.example failed 5.2.2 mailbox-full'],
  ],
  [
    'machine-readable fields in the text',
    'From: MAILER-DAEMON@ses.example\nSubject: Delivery Status Notification (Failure)\nContent-Transfer-Encoding: quoted-printable',
    `Technical report:

Reporting-MTA: dns; ses.example
Action: failed
Final-Recipi=
ent: rfc822; a@x.example
Diagnostic-Code: smtp; 550 5.1.=
1 User unknown
Status: 5.1.1`,
    ['a@x.example failed 5.1.1 invalid-recipient'],
  ],
  [
    'no recipient except in the returned message',
    'From: mmsc <sysadmin@mms.x.example>\nReturn-Path: <>\nSubject: Undeliverable Message',
    `Message could not be delivered to mobile.
Error: No valid recipients for this MM

Original Message:
From: s@example.com
To: a@x.example
Subject: Hello`,
    ['a@x.example failed 5.0.0 invalid-recipient'],
  ],
  [
    'HTML',
    'From: postmaster@x.example\nSubject: Undeliverable\nContent-Type: text/html',
    '<html><style>p { x: a@b.c }</style><p>Delivery has failed to these recipients:<br>&lt;a@x.example&gt;<br>550 5.1.1 user&nbsp;unknown</p></html>',
    ['a@x.example failed 5.1.1 invalid-recipient'],
  ],
  [
    'a report forwarded by a person',
    'From: Someone <s@example.com>\nSubject: Fwd: Returned mail: see transcript for details',
    `See below:

> Reporting-MTA: dns; mx.example.net
>
> Final-Recipient: RFC822; a@x.example
> Action: failed
> Status: 5.1.1`,
    ['a@x.example failed 5.1.1 invalid-recipient'],
  ],
];

describe('a notice without machine-readable fields', () => {
  it.each(NOTICES)('of %s', (_, header, body, reports) => {
    const mail = `To: s@example.com\n${header}\n\n${body}`;
    expect(parse(mail).kind).toBe('dsn');
    expect(outline(mail)).toEqual(reports);
  });

  it('has the ids of the message below it', () => {
    const [, header, body] = NOTICES[0] ?? ['', '', ''];
    expect(parse(`${header}\n\n${body}`)).toMatchObject({
      originalMessageId: 'm.1@example.com',
      postriderId: 'signed.token',
    });
  });
});

it.each(['was not delivered yet', 'has not been delivered yet', 'is not yet delivered'])(
  'reads a notice that a message %s as a delay',
  (words) => {
    const notice = `From: postmaster@x.example\nSubject: Message status - Quarantine\n\nYour message to a@x.example is in quarantine and ${words}.`;
    expect(parse(notice)).toMatchObject({
      kind: 'dsn',
      reports: [{ recipient: 'a@x.example', action: 'delayed', bounceType: 'soft', suppress: 'never' }],
    });
  },
);

describe('a reply that quotes a message', () => {
  const BODY = `We have received your request and will answer soon.

On Thu, 15 Jan 2026 the shop wrote:
> If the parcel could not be delivered, it waits at the post office.
> <a@x.example>: 550 5.1.1 User unknown
>> Final-Recipient: rfc822; a@x.example
>> Action: failed
>> Status: 5.1.1`;
  const SENDER = 'From: help-admin@x.example\nReturn-Path: <>\nAuto-Submitted: auto-generated';

  it.each([
    [
      'a help desk',
      'Subject: [#4711] Re: Delivery notification: order 10042\nIn-Reply-To: <x@kunde.example>',
    ],
    ['a sender without In-Reply-To', 'Subject: Re: Delivery notification: order 10042'],
    ['a help desk without In-Reply-To', 'Subject: [#4711] Re: Delivery notification: order 10042'],
    ['a sender without Re:', 'Subject: Your request\nIn-Reply-To: <x@kunde.example>'],
  ])('is not a report when it is from %s', (_, header) => {
    expect(parse(`${SENDER}\n${header}\n\n${BODY}`)).toMatchObject({
      kind: 'auto-reply',
      reports: [{ action: 'replied', bounceType: null, suppress: 'never' }],
    });
  });

  it('is a report when its own text is one', () => {
    const header =
      'From: postmaster@x.example\nSubject: Undeliverable: Re: Hello\nIn-Reply-To: <m.1@example.com>';
    expect(
      outline(`${header}\n\n<a@x.example>: 550 5.1.1 User unknown\n\n> <b@x.example>: 550 spam`),
    ).toEqual(['a@x.example failed 5.1.1 invalid-recipient']);
  });
});

it('parses a report inside a message of a gateway', () => {
  const inner = standard('', 'Final-Recipient: rfc822; a@x.example\nAction: failed\nStatus: 5.1.1');
  const mail = `From: MAILER-DAEMON@gw.example\nContent-Type: multipart/mixed; boundary=outer\n\n--outer\n\nSee attachment\n--outer\nContent-Type: message/rfc822\n\n${inner}\n--outer--`;
  expect(outline(mail)).toEqual(['a@x.example failed 5.1.1 invalid-recipient']);
});

it.each([
  ['a letter', 'From: A <a@x.example>\nSubject: Lunch?\n\nShall we? b@x.example comes too.'],
  ['a newsletter', 'From: news@x.example\nSubject: Delivery in two days\n\nYour parcel is on its way.'],
  ['nothing', ''],
  ['header without body', 'Subject: x'],
])('%s is not a report', (_, mail) => {
  expect(parse(mail)).toMatchObject({ kind: 'unknown', reports: [] });
});

describe('a status that names the cause', () => {
  const fields = 'Final-Recipient: rfc822; a@x.example\nAction: failed\nStatus: 5.1.1';

  it.each([
    'This message has been scanned for all viruses.',
    'Any unauthorized disclosure is prohibited.',
    'a@x.example: see below. Spam and viruses are prohibited here.',
  ])('outranks a footer: %s', (footer) => {
    expect(parse(standard(footer, fields)).reports).toMatchObject([
      { classification: 'invalid-recipient', bounceType: 'hard', status: '5.1.1' },
    ]);
  });

  it('outranks quoted header fields of the returned message', () => {
    const notice =
      'Your message to a@x.example failed.\n\n> X-Spam: yes, blocked as spam\n>  because of policy\n> Subject: spam blocked';
    const withoutCause = fields.replace('5.1.1', '5.0.0');
    expect(parse(standard(notice, withoutCause)).reports).toMatchObject([
      { classification: 'unclassified', bounceType: 'soft' },
    ]);
  });

  it('is overridden by a reply quoted in the notice', () => {
    const notice = '<a@x.example>: host mx.x.example said: 552 5.2.2 Mailbox full (in reply to RCPT TO)';
    expect(parse(standard(notice, fields)).reports).toMatchObject([{ classification: 'mailbox-full' }]);
  });
});

describe('a synonym of "failed"', () => {
  it.each(['failure', 'fail', 'Error'])('reads "Action: %s" as failed', (action) => {
    const fields = `Final-Recipient: rfc822; a@x.example\nAction: ${action}\nStatus: 5.1.1\nDiagnostic-Code: smtp; 550 5.1.1 User unknown`;
    expect(outline(standard('Not delivered.', fields))).toEqual([
      'a@x.example failed 5.1.1 invalid-recipient',
    ]);
  });
});
