import { expect } from 'vitest';
import { MINUTE } from '../../src/core/clock.ts';
import { inTurn, onConnection } from './support/answers.ts';
import { bounced, deferred, delivered } from './support/attempts.ts';
import { registerScenarios } from './support/register.ts';

const BLOCKED_EHLO_BLOCKLISTED = '554 5.7.1 Client host blocked using bl.spamcop.net';

const REJECTED_EHLO_REJECTED = '550 5.7.1 Helo command rejected: Host not found';

const BLOCKED_GREETING_BLOCKLISTED =
  '554 5.7.1 Service unavailable; Client host [192.0.2.25] blocked using zen.spamhaus.org';
const SESSIONS = ['mx greeting 554', 'mx2 greeting 554'];

const BLOCKED_MAIL_BLOCKLISTED =
  "550 5.7.1 Unfortunately, messages from [192.0.2.25] weren't sent. Please contact your Internet service provider since part of their network is on our block list (S3140).";

const REJECTED_MAIL_REJECTED = '550 5.7.1 Sender address rejected: Access denied';

registerScenarios('replies', {
  'data-deferred': {
    title: 'retries a message that the host defers at DATA',
    hosts: { mx: { script: { data: inTurn('451 4.3.1 Insufficient system storage') } } },
    messages: {
      ada: {
        attempts: [deferred('451 4.3.1', 'server-error', 5 * MINUTE, 'mx data 451'), delivered('mx dot 250')],
        status: 'delivered',
      },
    },
    connections: { mx: ['EHLO MAIL RCPT DATA QUIT', 'EHLO MAIL RCPT DATA . QUIT'] },
  },
  'data-rejected': {
    title: 'bounces a message that the host rejects at DATA, without trying the next host',
    hosts: { mx: { script: { data: '554 5.7.1 Transaction not permitted by policy' } }, mx2: {} },
    messages: {
      ada: {
        attempts: [bounced('554 5.7.1', 'policy-block', 'mx data 554')],
        events: ['email_sent', 'email_rejected'],
        status: 'bounced',
      },
    },
    connections: { mx2: [] },
  },
  'dot-deferred': {
    title: 'retries a message that the host defers after its content',
    hosts: { mx: { script: { dot: inTurn('451 4.3.0 Error: queue file write error') } } },
    messages: {
      ada: {
        attempts: [deferred('451 4.3.0', 'server-error', 5 * MINUTE, 'mx dot 451'), delivered('mx dot 250')],
        status: 'delivered',
      },
    },
    connections: { mx: ['EHLO MAIL RCPT DATA . QUIT', 'EHLO MAIL RCPT DATA . QUIT'] },
  },
  'dot-rejected': {
    title: 'reports a message that is rejected as spam, without suppressing the recipient',
    hosts: { mx: { script: { dot: '554 5.7.1 Message rejected as spam by content filter' } }, mx2: {} },
    messages: {
      ada: {
        attempts: [bounced('554 5.7.1', 'spam-block', 'mx dot 554')],
        events: ['email_sent', 'email_rejected'],
        status: 'bounced',
        lastEvent: { bounceType: 'block' },
      },
    },
    connections: { mx: ['EHLO MAIL RCPT DATA . QUIT'], mx2: [] },
  },
  'ehlo-blocklisted': {
    title:
      'defers mail whose EHLO is rejected because of our address, and delivers it when the block is lifted',
    hosts: {
      mx: { script: { ehlo: onConnection(1, BLOCKED_EHLO_BLOCKLISTED), helo: BLOCKED_EHLO_BLOCKLISTED } },
    },
    messages: {
      ada: {
        attempts: [
          deferred('554 5.7.1', 'reputation-block', 5 * MINUTE, 'mx ehlo 554'),
          delivered('mx dot 250'),
        ],
        status: 'delivered',
      },
    },
  },
  'ehlo-deferred': {
    title: 'retries a host that defers EHLO, without sending HELO',
    hosts: { mx: { script: { ehlo: inTurn('451 4.3.0 Temporary lookup failure') } } },
    messages: {
      ada: {
        attempts: [deferred('451 4.3.0', 'server-error', 5 * MINUTE, 'mx ehlo 451'), delivered('mx dot 250')],
        status: 'delivered',
      },
    },
    connections: { mx: ['EHLO QUIT', 'EHLO MAIL RCPT DATA . QUIT'] },
  },
  'ehlo-rejected': {
    title: 'uses the next host when one rejects our host name after EHLO and HELO',
    hosts: {
      mx: { script: { ehlo: REJECTED_EHLO_REJECTED, helo: REJECTED_EHLO_REJECTED } },
      mx2: {},
    },
    messages: { ada: { attempts: [delivered('mx ehlo 550', 'mx2 dot 250')], status: 'delivered' } },
    connections: { mx: ['EHLO HELO QUIT'], mx2: ['EHLO MAIL RCPT DATA . QUIT'] },
  },
  'ehlo-unknown': {
    // RFC 5321 §3.2
    title: 'sends HELO to a host that does not know EHLO, and uses no extensions',
    hosts: { mx: { script: { ehlo: '500 5.5.1 Command unrecognized' } } },
    messages: { ada: { attempts: [delivered('mx dot 250')], status: 'delivered' } },
    connections: { mx: ['EHLO HELO MAIL RCPT DATA . QUIT'] },
    verify: ({ sink }) => {
      const [session] = sink('mx').sessions;
      expect(session?.commands[2]).toMatch(/^MAIL FROM:<[^>]+>$/);
      expect(session?.pipelined).toBe(0);
    },
  },
  'greeting-blocklisted': {
    title: 'defers mail until it expires while every host rejects our address as blocklisted',
    settings: () => ({ 'delivery.retry.expireTransactional': '9m' }),
    hosts: {
      mx: { script: { greeting: BLOCKED_GREETING_BLOCKLISTED } },
      mx2: { script: { greeting: BLOCKED_GREETING_BLOCKLISTED } },
    },
    messages: {
      ada: {
        attempts: [
          deferred('554 5.7.1', 'reputation-block', 5 * MINUTE, ...SESSIONS),
          deferred('554 5.7.1', 'reputation-block', undefined, ...SESSIONS),
        ],
        status: 'failed',
        events: ['email_sent', 'email_delayed', 'email_failed'],
        lastEvent: { reason: 'expired', classification: 'reputation-block' },
      },
    },
    connections: { mx: ['QUIT', 'QUIT'], mx2: ['QUIT', 'QUIT'] },
  },
  'greeting-deferred': {
    title: 'retries a host that greets with 450',
    hosts: { mx: { script: { greeting: inTurn('450 4.3.2 Too busy, please try later') } } },
    messages: {
      ada: {
        attempts: [
          deferred('450 4.3.2', 'server-error', 5 * MINUTE, 'mx greeting 450'),
          delivered('mx dot 250'),
        ],
        status: 'delivered',
      },
    },
    connections: { mx: ['QUIT', 'EHLO MAIL RCPT DATA . QUIT'] },
  },
  'greeting-refused-everywhere': {
    title: 'defers mail when the only host greets with 554 and states no reason',
    hosts: { mx: { script: { greeting: inTurn('554 No SMTP service here') } } },
    messages: {
      ada: {
        attempts: [deferred('554', 'unclassified', 5 * MINUTE, 'mx greeting 554'), delivered('mx dot 250')],
        status: 'delivered',
      },
    },
    connections: { mx: ['QUIT', 'EHLO MAIL RCPT DATA . QUIT'] },
  },
  'greeting-refused': {
    // RFC 5321 §3.1: the client sends only QUIT.
    title: 'uses the next host when one greets with 554',
    hosts: { mx: { script: { greeting: '554 No SMTP service here' } }, mx2: {} },
    messages: {
      ada: { attempts: [delivered('mx greeting 554', 'mx2 dot 250')], status: 'delivered' },
    },
    connections: { mx: ['QUIT'], mx2: ['EHLO MAIL RCPT DATA . QUIT'] },
  },
  'lines-with-different-codes': {
    // RFC 5321 §4.2.1 forbids such replies.
    title: 'uses the code of the last line when the lines of a reply have different codes',
    hosts: { mx: { script: { rcpt: inTurn(['250-OK, but', '550-wait', '450 4.2.1 Mailbox busy']) } } },
    messages: {
      ada: {
        attempts: [
          deferred('450 4.2.1', 'inactive-mailbox', 5 * MINUTE, 'mx rcpt 450'),
          delivered('mx dot 250'),
        ],
        status: 'delivered',
      },
    },
  },
  'lines-with-enhanced-codes': {
    title: 'joins the lines of a reply to one text, without their enhanced codes',
    hosts: {
      mx: {
        script: {
          rcpt: [
            '550-5.1.1 The email account that you tried to reach',
            '550-5.1.1 does not exist.',
            '550 5.1.1 Learn more',
          ],
        },
      },
    },
    messages: {
      ada: {
        attempts: [bounced('550 5.1.1', 'invalid-recipient', 'mx rcpt 550')],
        status: 'bounced',
        lastEvent: { diagnostic: 'The email account that you tried to reach does not exist. Learn more' },
      },
    },
    suppressed: ['ada'],
  },
  'mail-blocklisted': {
    title:
      'defers mail whose MAIL is rejected because of our address, and delivers it when the block is lifted',
    hosts: { mx: { script: { mail: inTurn(BLOCKED_MAIL_BLOCKLISTED) } } },
    messages: {
      ada: {
        attempts: [
          deferred('550 5.7.1', 'reputation-block', 5 * MINUTE, 'mx mail 550'),
          delivered('mx dot 250'),
        ],
        status: 'delivered',
      },
    },
  },
  'mail-deferred': {
    title: 'uses the next host when one defers MAIL',
    hosts: { mx: { script: { mail: '451 4.1.8 Sender address rejected: Domain not found' } }, mx2: {} },
    messages: { ada: { attempts: [delivered('mx mail 451', 'mx2 dot 250')], status: 'delivered' } },
    connections: { mx: ['EHLO MAIL RCPT DATA QUIT'], mx2: ['EHLO MAIL RCPT DATA . QUIT'] },
  },
  'mail-rejected': {
    title: 'bounces mail whose sender every host rejects, without suppressing the recipient',
    hosts: {
      mx: { script: { mail: REJECTED_MAIL_REJECTED } },
      mx2: { script: { mail: REJECTED_MAIL_REJECTED } },
    },
    messages: {
      ada: {
        attempts: [bounced('550 5.7.1', 'policy-block', 'mx mail 550', 'mx2 mail 550')],
        status: 'bounced',
        lastEvent: { bounceType: 'block', suppressed: false },
      },
    },
  },
  'rcpt-deferred-twice': {
    title: 'defers a message when two hosts defer the recipient, without trying a third',
    hosts: {
      mx: { script: { rcpt: '451 4.3.0 Try later' } },
      mx2: { script: { rcpt: inTurn('451 4.3.0 Try later') } },
      mx3: {},
    },
    messages: {
      ada: {
        attempts: [
          deferred('451 4.3.0', 'server-error', 5 * MINUTE, 'mx rcpt 451', 'mx2 rcpt 451'),
          delivered('mx rcpt 451', 'mx2 dot 250'),
        ],
        status: 'delivered',
      },
    },
    connections: { mx3: [] },
  },
  'rcpt-deferred': {
    title: 'tries one further host when a host defers the recipient',
    hosts: { mx: { script: { rcpt: '451 4.3.0 Try later' } }, mx2: {}, mx3: {} },
    messages: { ada: { attempts: [delivered('mx rcpt 451', 'mx2 dot 250')], status: 'delivered' } },
    connections: { mx: ['EHLO MAIL RCPT DATA QUIT'], mx2: ['EHLO MAIL RCPT DATA . QUIT'], mx3: [] },
  },
  'rcpt-unknown': {
    title: 'bounces and suppresses a recipient that does not exist, without trying the next host',
    hosts: { mx: { script: { rcpt: '550 5.1.1 No such user here' } }, mx2: {} },
    messages: {
      ada: {
        attempts: [bounced('550 5.1.1', 'invalid-recipient', 'mx rcpt 550')],
        status: 'bounced',
        lastEvent: { bounceType: 'hard', suppressed: true, source: 'smtp', diagnostic: 'No such user here' },
      },
    },
    connections: { mx2: [] },
    suppressed: ['ada'],
  },
  'rset-refused': {
    title: 'opens another connection when the host rejects RSET',
    hosts: {
      mx: { script: { rset: '500 5.5.1 Not implemented' }, recipients: { 'ada@': '550 5.1.1 No such user' } },
    },
    messages: {
      ada: { attempts: [bounced('550 5.1.1', 'invalid-recipient', 'mx rcpt 550')], status: 'bounced' },
      bob: { attempts: [delivered('mx dot 250')], status: 'delivered' },
    },
    connections: { mx: ['EHLO MAIL RCPT DATA RSET MAIL RCPT DATA', 'EHLO MAIL RCPT DATA . QUIT'] },
    suppressed: ['ada'],
    play: async (run) => {
      await run.send('ada');
      await run.settle();
      await run.send('bob');
    },
  },
  'unexpected-code': {
    title: 'closes the connection, and retries, when a reply has a code that is not valid for the command',
    hosts: {
      mx: { script: { rcpt: inTurn('354 Start mail input'), data: inTurn(undefined, '250 2.0.0 OK') } },
    },
    messages: {
      ada: {
        attempts: [
          deferred('451 4.4.1', 'network-error', 5 * MINUTE, 'mx rcpt: unexpected reply to RCPT: 354'),
          deferred('451 4.4.1', 'network-error', undefined, 'mx data: unexpected reply to DATA: 250'),
          delivered('mx dot 250'),
        ],
        status: 'delivered',
      },
    },
  },
});
