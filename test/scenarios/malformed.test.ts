import { MINUTE } from '../../src/core/clock.ts';
import { inTurn, onConnection } from './support/answers.ts';
import { bounced, deferred, delivered } from './support/attempts.ts';
import { failedConnection } from './support/failed-connection.ts';
import { registerScenarios } from './support/register.ts';

registerScenarios('malformed', {
  'bare-line-feeds': {
    title: 'accepts replies whose lines end with a bare LF',
    hosts: {
      mx: {
        keywords: [],
        script: {
          greeting: { bytes: '220 old server\n' },
          ehlo: { bytes: '250-old server\n250 SIZE 1000000\n' },
          mail: { bytes: '250 ok\n' },
          dot: { bytes: '250 2.0.0 taken\n' },
        },
      },
    },
    messages: { ada: { attempts: [delivered('mx dot 250')], status: 'delivered' } },
  },
  'binary-reply': failedConnection({
    title: 'closes the connection when a reply is binary, and retries',
    phase: 'mail',
    answer: { bytes: '\u0015\u0003\u0001\u0000\u0002\u0002(\r\n' },
    commands: 'EHLO MAIL RCPT DATA',
    session: 'mx mail: not an SMTP reply:  (',
  }),
  'code-alone': {
    // RFC 5321 §4.2: a client accepts replies without text.
    title: 'accepts replies that consist of a code without text',
    hosts: { mx: { script: { greeting: '220', mail: '250', rcpt: '250 ', data: '354', dot: '250' } } },
    messages: {
      ada: { attempts: [{ reply: '250', action: 'deliver', sessions: ['mx dot 250'] }], status: 'delivered' },
    },
  },
  'code-out-of-range': failedConnection({
    title: 'closes the connection when the code of a reply is not an SMTP code, and retries',
    phase: 'mail',
    answer: '650 hello',
    commands: 'EHLO MAIL RCPT DATA',
    session: 'mx mail: not an SMTP reply: 650 hello',
  }),
  'control-characters': {
    title: 'replaces the control characters of a reply, and decodes its text as UTF-8',
    hosts: {
      mx: { script: { rcpt: '550 5.1.1 Empf\u00c3\u00a4nger\u0000 \u001b[31munbekannt\u0007' } },
    },
    messages: {
      ada: {
        attempts: [bounced('550 5.1.1', 'invalid-recipient', 'mx rcpt 550')],
        status: 'bounced',
        lastEvent: { diagnostic: 'Empfänger   [31munbekannt' },
      },
    },
    suppressed: ['ada'],
  },
  'enhanced-code-of-another-class': {
    // RFC 2034 §4: the class of the enhanced code must be that of the reply.
    title: 'ignores an enhanced code whose class is not that of the reply',
    hosts: { mx: { script: { rcpt: inTurn('450 5.1.1 Mailbox temporarily unavailable') } } },
    messages: {
      ada: {
        attempts: [deferred('450', 'server-error', 5 * MINUTE, 'mx rcpt 450'), delivered('mx dot 250')],
        status: 'delivered',
      },
    },
  },
  'http-server': failedConnection({
    title: 'closes the connection to an HTTP server, and retries',
    phase: 'greeting',
    answer: ['HTTP/1.1 400 Bad Request', 'Connection: close', '', '<h1>Bad Request</h1>'],
    commands: '',
    session: 'mx greeting: not an SMTP reply: HTTP/1.1 400 Bad Request',
  }),
  'large-reply': failedConnection({
    title: 'closes the connection when a reply has more than 64 KiB, and retries',
    phase: 'ehlo',
    answer: Array.from({ length: 100 }, () => `250-${'x'.repeat(1000)}`),
    commands: 'EHLO',
    session: 'mx ehlo: a reply of more than 65536 bytes',
  }),
  'line-without-end': failedConnection({
    title: 'closes the connection when a line does not end, and retries',
    phase: 'rcpt',
    answer: { bytes: `250 ${'x'.repeat(20_000)}` },
    commands: 'EHLO MAIL RCPT DATA',
    session: 'mx rcpt: a reply line of more than 8192 bytes',
  }),
  'overlong-line': failedConnection({
    title: 'closes the connection when a line has more than 8 KiB, and retries',
    phase: 'ehlo',
    answer: `250 ${'x'.repeat(9000)}`,
    commands: 'EHLO',
    session: 'mx ehlo: a reply line of more than 8192 bytes',
  }),
  'ssh-server': failedConnection({
    title: 'closes the connection to an SSH server, and retries',
    phase: 'greeting',
    answer: 'SSH-2.0-OpenSSH_9.2p1 Debian-2',
    commands: '',
    session: 'mx greeting: not an SMTP reply: SSH-2.0-OpenSSH_9.2p1 Debian-2',
  }),
  'thousands-of-lines': failedConnection({
    title: 'closes the connection when a reply has thousands of lines, and retries',
    phase: 'ehlo',
    answer: Array.from({ length: 5000 }, () => '250-and another line'),
    commands: 'EHLO',
    session: 'mx ehlo: a reply of more than 128 lines',
  }),
  'unsolicited-replies': {
    // Otherwise each of these replies would be matched to a later command, and the last one to a message not yet sent.
    title: 'closes the connection to a server that sends unsolicited replies',
    hosts: {
      mx: {
        script: {
          ehlo: onConnection(1, [
            '250 sink',
            '250 2.1.0 ok',
            '250 2.1.5 ok',
            '354 go ahead',
            '250 2.0.0 taken',
          ]),
        },
      },
      mx2: {},
    },
    messages: {
      ada: {
        attempts: [delivered('mx mail: the server sent an unsolicited reply', 'mx2 dot 250')],
        status: 'delivered',
      },
    },
  },
});
