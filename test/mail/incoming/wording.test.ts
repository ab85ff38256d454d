import { describe, expect, it } from 'vitest';
import { parseIncoming } from '../../../src/mail/incoming/parse.ts';

/*
 * Replies that reject an existing recipient, many of them with a code for "no such user": a wrong classification would
 * suppress a valid address. And replies about recipients that do not exist.
 */
const NOT_THE_ADDRESS = [
  '552-5.2.2 The email account that you tried to reach is over quota and inactive. Please direct the recipient to https://support.google.com/mail/?p=OverQuotaPerm',
  '452-4.2.2 The email account that you tried to reach is over quota.',
  '550-5.2.1 The email account that you tried to reach is inactive. https://support.google.com/mail/?p=DisabledUser',
  '450-4.2.1 The user you are trying to contact is receiving mail at a rate that prevents additional messages from being delivered.',
  '550-5.2.1 The user you are trying to contact is receiving mail at a rate that prevents additional messages from being delivered.',
  '550-5.7.26 This mail has been blocked because the sender is unauthenticated. Gmail requires all senders to authenticate with either SPF or DKIM.',
  '550-5.7.1 [198.51.100.7] Our system has detected that this message is likely unsolicited mail. To reduce the amount of spam sent to Gmail, this message has been blocked.',
  "550 5.7.1 Unfortunately, messages from [198.51.100.7] weren't sent. Please contact your Internet service provider since part of their network is on our block list (S3150).",
  '550 5.7.64 TenantAttribution; Relay Access Denied',
  '550 5.7.509 Access denied, sending domain example.com does not pass DMARC verification and has a DMARC policy of reject.',
  '550 5.7.511 Access denied, banned sender[198.51.100.7].',
  '550 5.7.124 Sender not in allowed-senders list',
  '550 5.7.133 RESOLVER.RST.SenderNotAuthenticatedForGroup; authentication required; Delivery restriction check failed because the sender was not authenticated when sending to this group',
  '554 5.2.2 mailbox full; STOREDRV.Deliver.Exception:QuotaExceededException.MapiExceptionShutoffQuotaExceeded; Failed to process message due to a permanent exception',
  '554 5.2.0 STOREDRV.Deliver; delivery result banner',
  '554 delivery error: dd Sorry your message to a@yahoo.com cannot be delivered. This account has been disabled or discontinued [#102]. - mta',
  '421 4.7.0 [TSS04] Messages from 198.51.100.7 temporarily deferred due to user complaints - 4.16.55.1',
  "553 5.7.1 [BL21] Connections will not be accepted from 198.51.100.7, because the ip is in Spamhaus's list",
  '554 5.7.9 Message not accepted for policy reasons. See https://postmaster.yahooinc.com/error-codes',
  '552 5.2.2 <a@icloud.com>: user is over quota',
  '554 5.7.1 [CS01] Message rejected due to local policy. Please visit https://support.apple.com/en-us/HT204137',
  '550 5.7.0 Blocked - see https://ipcheck.proofpoint.com/?ip=198.51.100.7',
  '554 Blocked - see https://ipcheck.proofpoint.com/?ip=198.51.100.7',
  '550 Rejected by header based Anti-Spoofing policy: x@y - https://community.mimecast.com/docs/DOC-1369#550',
  '554 Email rejected due to security policies - https://community.mimecast.com/docs/DOC-1369#554',
  '554 Service unavailable; Client host [smtp] blocked using Barracuda Reputation; http://www.barracudanetworks.com/reputation/?r=1&ip=198.51.100.7',
  '554 rejected due to spam content',
  "554-mx1.example Your access to this mail system has been rejected due to the sending MTA's poor reputation. If you believe that this failure is in error, please contact the intended recipient via alternate means.",
  '554 5.7.1 Service unavailable; Client host [198.51.100.7] blocked using zen.spamhaus.org; https://www.spamhaus.org/query/ip/198.51.100.7',
  '550 Administrative prohibition',
  '550-Verification failed for <b@x.example> 550-No Such User Here 550 Sender verify failed',
  '550-Callout verification failed: 550 5.1.1 sender unknown',
  '550 Sender verification failed',
  '550 relay not permitted, authentication required',
  '550 Mail content denied. http://service.mail.qq.com/cgi-bin/help?subtype=1&&id=20022&&no=1000726',
  '550 Mailbox unavailable or access denied [KxoxoGn...]',
  '550 Ip frequency limited [id]',
  '554 DT:SPM 163 mx1,OMCowACH, please see http://mail.163.com/help/help_spam_16.htm',
  '550 MI:SPF 163 mx',
  '553 Requested action not taken: NULL sender is not allowed 163',
  '421 DT:SUM 163 smtp',
  '550 Message was not accepted -- invalid mailbox. Local mailbox a@mail.ru is unavailable: account is disabled',
  '550 spam message rejected. Please visit http://help.mail.ru/notspam-support/id?c=',
  '554 5.7.1 [1] Message rejected under suspicion of SPAM; https://ya.cc/1IrBc',
  '552 5.2.2 Mailbox size limit exceeded',
  '554-gmx.net (mxgmx116) Nemesis ESMTP Service not available 554-No SMTP service 554-Bad DNS PTR resource record.',
  '550-Requested action not taken: mailbox unavailable 550-Reject due to policy restrictions. 550 For explanation visit https://postmaster.1und1.de',
  '554 Transaction failed Reject due to policy restrictions.',
  '554 IP=198.51.100.7 - A problem occurred. (Ask your postmaster for help or to contact tosa@rx.t-online.de to clarify.) (BL)',
  '552 5.1.1 Boite du destinataire pleine. Recipient overquota. OFR_417 [417]',
  '550 5.2.0 Mail rejete. Mail rejected. OFR_506 [506]',
  '421 4.3.2 Your ip address has been rate limited. Too many connections, slow down. OFR004_104 [104]',
  '550 spam detected',
  '550 5.7.1 smtp-11.iol.local smtp-11.iol.local IP blacklisted by CSI. For remove go to http://csi.cloudmark.com/reset-request/?ip=198.51.100.7',
  '522 5.2.2 sorry, recipient mailbox is full (#5.2.2 - chkuser)',
  '550 5.1.0 <b@x.example> sender rejected. Please see http://postmaster.comcast.net/smtp-error-codes.php#BL000010',
  '554 resimta-ch2-01v.sys.comcast.net comcast 198.51.100.7 found on one or more DNSBLs, see http://postmaster.comcast.net/smtp-error-codes.php#BL000001',
  '550 5.7.1 Connections not accepted from servers without a valid sender domain.alph740 Fix reverse DNS for 198.51.100.7',
  '550 5.4.1 All recipient addresses rejected : Access denied',
  '550 5.1.1 Recipient address rejected: undeliverable address: host mailbox[10.0.0.1] said: 452 4.2.2 Mailbox full (in reply to RCPT TO command)',
  '450 4.1.1 <a@dest.example>: Recipient address rejected: unverified address: connect to mail.x[198.51.100.7]:25: Connection refused',
  '550 5.1.1 <a@dest.example>: Recipient address rejected: unverified address: host said: 550 spam',
  '550 5.1.1 Address not yet active',
  '550 5.1.1 The recipient has been blocked by administrator',
  '550 5.1.1 Mail refused for policy reasons',
  '550 5.1.1 Your message was rejected as spam',
  '550 5.1.1 Sender address rejected: not in our whitelist',
  '554 5.1.1 Too many hops',
  '550 5.1.1 Quota exceeded for this user',
  '550 5.1.1 Greylisted, please try again in 5 minutes',
  '550 5.1.1 DNSBL listed: 198.51.100.7',
  '550 5.1.1 authentication required',
  '550 5.1.1 Message size exceeds limit',
  '550 5.1.1 mailbox temporarily disabled',
  '550 5.1.1 access denied',
  '550 5.1.1 Your IP is blacklisted',
  '550 5.1.1 DMARC failure',
  '550 5.1.1 SPF fail',
  '554 5.1.1 virus found',
  '550 5.1.1 Temporary lookup failure',
  '550 5.1.1 internal error in LDAP lookup',
  '550 5.1.2 DNS timeout',
  '550 5.1.2 Relaying denied',
  '550 5.1.1 Maximum number of recipients exceeded',
  '550 5.1.1 rate limit exceeded',
  '550 5.1.1 service unavailable',
  '550 5.1.1 Content rejected',
  '550 5.1.1 The user has not paid; mailbox suspended',
  '550 5.1.1 vacation, mailbox closed until March',
  "550 user's mailbox is over quota, recipient unknown until cleaned",
  '550 we do not accept bounces; user unknown sender',
  '550 too many unknown users from your host',
  '550 5.7.1 Too many invalid recipients',
  '550 Invalid address in header From',
  '550 Invalid sender address',
  '553 invalid sender domain',
  '501 Invalid MAIL FROM address',
  '550 bad address in From header',
  '550 No user authentication',
  '550 Sender unknown: no such user',
  '554 no valid recipients',
  '550 user unknown or mailbox full',
  '550 5.2.1 mailbox disabled for this recipient',
  '550 we could not verify that the recipient exists',
  '550 Backend user lookup failed',
  '554 Recipient lookup failed, backend database error',
  '550 unable to look up recipient in LDAP',
  '550 Recipient verification failed: connection timed out',
  '550 The mail server could not deliver mail to a@dest.example. The account or domain may not exist, they may be blacklisted, or missing the proper dns entries.',
  '550 5.5.0 Rejected due to too many unknown recipients',
  '550 Unable to verify sender: no such user',
  '550 permanent failure for one or more recipients (a@dest.example:blocked)',
  '550 no thanks',
  '550 not allowed here',
  '550 Denied by policy',
  '550 Sorry, we do not accept mail from your network',
  '550 Access denied',
  '550 mx.dest.example does not accept mail from example.com',
  '550 This system does not accept messages from your country',
  '550 The group does not accept messages from outside',
  '550 we do not accept any mail with attachments',
  '550 5.7.27 Sender address has null MX',
  '550 No MX record found for sender',
  '550 example.com: no MX records for your domain',
  '550 5.1.8 No MX found for example.com',
  '550 Invalid domain in HELO',
  '550 Client host not found in DNS',
  '554 domain not found for sender',
  '550 5.7.1 Mailbox does not accept messages over 10 MB',
  '550 your policy has been replaced by a new one',
  '550 authentication failed: invalid user or password',
  '550 Sender IP address does not exist in DNS',
  '550 return address unknown',
  '550 user not found in whitelist',
  '550 recipient not found in approved senders list',
  '550 no mailbox space',
  '550 cannot find user database',
  '550 5.1.1 Recipient address rejected: unverified address: Address lookup failed',
  '550 5.1.1 Recipient address rejected: undeliverable address: connect to mx.dest.example: Connection timed out',
  '550 Unrouteable address in sender',
  '550-Sender callout: 550 no such user here',
  '550 El buzon no existe o esta lleno',
];

const THE_ADDRESS = [
  '550 5.1.2 dest.example does not accept mail',
  '550 5.7.27 Host does not accept mail',
  '551 User has moved; please try <c@dest.example>',
  "550-5.1.1 The email account that you tried to reach does not exist. Please try 550-5.1.1 double-checking the recipient's email address for typos or 550 5.1.1 unnecessary spaces. https://support.google.com/mail/?p=NoSuchUser",
  '550 5.1.10 RESOLVER.ADR.RecipientNotFound; Recipient not found by SMTP address lookup',
  '550 5.5.0 Requested action not taken: mailbox unavailable (S2017062302).',
  "554 delivery error: dd This user doesn't have a yahoo.com account (a@yahoo.com) [0] - mta1.mail.ne1.yahoo.com",
  '552 1 Requested mail action aborted, mailbox not found',
  '550 5.1.1 <a@icloud.com>: user does not exist',
  '550 No Such User Here',
  '550 No such user here',
  '550 Mailbox not found. http://service.mail.qq.com/cgi-bin/help?subtype=1&&no=1000728',
  '550 User not found: a@163.com',
  '550 Message was not accepted -- invalid mailbox. Local mailbox a@mail.ru is unavailable: user not found',
  '550 5.7.1 No such user!',
  '550 Requested action not taken: mailbox unavailable',
  '550 5.1.1 Adresse d au moins un destinataire invalide. Invalid recipient. OFR_416 [416]',
  '550 Unknown recipient',
  '550 5.1.1 User unknown',
  '550 <a@libero.it>: Recipient address rejected: User unknown in virtual mailbox table',
  '550 Mailbox <a@seznam.cz> unknown',
  '550 5.1.1 sorry, no mailbox here by that name (#5.1.1 - chkuser)',
  '550 5.1.1 Not our Customer',
  '550 5.1.1 <a@cox.net> recipient rejected',
  '550 5.1.1 <a@dest.example>: Recipient address rejected: undeliverable address: unknown user: "a@dest.example"',
  '550 5.1.1 RecipNotFound',
  '550 5.1.2 Host or domain name not found. Name service error for name=x.invalid type=AAAA: Host not found',
  '550-The mail server could not deliver mail to a@dest.example. 550 No such person at this address.',
  '550 sorry, no mailbox here by that name. (#5.7.17)',
  '511 sorry, no mailbox here by that name (#5.1.1 - chkuser)',
  '550 account not found',
  '550 5.1.1 unknown or illegal alias: a@dest.example',
  '550 5.1.6 recipient no longer on server: a@dest.example',
  '551 5.1.1 not a local recipient',
];

/** The report of Postfix, with the command that was refused. */
const postfix = (reply: string, command: string) => `From: MAILER-DAEMON@mx.example (Mail Delivery System)
Subject: Undelivered Mail Returned to Sender
Content-Type: multipart/report; report-type=delivery-status; boundary=b

--b
Content-Type: text/plain

This is the mail system at host mx.example.

<a@dest.example>: host mail.dest.example[198.51.100.7] said: ${reply} (in
    reply to ${command} command)

--b
Content-Type: message/delivery-status

Reporting-MTA: dns; mx.example

Final-Recipient: rfc822; a@dest.example
Action: failed
Status: ${/\b5\.\d{1,3}\.\d{1,3}\b/.exec(reply)?.[0] ?? '5.0.0'}
Remote-MTA: dns; mail.dest.example
Diagnostic-Code: smtp; ${reply}

--b--
`;

const qmail = (reply: string) => `From: MAILER-DAEMON@mx.example
Subject: failure notice

Hi. This is the qmail-send program at mx.example.
I'm afraid I wasn't able to deliver your message to the following addresses.
This is a permanent error; I've given up. Sorry it didn't work out.

<a@dest.example>:
198.51.100.7 does not like recipient.
Remote host said: ${reply}
Giving up on 198.51.100.7.

--- Below this line is a copy of the message.

Return-Path: <shop@example.com>
Subject: hello
`;

const exim = (reply: string) => `From: Mail Delivery System <Mailer-Daemon@mx.example>
X-Failed-Recipients: a@dest.example
Auto-Submitted: auto-replied
Subject: Mail delivery failed: returning message to sender

This message was created automatically by mail delivery software.

A message that you sent could not be delivered to one or more of its
recipients. This is a permanent error. The following address(es) failed:

  a@dest.example
    host mail.dest.example [198.51.100.7]
    SMTP error from remote mail server after RCPT TO:<a@dest.example>:
    ${reply}

------ This is a copy of the message, including all the headers. ------

Return-path: <shop@example.com>
Subject: hello
`;

const typeIn = (mail: string) =>
  parseIncoming(Buffer.from(mail)).reports.map(({ bounceType, suppress }) => [bounceType, suppress]);

describe('a rejection that is not about the address', () => {
  it.each(NOT_THE_ADDRESS)('%s', (reply) => {
    for (const mail of [postfix(reply, 'RCPT TO'), postfix(reply, 'end of DATA'), qmail(reply), exim(reply)])
      expect(typeIn(mail)).toEqual([[expect.stringMatching(/^(?:soft|block)$/), 'never']]);
  });
});

describe('a rejection of the address', () => {
  it.each(THE_ADDRESS)('%s', (reply) => {
    for (const mail of [postfix(reply, 'RCPT TO'), qmail(reply), exim(reply)])
      expect(typeIn(mail)).toEqual([['hard', expect.stringMatching(/^(?:now|second-time)$/)]]);
  });
});

describe('a contradictory report', () => {
  it.each([
    ['Not enough disk space', 'soft'],
    ["The recipient's mailbox is full", 'soft'],
    ['The account is disabled', 'soft'],
    ['There is nobody here by that name', 'hard'],
    ['Please write to the postmaster for help', 'hard'],
  ])('is not hard: "%s", with 5.1.1 in its fields: %s', (words, type) => {
    const mail = postfix('550 5.1.1 <a@dest.example>... User unknown', 'RCPT TO').replace(
      /<a@dest\.example>: host[\s\S]*?command\)/,
      `It could not be delivered:\n${words}`,
    );
    expect(mail).toContain(words);
    expect(typeIn(mail)[0]?.[0]).toBe(type);
  });
});
