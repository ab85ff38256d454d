import { expect } from 'vitest';
import { HOUR, MINUTE, SECOND } from '../../src/core/clock.ts';
import { inTurn } from './support/answers.ts';
import { bounced, deferred, delivered } from './support/attempts.ts';
import { registerScenarios } from './support/register.ts';
import { expectReason } from './support/source-addresses.ts';

const GREYLISTED = '450 4.2.0 Recipient address rejected: Greylisted';

const CLOSED = 'mx greeting 421: the server ended the session';
const TOO_MANY = { reply: '421 4.7.0 Too many connections from your IP', close: true } as const;

registerScenarios('limits', {
  'greylisting-remembered': {
    title: 'retries the next greylisted message after the wait that the site accepted before',
    settings: () => ({ 'delivery.retry.greylisted': '7m' }),
    hosts: { mx: { script: { rcpt: inTurn(GREYLISTED, undefined, GREYLISTED) } } },
    messages: {
      ada: {
        attempts: [deferred('450 4.2.0', 'greylisted', 7 * MINUTE, 'mx rcpt 450'), delivered('mx dot 250')],
        status: 'delivered',
      },
      bob: {
        attempts: [deferred('450 4.2.0', 'greylisted', undefined, 'mx rcpt 450'), delivered('mx dot 250')],
        status: 'delivered',
      },
    },
    play: async (run) => {
      await run.send('ada');
      await run.finish();
      await run.configure({ 'delivery.retry.greylisted': '30m' });
      await run.send('bob');
      await run.settle();
      const { timeline } = await run.message('bob');
      const delay = timeline.find(({ event }) => event === 'email_delayed');
      const wait = Date.parse(String(delay?.['nextAttemptAt'])) - Date.parse(delay?.timestamp ?? '');
      // The wait of the first message, spread by 10 % in both attempts, and not that of the changed setting.
      expect(wait).toBeGreaterThan(6 * MINUTE);
      expect(wait).toBeLessThan(9 * MINUTE);
    },
  },
  'limited-for-named-seconds': {
    title: 'attempts no other mail for the 90 seconds that the reply of a site states, then sends it',
    settings: ({ domain }) => ({ 'delivery.shaping': [{ match: domain, connections: 1 }] }),
    hosts: { mx: { script: { mail: inTurn('451 4.7.1 Too many messages, try again in 90 seconds') } } },
    messages: {
      ada: {
        attempts: [
          deferred('451 4.7.1', 'rate-limited', { named: 90 * SECOND }, 'mx mail 451'),
          delivered('mx dot 250'),
        ],
        status: 'delivered',
      },
      // Not attempted before that time.
      bob: { attempts: [delivered('mx dot 250')], status: 'delivered' },
    },
    play: async (run) => {
      await run.send('ada');
      await run.settle();
      await run.send('bob');
      await run.settle();
      expect(run.sink('mx').sessions).toHaveLength(1);
      expect((await run.message('bob')).status).toBe('queued');
    },
  },
  'limited-without-time': {
    title:
      'sends nothing for a minute to a site whose rate limit states no time, and explains that the site asked for it',
    settings: ({ domain }) => ({ 'delivery.shaping': [{ match: domain, connections: 1 }] }),
    hosts: { mx: { script: { mail: inTurn('451 4.7.1 Too many messages, slow down') } } },
    messages: {
      ada: {
        attempts: [deferred('451 4.7.1', 'rate-limited', 5 * MINUTE, 'mx mail 451'), delivered('mx dot 250')],
        status: 'delivered',
      },
      bob: { attempts: [delivered('mx dot 250')], status: 'delivered' },
    },
    play: async (run) => {
      await run.send('ada');
      await run.settle();
      await run.send('bob');
      await run.settle();
      expect(run.sink('mx').sessions).toHaveLength(1);
      await expectReason(run, 'bob', 'site_limited', 'asked to send less');
    },
  },
  'named-minutes': {
    title: 'waits for the number of minutes that a rate limit states in another language',
    hosts: {
      mx: {
        script: { rcpt: inTurn('451 4.7.1 Zu viele Nachrichten, bitte in 20 Minuten erneut versuchen') },
      },
    },
    messages: {
      ada: {
        attempts: [
          deferred('451 4.7.1', 'rate-limited', { named: 20 * MINUTE }, 'mx rcpt 451'),
          delivered('mx dot 250'),
        ],
        status: 'delivered',
      },
    },
  },
  'operator-rule': {
    title: 'applies the rules for replies in the configuration before the built-in ones',
    settings: () => ({
      'delivery.replies': [
        { text: 'user unknown * sunday', meaning: 'mailbox inactive', action: 'defer', retryAfter: '3h' },
        { text: 'under strange maintenance', meaning: 'spam', action: 'bounce' },
      ],
    }),
    hosts: {
      mx: {
        script: {
          rcpt: inTurn(
            '550 5.1.1 User unknown, as every Sunday',
            undefined,
            '451 4.3.0 Under strange maintenance',
          ),
        },
      },
    },
    messages: {
      ada: {
        attempts: [
          deferred('550 5.1.1', 'inactive-mailbox', { named: 3 * HOUR }, 'mx rcpt 550'),
          delivered('mx dot 250'),
        ],
        status: 'delivered',
      },
      bob: {
        attempts: [bounced('451 4.3.0', 'spam-block', 'mx rcpt 451')],
        status: 'bounced',
        events: ['email_sent', 'email_rejected'],
      },
    },
    play: async (run) => {
      await run.send('ada');
      await run.finish();
      await run.send('bob');
    },
  },
  'rate-rejected-with-550': {
    title: 'retries a message that is rejected with 550 because of the rate',
    hosts: {
      mx: { script: { mail: inTurn('550 Connection frequency limited. http://service.mail.qq.com/') } },
    },
    messages: {
      ada: {
        attempts: [deferred('550', 'rate-limited', 5 * MINUTE, 'mx mail 550'), delivered('mx dot 250')],
        status: 'delivered',
      },
    },
  },
  'too-many-connections': {
    title: 'sends nothing for a minute to a site that refuses further connections, and does not suspend it',
    settings: ({ domain }) => ({ 'delivery.shaping': [{ match: domain, connections: 1 }] }),
    hosts: { mx: { script: { greeting: inTurn(TOO_MANY, TOO_MANY) } } },
    messages: {
      ada: {
        attempts: [
          deferred('421 4.7.0', 'rate-limited', 5 * MINUTE, CLOSED),
          deferred('421 4.7.0', 'rate-limited', 10 * MINUTE, CLOSED),
          delivered('mx dot 250'),
        ],
        status: 'delivered',
      },
    },
    verify: async (run) => {
      const metrics = await (await fetch(`${run.env.daemon.url}/metrics`)).text();
      expect(metrics).not.toContain(`postrider_delivery_site_suspended_seconds{site="${run.domain}`);
    },
  },
});
