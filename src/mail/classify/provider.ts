import type { Rule } from './rules.ts';

/**
 * Replies that only one large mailbox provider sends, with a meaning that its documentation or long use establishes:
 * Google, Microsoft, Yahoo and AOL, Facebook, Symantec, KDDI, Apple. They precede all general wording.
 */
export const PROVIDER_RULES: readonly Rule[] = [
  // Gmail and Google Workspace
  {
    phrases: [
      'user you are trying to contact is receiving mail',
      'is receiving mail too quickly',
      'receiving mail at a rate that',
    ],
    meaning: 'recipient rate limit',
    example: {
      code: 450,
      enhanced: '4.2.1',
      text: 'The user you are trying to contact is receiving mail too quickly. Please resend your message at a later time.',
    },
  },
  {
    phrases: ['unusual rate of * your ip'],
    meaning: 'IP address rate limit',
    example: {
      code: 421,
      enhanced: '4.7.28',
      text: 'Our system has detected an unusual rate of unsolicited mail originating from your IP address.',
    },
  },
  {
    phrases: [
      'unusual rate of unsolicited mail',
      'sending quota exceeded',
      'smtp relay limit exceeded',
      'email quota exceeded',
    ],
    meaning: 'sender rate limit',
    example: {
      code: 421,
      enhanced: '4.7.28',
      text: 'Our system has detected an unusual rate of unsolicited mail originating from your DKIM domain.',
    },
  },
  {
    phrases: ['low reputation of the sending ip', "the ip you're using to send mail is not authorized"],
    meaning: 'IP address blocklisted',
    example: {
      code: 550,
      enhanced: '5.7.1',
      text: "The IP you're using to send mail is not authorized to send email directly to our servers.",
    },
  },
  {
    phrases: ['low reputation of the sending domain'],
    meaning: 'sender rejected',
    example: {
      code: 550,
      enhanced: '5.7.1',
      text: 'This message is likely suspicious due to the very low reputation of the sending domain.',
    },
  },
  {
    phrases: [
      'ipv6 sending guidelines',
      'does not have authentication information',
      'mail is unauthenticated',
    ],
    meaning: 'sender not authenticated',
    example: {
      code: 550,
      enhanced: '5.7.1',
      text: 'This message does not meet IPv6 sending guidelines regarding PTR records and authentication.',
    },
  },
  {
    phrases: [
      'email account that you tried to reach is over quota',
      'inbox is out of storage',
      'out of storage space',
    ],
    meaning: 'mailbox full',
    example: {
      code: 552,
      enhanced: '5.2.2',
      text: "The recipient's inbox is out of storage space and inactive.",
    },
  },
  // Microsoft: Exchange Online, Outlook.com, Exchange Server
  {
    phrases: ['recipient address rejected: access denied', 'user address is rejected: access denied'],
    meaning: 'possibly no such recipient',
    example: {
      code: 550,
      enhanced: '5.4.1',
      text: 'Recipient address rejected: Access denied. AS(201806281) [DB5EUR03FT049.eop-EUR03.prod.protection.outlook.com]',
    },
  },
  {
    phrases: [
      'resolver.adr.recip',
      'resolver.adr.exrecipnotfound',
      'recipient not found by smtp address lookup',
      'resolver.adr.badprimary',
    ],
    meaning: 'no such recipient',
    example: {
      code: 550,
      enhanced: '5.1.10',
      text: 'RESOLVER.ADR.RecipientNotFound; Recipient not found by SMTP address lookup',
    },
  },
  {
    phrases: [
      'resolver.rst.recipsizelimit',
      'resolver.rst.sendsizelimit',
      'message size exceeds fixed maximum',
    ],
    meaning: 'message too large',
    example: {
      code: 550,
      enhanced: '5.2.3',
      text: 'RESOLVER.RST.RecipSizeLimit; message too large for this recipient',
    },
  },
  {
    phrases: [
      'resolver.rst.recipientratelimit',
      'recipient thread limit exceeded',
      'resolver.rst.recipientthreshold',
    ],
    meaning: 'recipient rate limit',
    example: { code: 432, enhanced: '4.3.2', text: 'STOREDRV.Deliver; recipient thread limit exceeded' },
  },
  {
    phrases: ['resolver.rst.'],
    meaning: 'recipient accepts known senders only',
    example: { code: 550, enhanced: '5.7.1', text: 'RESOLVER.RST.AuthRequired; authentication required' },
  },
  {
    enhanced: ['x.7.124', 'x.7.129', 'x.7.133', 'x.7.134', 'x.7.135', 'x.7.136'],
    meaning: 'recipient accepts known senders only',
    example: { code: 550, enhanced: '5.7.133', text: 'Sender not authenticated for group' },
  },
  {
    phrases: [
      'banned sending ip',
      'part of their network is on our block list',
      'rate limited due to ip reputation',
      'traffic not accepted from this ip',
    ],
    meaning: 'IP address blocklisted',
    example: {
      code: 550,
      enhanced: '5.7.606',
      text: 'Access denied, banned sending IP [192.0.2.1]. To request removal visit',
    },
  },
  {
    phrases: ['does not meet the required authentication level'],
    meaning: 'sender not authenticated',
    example: {
      code: 550,
      enhanced: '5.7.515',
      text: 'Access denied, sending domain example.com does not meet the required authentication level.',
    },
  },
  {
    phrases: ['banned sender', 'bad outbound sender', 'tenant has exceeded threshold'],
    meaning: 'sender rejected',
    example: { code: 550, enhanced: '5.7.511', text: 'Access denied, banned sender[192.0.2.1]' },
  },
  {
    phrases: ['transport.rules.rejectmessage', 'custom mail flow rule'],
    meaning: 'message rejected by policy',
    example: {
      code: 550,
      enhanced: '5.7.1',
      text: 'TRANSPORT.RULES.RejectMessage; the message was rejected by organization policy',
    },
  },
  {
    enhanced: ['4.7.500', '4.3.2'],
    hosts: ['outlook.com', 'mx.microsoft'],
    meaning: 'rate limit',
    example: {
      code: 451,
      enhanced: '4.7.500',
      text: 'Server busy. Please try again later',
      mxHost: 'example-com.mail.protection.outlook.com',
    },
  },
  {
    phrases: ['mailbox unavailable'],
    hosts: ['outlook.com', 'hotmail.com'],
    codes: [550],
    meaning: 'no such recipient',
    example: {
      code: 550,
      enhanced: '5.5.0',
      text: 'Requested action not taken: mailbox unavailable (S2017062302).',
      mxHost: 'hotmail-com.olc.protection.outlook.com',
    },
  },
  // Yahoo, AOL
  {
    phrases: ["delivery error: dd this user doesn't have"],
    meaning: 'no such recipient',
    example: {
      code: 554,
      text: "delivery error: dd This user doesn't have a yahoo.com account (nobody@yahoo.com) [0]",
      phase: 'dsn',
    },
  },
  {
    phrases: ['this mailbox is disabled (554.30)', 'dd requested mail action aborted, mailbox not active'],
    meaning: 'mailbox inactive',
    example: {
      code: 554,
      text: '30 Sorry, your message to a@yahoo.com cannot be delivered. This mailbox is disabled (554.30).',
    },
  },
  {
    phrases: ['[gl01]'],
    meaning: 'greylisted',
    example: { code: 421, enhanced: '4.7.1', text: '[GL01] Message from (192.0.2.1) temporarily deferred' },
  },
  {
    phrases: ['[tss0', '[ts0', 'unexpected volume or user complaints'],
    meaning: 'IP address rate limit',
    example: {
      code: 421,
      enhanced: '4.7.0',
      text: '[TSS04] Messages from 192.0.2.1 temporarily deferred due to unexpected volume or user complaints - 4.16.55.1',
    },
  },
  {
    phrases: ['[bl2', '[bl1', '[bl0'],
    meaning: 'IP address blocklisted',
    example: { code: 553, enhanced: '5.7.1', text: '[BL21] Connections will not be accepted from 192.0.2.1' },
  },
  {
    phrases: ['[ph01]', '[ph02]', 'not accepted - [ph'],
    meaning: 'content rejected',
    example: { code: 554, text: 'Message not allowed - [PH01] Email not accepted for policy reasons.' },
  },
  // Facebook
  {
    phrases: ['rcp-p2', 'rcp-p3'],
    meaning: 'blocked by recipient',
    example: {
      code: 550,
      enhanced: '5.1.1',
      text: 'RCP-P2 http://postmaster.facebook.com/response_codes?ip=192.0.2.1#rcp',
    },
  },
  // Symantec
  {
    codes: [542],
    phrases: ['@ rejected'],
    meaning: 'no such recipient',
    example: { code: 542, text: 'a@example.com Rejected' },
  },
  // KDDI: its domain filter replies the same after DATA, without the address
  {
    hosts: ['ezweb.ne.jp', 'au.com'],
    phrases: ['<@>: user unknown'],
    meaning: 'no such recipient',
    example: { code: 550, text: '<a@ezweb.ne.jp>: User unknown', mxHost: 'lsean.ezweb.ne.jp', phase: 'dsn' },
  },
  // Apple
  {
    phrases: ['[cs01]', '[hm07]', '[hm08]', '[cs02]'],
    meaning: 'message rejected by policy',
    example: {
      code: 554,
      enhanced: '5.7.1',
      text: '[CS01] Message rejected due to local policy. Please visit https://support.apple.com',
    },
  },
  {
    phrases: ['inactive email address'],
    enhanced: ['5.1.1'],
    meaning: 'no such recipient',
    example: { code: 550, enhanced: '5.1.1', text: '<nobody@icloud.com>: inactive email address' },
  },
];
