import { MINUTE } from '../../src/core/clock.ts';
import { inTurn, onConnection } from './support/answers.ts';
import { deferred, delivered } from './support/attempts.ts';
import { failedConnection } from './support/failed-connection.ts';
import { registerScenarios } from './support/register.ts';

registerScenarios('connections', {
  'accepted-without-reply': {
    /*
     * The host has accepted the message, and its reply is lost. The client cannot distinguish this from a host that has not
     * accepted the message; without a reply it remains responsible and sends again (RFC 1047 §2, RFC 5321 §4.2.5).
     */
    title: 'sends a message again when the reply that accepted it is lost',
    hosts: { mx: { script: { dot: onConnection(1, { accepted: 'reset' }) } }, mx2: {} },
    messages: {
      ada: {
        attempts: [
          deferred(
            '451 4.4.2',
            'network-error',
            5 * MINUTE,
            'mx dot: server reset the connection after the message, without a reply',
          ),
          delivered('mx dot 250'),
        ],
        status: 'delivered',
        accepted: 2,
      },
    },
    connections: { mx: ['EHLO MAIL RCPT DATA .', 'EHLO MAIL RCPT DATA . QUIT'], mx2: [] },
  },
  'closed-after-content': {
    // The host may have accepted the message (RFC 1047): another host does not get it in the same attempt.
    title: 'retries a message whose connection is closed after the final dot, without trying the next host',
    hosts: { mx: { script: { dot: onConnection(1, 'drop') } }, mx2: {} },
    messages: {
      ada: {
        attempts: [
          deferred(
            '451 4.4.2',
            'network-error',
            5 * MINUTE,
            'mx dot: server closed the connection after the message, without a reply',
          ),
          delivered('mx dot 250'),
        ],
        status: 'delivered',
      },
    },
    connections: { mx: ['EHLO MAIL RCPT DATA .', 'EHLO MAIL RCPT DATA . QUIT'], mx2: [] },
  },
  'closed-after-data': failedConnection({
    title: 'retries a host that closes the connection after DATA',
    phase: 'data',
    answer: 'drop',
    commands: 'EHLO MAIL RCPT DATA',
    session: 'mx data: server closed the connection during DATA',
  }),
  'closed-after-ehlo': failedConnection({
    title: 'retries a host that closes the connection after EHLO',
    phase: 'ehlo',
    answer: 'drop',
    commands: 'EHLO',
    session: 'mx ehlo: server closed the connection during EHLO',
  }),
  'closed-after-mail': failedConnection({
    title: 'retries a host that closes the connection after MAIL',
    phase: 'mail',
    answer: 'drop',
    commands: 'EHLO MAIL',
    session: 'mx mail: server closed the connection during MAIL',
  }),
  'closed-after-rcpt': failedConnection({
    title: 'retries a host that closes the connection after RCPT',
    phase: 'rcpt',
    answer: 'drop',
    commands: 'EHLO MAIL RCPT',
    session: 'mx rcpt: server closed the connection during RCPT',
  }),
  'closed-before-greeting': failedConnection({
    title: 'retries a host that closes the connection before the greeting',
    phase: 'greeting',
    answer: 'drop',
    commands: '',
    session: 'mx greeting: server closed the connection before the greeting',
  }),
  'dribbled-greeting': {
    // RFC 5321 §4.5.3.2.1 recommends five minutes. Received bytes do not extend the timeout.
    title: 'closes a connection whose greeting does not end within a minute',
    hosts: {
      mx: { script: { greeting: onConnection(1, { bytes: '220-Welcome\r\n', everyMs: 5 }) } },
      mx2: {},
    },
    messages: {
      ada: {
        attempts: [delivered('mx greeting: timed out after 60 s waiting for the greeting', 'mx2 dot 250')],
        status: 'delivered',
      },
    },
    connections: { mx: [''], mx2: ['EHLO MAIL RCPT DATA . QUIT'] },
  },
  'dribbled-reply': failedConnection({
    title: 'closes a connection whose reply to RCPT does not end within five minutes',
    phase: 'rcpt',
    answer: { bytes: '2', everyMs: 20 },
    commands: 'EHLO MAIL RCPT',
    session: 'mx rcpt: timed out after 5 min waiting for the reply to RCPT',
  }),
  refused: {
    title: 'uses the next host when one refuses the connection',
    hosts: { mx: 'refused', mx2: {} },
    messages: {
      ada: { attempts: [delivered('mx connect: connection refused', 'mx2 dot 250')], status: 'delivered' },
    },
    connections: { mx2: ['EHLO MAIL RCPT DATA . QUIT'] },
  },
  'reset-before-greeting': {
    title: 'retries a host that resets the connection before the greeting',
    hosts: { mx: { script: { greeting: onConnection(1, 'reset') } } },
    messages: {
      ada: {
        attempts: [
          // The phase of the session is not compared: the reset may arrive before the worker sees the connection.
          deferred('451 4.4.1', 'network-error', 5 * MINUTE),
          delivered('mx dot 250'),
        ],
        status: 'delivered',
      },
    },
    connections: { mx: ['', 'EHLO MAIL RCPT DATA . QUIT'] },
  },
  'silent-after-content': {
    // RFC 5321 §4.5.3.2.6: a shorter timeout leads to duplicates.
    title: 'waits ten minutes for the reply to a message',
    hosts: { mx: { script: { dot: onConnection(1, { accepted: 'silent' }) } }, mx2: {} },
    messages: {
      ada: {
        attempts: [
          deferred(
            '451 4.4.2',
            'network-error',
            5 * MINUTE,
            'mx dot: timed out after 10 min waiting for the reply to the message',
          ),
          delivered('mx dot 250'),
        ],
        status: 'delivered',
        accepted: 2,
      },
    },
    connections: { mx2: [] },
  },
  'silent-after-data': failedConnection({
    title: 'closes a connection without a reply to DATA after two minutes',
    phase: 'data',
    answer: 'silent',
    commands: 'EHLO MAIL RCPT DATA',
    session: 'mx data: timed out after 2 min waiting for the reply to DATA',
  }),
  'silent-after-mail': failedConnection({
    title: 'closes a connection without a reply to MAIL after five minutes',
    phase: 'mail',
    answer: 'silent',
    commands: 'EHLO MAIL',
    session: 'mx mail: timed out after 5 min waiting for the reply to MAIL',
  }),
  'silent-greeting': failedConnection({
    title: 'closes a connection without a greeting after a minute',
    phase: 'greeting',
    answer: 'silent',
    commands: '',
    session: 'mx greeting: timed out after 60 s waiting for the greeting',
  }),
  'slow-everywhere': {
    title: 'ends an attempt over several silent hosts after fifteen minutes in total',
    hosts: {
      mx: { script: { greeting: 'silent' } },
      mx2: { script: { ehlo: 'silent' } },
      mx3: { script: { mail: inTurn('silent') } },
      mx4: { script: { rcpt: 'silent' } },
      mx5: {},
    },
    messages: {
      ada: {
        attempts: [
          deferred(
            '451 4.4.1',
            'network-error',
            5 * MINUTE,
            'mx greeting: timed out after 60 s waiting for the greeting',
            'mx2 ehlo: timed out after 5 min waiting for the reply to EHLO',
            'mx3 mail: timed out after 5 min waiting for the reply to MAIL',
            'mx4 rcpt: gave up after 15 min in total, while waiting for the reply to RCPT',
          ),
          delivered(
            'mx greeting: timed out after 60 s waiting for the greeting',
            'mx2 ehlo: timed out after 5 min waiting for the reply to EHLO',
            'mx3 dot 250',
          ),
        ],
        status: 'delivered',
      },
    },
    connections: { mx5: [] },
  },
  'unresponsive-host': {
    title: 'uses the next host when a connection to one is not established within 30 seconds',
    hosts: { mx: 'unresponsive', mx2: {} },
    messages: {
      ada: {
        attempts: [delivered('mx connect: timed out after 30 s waiting for the connection', 'mx2 dot 250')],
        status: 'delivered',
      },
    },
    connections: { mx2: ['EHLO MAIL RCPT DATA . QUIT'] },
  },
});
