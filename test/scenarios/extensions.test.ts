import { expect } from 'vitest';
import { MINUTE } from '../../src/core/clock.ts';
import { inTurn } from './support/answers.ts';
import { bounced, deferred, delivered } from './support/attempts.ts';
import { registerScenarios } from './support/register.ts';

const FOOTER = '{{company_address_html}}{{unsubscribe_email_html}}';
const SEVEN_BITS = /^[\t\r\n\x20-\x7e]+$/;

registerScenarios('extensions', {
  'no-extensions': {
    title: 'sends a message in any language to a host without extensions as seven-bit text',
    hosts: { mx: { keywords: [] } },
    messages: {
      ada: {
        body: { subject: 'Grüße', html: `<p>Schöne Grüße, 你好</p>${FOOTER}` },
        attempts: [delivered('mx dot 250')],
        status: 'delivered',
      },
    },
    connections: { mx: ['EHLO MAIL RCPT DATA . QUIT'] },
    verify: ({ sink }) => {
      const [message] = sink('mx').messages;
      expect(message?.parameters).toBe('');
      expect(message?.raw).toMatch(SEVEN_BITS);
    },
  },
  'no-pipelining': {
    // RFC 2920 §3.1
    title: 'waits for the reply to each command when the host does not offer PIPELINING',
    hosts: {
      mx: { keywords: ['SIZE 50000000', '8BITMIME'], script: { rcpt: inTurn('450 4.2.1 Mailbox busy') } },
    },
    messages: {
      ada: {
        attempts: [
          deferred('450 4.2.1', 'inactive-mailbox', 5 * MINUTE, 'mx rcpt 450'),
          delivered('mx dot 250'),
        ],
        status: 'delivered',
      },
    },
    connections: { mx: ['EHLO MAIL RCPT QUIT', 'EHLO MAIL RCPT DATA . QUIT'] },
    verify: ({ sink }) => expect(sink('mx').sessions.map(({ pipelined }) => pipelined)).toEqual([0, 0]),
  },
  'pipelined-refusal-with-354': {
    // RFC 2920 §3.1: the server may accept DATA although it has refused the only recipient.
    title: 'sends only the final dot when the host accepts DATA after it has refused the recipient',
    hosts: {
      mx: {
        script: {
          rcpt: '550 5.1.1 No such user',
          data: '354 go ahead',
          dot: '554 5.5.1 No valid recipients',
        },
      },
    },
    messages: {
      ada: { attempts: [bounced('550 5.1.1', 'invalid-recipient', 'mx rcpt 550')], status: 'bounced' },
    },
    connections: { mx: ['EHLO MAIL RCPT DATA . QUIT'] },
    suppressed: ['ada'],
  },
  'size-refused-at-mail': {
    title: 'bounces a message whose SIZE the host refuses at MAIL, and does not suppress the recipient',
    hosts: { mx: { script: { mail: '552 5.3.4 Message size exceeds fixed limit' } } },
    messages: {
      ada: {
        attempts: [bounced('552 5.3.4', 'message-too-large', 'mx mail 552')],
        events: ['email_sent', 'email_rejected'],
        status: 'bounced',
      },
    },
    verify: ({ sink }) => {
      expect(sink('mx').sessions[0]?.commands[1]).toMatch(/^MAIL FROM:<[^>]+> SIZE=\d+$/);
    },
  },
  'size-too-small': {
    // RFC 1870 §6.1: the client does not send a message that exceeds the announced limit.
    title: 'bounces a message that exceeds the SIZE limit of the host, without sending MAIL',
    hosts: { mx: { keywords: ['PIPELINING', 'SIZE 1000', '8BITMIME'] }, mx2: {} },
    messages: {
      ada: {
        attempts: [bounced('552 5.3.4', 'message-too-large')],
        events: ['email_sent', 'email_rejected'],
        status: 'bounced',
        lastEvent: {
          bounceType: 'soft',
          source: 'local',
          diagnostic: expect.stringMatching(
            /^the message has \d+ bytes, mx\.size-too-small\.example accepts 1000 at most$/,
          ),
        },
      },
    },
    connections: { mx: ['EHLO QUIT'], mx2: [] },
  },
  'size-without-limit': {
    title: 'treats SIZE 0, and SIZE without a number, as no limit',
    hosts: { mx: { keywords: ['SIZE 0'] }, mx2: { keywords: ['SIZE'] } },
    zone: () => ({ one: { MX: ['10 mx'] }, two: { MX: ['10 mx2'] } }),
    messages: {
      ada: { subdomain: 'one', attempts: [delivered('mx dot 250')], status: 'delivered' },
      bob: { subdomain: 'two', attempts: [delivered('mx2 dot 250')], status: 'delivered' },
    },
  },
  'smtputf8-at-another-host': {
    title: 'uses the MX host that supports internationalized addresses',
    hosts: { mx: { keywords: ['PIPELINING', '8BITMIME'] }, mx2: {} },
    messages: {
      用户: {
        attempts: [
          delivered(
            'mx ehlo: mx.smtputf8-at-another-host.example does not support internationalized addresses (SMTPUTF8)',
            'mx2 dot 250',
          ),
        ],
        status: 'delivered',
      },
    },
    connections: { mx: ['EHLO QUIT'], mx2: ['EHLO MAIL RCPT DATA . QUIT'] },
  },
  'smtputf8-missing': {
    title: 'bounces mail to an address that needs SMTPUTF8 when no host offers it, and delivers other mail',
    settings: ({ domain }) => ({ 'delivery.shaping': [{ match: domain, connections: 1 }] }),
    hosts: { mx: { keywords: ['PIPELINING', '8BITMIME'] }, mx2: { keywords: [] } },
    messages: {
      用户: {
        attempts: [
          bounced(
            '553 5.6.7',
            'protocol-error',
            'mx ehlo: mx.smtputf8-missing.example does not support internationalized addresses (SMTPUTF8)',
            'mx2 ehlo: mx2.smtputf8-missing.example does not support internationalized addresses (SMTPUTF8)',
          ),
        ],
        events: ['email_sent', 'email_rejected'],
        status: 'bounced',
        lastEvent: { source: 'local' },
      },
      ada: { attempts: [delivered()], status: 'delivered' },
    },
  },
  smtputf8: {
    // RFC 6531 §3.4
    title: 'requests SMTPUTF8 only for an address that needs it',
    settings: ({ domain }) => ({ 'delivery.shaping': [{ match: domain, connections: 1 }] }),
    hosts: { mx: {} },
    messages: {
      用户: { attempts: [delivered('mx dot 250')], status: 'delivered' },
      ada: { attempts: [delivered('mx dot 250')], status: 'delivered' },
    },
    verify: ({ sink }) => {
      expect(sink('mx').messages.map(({ parameters }) => parameters.replace(/^SIZE=\d+ ?/, ''))).toEqual([
        'SMTPUTF8 BODY=8BITMIME',
        '',
      ]);
    },
  },
  'unknown-keywords': {
    title: 'parses keywords in any case and form, and ignores extensions that it does not use',
    hosts: {
      mx: {
        keywords: [
          'pipelining',
          'Size 50000000 ',
          'CHUNKING',
          'X-EXPS=LOGIN',
          'AUTH LOGIN PLAIN',
          'DSN',
          '',
          'LIMITS RCPTMAX=1',
        ],
      },
    },
    messages: { ada: { attempts: [delivered('mx dot 250')], status: 'delivered' } },
    connections: { mx: ['EHLO MAIL RCPT DATA . QUIT'] },
    verify: ({ sink }) => {
      expect(sink('mx').messages[0]?.parameters).toMatch(/^SIZE=\d+$/);
      expect(sink('mx').sessions[0]?.pipelined).toBe(2);
    },
  },
});
