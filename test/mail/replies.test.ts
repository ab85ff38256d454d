import { describe, expect, it } from 'vitest';
import { type Classification, classify, enhancedCode, type Scope } from '../../src/mail/classify/classify.ts';
import type { SmtpPhase } from '../../src/mail/reply.ts';

/** Replies as large providers and common servers give them, and what they mean: one line, one verdict. */
const REPLIES: [line: string, classification: Classification, scope: Scope, at?: SmtpPhase, mx?: string][] = [
  // Gmail
  [
    "550 5.1.1 The email account that you tried to reach does not exist. Please try 5.1.1 double-checking the recipient's email address for typos or 5.1.1 unnecessary spaces. Learn more at 5.1.1 https://support.google.com/mail/?p=NoSuchUser",
    'invalid-recipient',
    'recipient',
  ],
  [
    '550 5.2.1 The email account that you tried to reach is disabled. Learn more at 5.2.1 https://support.google.com/mail/?p=DisabledUser',
    'inactive-mailbox',
    'recipient',
  ],
  [
    "552 5.2.2 The recipient's inbox is out of storage space. Please direct the recipient to 5.2.2 https://support.google.com/mail/?p=OverQuotaPerm",
    'mailbox-full',
    'recipient',
  ],
  [
    "452 4.2.2 The recipient's inbox is out of storage space. Please direct the recipient to",
    'mailbox-full',
    'recipient',
  ],
  [
    '450 4.2.1 The user you are trying to contact is receiving mail too quickly. Please resend your message at a later time.',
    'rate-limited',
    'recipient',
  ],
  [
    '421 4.7.28 Gmail has detected an unusual rate of unsolicited mail originating from your IP address. To protect our users from spam, mail sent from your IP address has been temporarily rate limited.',
    'rate-limited',
    'sender',
    'dot',
  ],
  [
    '550 5.7.26 Your email has been blocked because the sender is unauthenticated. Gmail requires all senders to authenticate with either SPF or DKIM.',
    'authentication-failed',
    'sender',
    'dot',
  ],
  [
    "550 5.7.26 Unauthenticated email from example.com is not accepted due to 5.7.26 domain's DMARC policy.",
    'authentication-failed',
    'sender',
    'dot',
  ],
  [
    '550 5.7.1 Our system has detected that this message is likely unsolicited mail. To reduce the amount of spam sent to Gmail, this message has been blocked.',
    'spam-block',
    'message',
    'dot',
  ],
  [
    '550 5.7.1 [192.0.2.1 19] Gmail has detected that this message is likely suspicious due to the very low reputation of the sending domain.',
    'policy-block',
    'sender',
    'dot',
  ],
  [
    '550 5.7.25 [192.0.2.1] The IP address sending this message does not have a PTR record setup, or the corresponding forward DNS entry does not match the sending IP.',
    'reputation-block',
    'sender',
    'dot',
  ],
  [
    '552 5.7.0 This message was blocked because its content presents a potential security issue. Please visit https://support.google.com/mail/?p=BlockedMessage',
    'content-rejected',
    'message',
    'dot',
  ],
  ["552 5.3.4 Your message exceeded Google's message size limits.", 'message-too-large', 'message', 'dot'],
  [
    '451 4.3.0 Mail server temporarily rejected message. For more information, go to',
    'server-error',
    'site',
    'dot',
  ],
  // Microsoft
  [
    '550 5.5.0 Requested action not taken: mailbox unavailable (S2017062302).',
    'invalid-recipient',
    'recipient',
    'rcpt',
    'hotmail-com.olc.protection.outlook.com',
  ],
  [
    '550 5.1.10 RESOLVER.ADR.RecipientNotFound; Recipient nobody@example.com not found by SMTP address lookup',
    'invalid-recipient',
    'recipient',
  ],
  [
    '550 5.4.1 Recipient address rejected: Access denied. For more information see https://aka.ms/EXOSmtpErrors',
    'invalid-recipient',
    'recipient',
  ],
  [
    '550 5.7.606 Access denied, banned sending IP [192.0.2.1]. To request removal from this list please visit https://sender.office.com/',
    'reputation-block',
    'sender',
  ],
  [
    "550 5.7.1 Unfortunately, messages from [192.0.2.1] weren't sent. Please contact your Internet service provider since part of their network is on our block list (S3140).",
    'reputation-block',
    'sender',
    'mail',
  ],
  [
    '550 5.7.1 Service unavailable, Client host [192.0.2.1] blocked using Spamhaus. To request removal from this list see https://www.spamhaus.org/query/ip/192.0.2.1',
    'reputation-block',
    'sender',
    'mail',
  ],
  [
    '451 4.7.650 The mail server [192.0.2.1] has been temporarily rate limited due to IP reputation. For e-mail delivery information, see https://postmaster.live.com',
    'reputation-block',
    'sender',
    'mail',
  ],
  [
    '550 5.7.515 Access denied, sending domain EXAMPLE.COM does not meet the required authentication level. The sender domain in the 5322.From address',
    'authentication-failed',
    'sender',
    'dot',
  ],
  [
    '550 5.7.509 Access denied, sending domain [EXAMPLE.COM] does not pass DMARC verification and has a DMARC policy of reject.',
    'authentication-failed',
    'sender',
    'dot',
  ],
  [
    '451 4.7.500 Server busy. Please try again later from [192.0.2.1]. (S77719)',
    'rate-limited',
    'site',
    'mail',
    'example-com.mail.protection.outlook.com',
  ],
  [
    '550 5.7.133 RESOLVER.RST.SenderNotAuthenticatedForGroup; authentication required; Delivery restriction check failed because the sender was not authenticated when sending to this group',
    'policy-block',
    'recipient',
  ],
  ['452 4.3.1 Insufficient system resources', 'server-error', 'site', 'mail'],
  // Yahoo, AOL
  [
    "554 delivery error: dd This user doesn't have a yahoo.com account (nobody@yahoo.com) [0] - mta1061.mail.ne1.yahoo.com",
    'invalid-recipient',
    'recipient',
    'dot',
  ],
  [
    '554 30 Sorry, your message to nobody@yahoo.com cannot be delivered. This mailbox is disabled (554.30).',
    'inactive-mailbox',
    'recipient',
    'dot',
  ],
  ['552 1 Requested mail action aborted, mailbox not found', 'invalid-recipient', 'recipient'],
  [
    '421 4.7.0 [TSS04] Messages from 192.0.2.1 temporarily deferred due to unexpected volume or user complaints - 4.16.55.1; see https://postmaster.yahooinc.com/error-codes',
    'rate-limited',
    'sender',
    'mail',
  ],
  [
    "553 5.7.1 [BL21] Connections will not be accepted from 192.0.2.1, because the ip is in Spamhaus's list",
    'reputation-block',
    'sender',
    'greeting',
  ],
  [
    '554 5.7.9 Message not accepted for policy reasons. See https://postmaster.yahooinc.com/error-codes',
    'policy-block',
    'message',
    'dot',
  ],
  // Apple
  ['550 5.1.1 <nobody@icloud.com>: user does not exist', 'invalid-recipient', 'recipient'],
  ['552 5.2.2 <a@icloud.com>: user is over quota (in reply to RCPT TO command)', 'mailbox-full', 'recipient'],
  [
    '554 5.7.1 [CS01] Message rejected due to local policy. Please visit https://support.apple.com/en-us/HT204137',
    'policy-block',
    'message',
    'dot',
  ],
  // mail.ru, Yandex, Rambler
  [
    '550 Message was not accepted -- invalid mailbox. Local mailbox nobody@mail.ru is unavailable: user not found',
    'invalid-recipient',
    'recipient',
  ],
  [
    '550 spam message rejected. Please visit http://help.mail.ru/notspam-support/id?c=x or report details to abuse@corp.mail.ru.',
    'spam-block',
    'message',
    'dot',
  ],
  [
    '554 5.7.1 [1] Message rejected under suspicion of SPAM; https://ya.cc/1IrBc 1700000000-abc',
    'spam-block',
    'message',
    'dot',
  ],
  ['550 5.7.1 No such user!', 'invalid-recipient', 'recipient'],
  [
    '451 4.7.1 Sorry, the service is currently unavailable. Please come back later.',
    'greylisted',
    'recipient',
  ],
  ['452 4.2.2 Mailbox size limit exceeded', 'mailbox-full', 'recipient'],
  // GMX, web.de, T-Online, Orange, Free
  [
    '550 Requested action not taken: mailbox unavailable For explanation visit https://postmaster.gmx.net/en/error-messages',
    'invalid-recipient',
    'recipient',
  ],
  [
    '554 gmx.net (mxgmx016) Nemesis ESMTP Service not available. No SMTP service. Bad DNS PTR resource record. For explanation visit',
    'reputation-block',
    'sender',
    'greeting',
  ],
  ['552 Requested mail action aborted: exceeded storage allocation', 'mailbox-full', 'recipient'],
  [
    '554 IP=192.0.2.1 - A problem occurred. (Ask your postmaster for help or to contact tosa@rx.t-online.de to clarify.)',
    'reputation-block',
    'sender',
    'greeting',
  ],
  ['550 5.2.0 Mail rejete. Mail rejected. OFR_506 [506]', 'spam-block', 'message', 'dot'],
  [
    '421 mwinf5c04 ME Trop de connexions, veuillez verifier votre configuration. Too many connections, slow down. OFR004_104',
    'rate-limited',
    'site',
    'greeting',
  ],
  // QQ, 163
  [
    '550 Mailbox not found. http://service.mail.qq.com/cgi-bin/help?subtype=1&&id=20022&&no=1000728',
    'invalid-recipient',
    'recipient',
  ],
  [
    '550 Connection frequency limited. http://service.mail.qq.com/cgi-bin/help?subtype=1&&id=20022&&no=1000722',
    'rate-limited',
    'site',
    'mail',
  ],
  ['550 User suspended: nobody@163.com', 'inactive-mailbox', 'recipient'],
  [
    '554 DT:SPM 163 mx11,QMCowABnX, please see http://mail.163.com/help/help_spam_16.htm',
    'spam-block',
    'message',
    'dot',
  ],
  // Filters
  [
    '554 Blocked - see https://ipcheck.proofpoint.com/?ip=192.0.2.1',
    'reputation-block',
    'sender',
    'greeting',
  ],
  [
    '550 Invalid Recipient - https://community.mimecast.com/docs/DOC-1369#550',
    'invalid-recipient',
    'recipient',
  ],
  [
    '550 Administrative prohibition - envelope blocked - https://community.mimecast.com/docs/DOC-1369#550',
    'policy-block',
    'message',
  ],
  [
    '554 Service unavailable; Client host [192.0.2.1] blocked using Barracuda Reputation; http://www.barracudanetworks.com/reputation/?r=1&ip=192.0.2.1',
    'reputation-block',
    'sender',
  ],
  [
    '550 5.7.1 192.0.2.1 blocked by ldap:ou=rblmx,dc=comcast,dc=net -> BL000000 Blocked for abuse. Please see http://postmaster.comcast.net',
    'reputation-block',
    'sender',
    'greeting',
  ],
  ['550 5.1.1 Not our Customer', 'invalid-recipient', 'recipient'],
  ['421 Too many sessions opened', 'rate-limited', 'site', 'greeting'],
  [
    '550 #5.7.1 Your access to submit messages to this e-mail system has been rejected.',
    'policy-block',
    'message',
  ],
  // Postfix
  [
    '550 5.1.1 <nobody@example.com>: Recipient address rejected: User unknown in virtual mailbox table',
    'invalid-recipient',
    'recipient',
  ],
  [
    '550 5.1.0 <nobody@example.com>: Recipient address rejected: example.com',
    'invalid-recipient',
    'recipient',
  ],
  ['554 5.7.1 <a@example.com>: Relay access denied', 'relay-denied', 'recipient'],
  [
    '450 4.2.0 <a@example.com>: Recipient address rejected: Greylisted, see http://postgrey.schweikert.ch/help/example.com.html',
    'greylisted',
    'recipient',
  ],
  ['450 4.1.8 <s@example.com>: Sender address rejected: Domain not found', 'policy-block', 'sender', 'rcpt'],
  [
    '450 4.7.25 Client host rejected: cannot find your hostname, [192.0.2.1]',
    'reputation-block',
    'sender',
    'rcpt',
  ],
  [
    '504 5.5.2 <localhost>: Helo command rejected: need fully-qualified hostname',
    'reputation-block',
    'sender',
    'rcpt',
  ],
  ['552 5.3.4 Message size exceeds fixed limit', 'message-too-large', 'message', 'mail'],
  ['452 4.3.1 Insufficient system storage', 'server-error', 'site', 'mail'],
  ['421 4.7.0 mx.example.com Error: too many connections from 192.0.2.1', 'rate-limited', 'site', 'greeting'],
  ['451 4.3.5 Server configuration error', 'server-error', 'site'],
  ['554 5.7.1 Spam message rejected', 'spam-block', 'message', 'dot'],
  ['550 5.7.23 Message rejected due to: SPF fail - not authorized', 'authentication-failed', 'sender'],
  // Exim
  ['550 Unrouteable address', 'invalid-recipient', 'recipient'],
  ['550 unknown user', 'invalid-recipient', 'recipient'],
  [
    '550 Verification failed for <s@example.com> Previous (cached) callout verification failure Sender verify failed',
    'policy-block',
    'sender',
  ],
  ['451 Temporary local problem - please try later', 'server-error', 'site'],
  ['550 relay not permitted', 'relay-denied', 'recipient'],
  ['550 Message headers fail syntax check', 'content-rejected', 'message', 'dot'],
  // Sendmail
  ['550 5.1.1 <nobody@example.com>... User unknown', 'invalid-recipient', 'recipient'],
  [
    '553 5.1.8 <s@example.com>... Domain of sender address s@example.com does not exist',
    'policy-block',
    'sender',
    'mail',
  ],
  [
    '550 5.1.2 <a@example.com>... Host unknown (Name server: example.com: host not found)',
    'invalid-domain',
    'recipient',
  ],
  [
    '550 5.7.1 <a@example.com>... Relaying denied. IP name lookup failed [192.0.2.1]',
    'reputation-block',
    'sender',
  ],
  ['452 4.4.5 Insufficient disk space; try again later', 'server-error', 'site', 'mail'],
  ['554 5.4.6 Too many hops 26 (25 max): from <s@example.com>', 'routing-loop', 'recipient', 'dot'],
  // qmail, Courier, Domino, others
  ["553 sorry, that domain isn't in my list of allowed rcpthosts (#5.7.1)", 'relay-denied', 'recipient'],
  ['550 sorry, no mailbox here by that name (#5.1.1 - chkusr)', 'invalid-recipient', 'recipient'],
  ['552 sorry, that message size exceeds my databytes limit (#5.3.4)', 'message-too-large', 'message', 'dot'],
  ['550 nobody@example.com... No such user', 'invalid-recipient', 'recipient'],
  ['530 5.7.0 Must issue a STARTTLS command first', 'tls-failed', 'site', 'mail'],
  ['454 4.7.0 TLS not available due to local problem', 'tls-failed', 'site', 'starttls'],
  ['500 5.5.1 Command unrecognized', 'protocol-error', 'message'],
  ['503 5.5.1 Error: need RCPT command', 'protocol-error', 'message', 'data'],
  ['550 5.1.10 Domain does not accept mail (nullMX)', 'invalid-domain', 'recipient'],
  ['421 4.4.2 mx.example.com Error: timeout exceeded', 'network-error', 'site', 'dot'],
  ['421 4.3.2 Service shutting down and closing channel', 'server-error', 'site'],
  // In other languages
  [
    '550 5.1.1 Adresse d au moins un destinataire invalide. Invalid recipient. OFR_416 [416]',
    'invalid-recipient',
    'recipient',
  ],
  ['550 Empfänger unbekannt', 'invalid-recipient', 'recipient'],
  ['552 Postfach voll', 'mailbox-full', 'recipient'],
  ['550 El usuario no existe', 'invalid-recipient', 'recipient'],
  // By their codes alone
  ['550 5.1.3 what', 'invalid-recipient', 'recipient'],
  ['550 5.2.1 what', 'inactive-mailbox', 'recipient'],
  ['550 5.2.2 what', 'mailbox-full', 'recipient'],
  ['552 5.2.3 what', 'message-too-large', 'message'],
  ['550 5.4.6 what', 'routing-loop', 'recipient'],
  ['550 5.6.0 what', 'content-rejected', 'message'],
  ['550 5.7.1 what', 'policy-block', 'message'],
  ['451 4.4.1 what', 'network-error', 'site'],
  ['550 what', 'unclassified', 'recipient'],
  ['450 what', 'unclassified', 'recipient'],
];

describe('a reply', () => {
  it.each(REPLIES)('%s: %s', (line, classification, scope, stage = 'rcpt', mxHost) => {
    const [, code = '', text = ''] = /^(\d{3}) (.*)$/.exec(line) ?? [];
    const reply = { code: Number(code), enhanced: enhancedCode(text), text };
    expect(classify({ stage, reply, ...(mxHost && { mxHost }) })).toMatchObject({ classification, scope });
  });
});
