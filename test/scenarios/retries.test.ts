import { expect } from 'vitest';
import { HOUR, MINUTE, SECOND } from '../../src/core/clock.ts';
import { eventually } from '../support/eventually.ts';
import { inTurn, repeated } from './support/answers.ts';
import { bounced, deferred, delivered } from './support/attempts.ts';
import { registerScenarios } from './support/register.ts';

const deferral = (wait: number) => deferred('451 4.3.0', 'server-error', wait, 'mx rcpt 451');

registerScenarios('retries', {
  'absurd-wait': {
    title: 'waits for at most a day when a reply states a longer time',
    hosts: { mx: { script: { rcpt: inTurn('450 4.7.1 Please retry in 9999 hours') } } },
    messages: {
      ada: {
        attempts: [
          deferred('450 4.7.1', 'policy-block', { named: 24 * HOUR }, 'mx rcpt 450'),
          delivered('mx dot 250'),
        ],
        status: 'delivered',
      },
    },
  },
  'cancelled-while-deferred': {
    title: 'never sends a message that is cancelled while it is deferred',
    hosts: { mx: { script: { rcpt: inTurn('451 4.3.0 later') } } },
    messages: {
      ada: {
        attempts: [deferred('451 4.3.0', 'server-error', 5 * MINUTE)],
        status: 'cancelled',
        lastEvent: { reason: 'cancelled' },
      },
      bob: { attempts: [delivered('mx dot 250')], status: 'delivered' },
    },
    play: async (run) => {
      const id = await run.send('ada');
      await run.settle();
      await run.env.api.post(`/web-setup/messages/${id}/cancel`);
      await run.env.advance(HOUR);
      await run.send('bob');
    },
  },
  'deferrals-grow': {
    title: 'doubles the wait after each deferral, from five minutes to four hours',
    hosts: { mx: { script: { rcpt: repeated(8, '451 4.3.0 Temporary lookup failure') } } },
    messages: {
      ada: {
        attempts: [
          deferral(5 * MINUTE),
          deferral(10 * MINUTE),
          deferral(20 * MINUTE),
          deferral(40 * MINUTE),
          deferral(80 * MINUTE),
          deferral(160 * MINUTE),
          deferral(4 * HOUR),
          deferral(4 * HOUR),
          delivered('mx dot 250'),
        ],
        status: 'delivered',
      },
    },
  },
  'deferred-then-unknown': {
    title: 'bounces a message, and suppresses the recipient, when the host rejects it in a later attempt',
    hosts: {
      mx: { script: { rcpt: inTurn('451 4.3.0 Directory not available', '550 5.1.1 No such user') } },
    },
    messages: {
      ada: {
        attempts: [
          deferred('451 4.3.0', 'server-error', 5 * MINUTE, 'mx rcpt 451'),
          bounced('550 5.1.1', 'invalid-recipient', 'mx rcpt 550'),
        ],
        status: 'bounced',
      },
    },
    suppressed: ['ada'],
  },
  'disabled-account': {
    title: 'holds the mail of a disabled account, and sends each message once when it is enabled',
    hosts: { mx: { script: { rcpt: inTurn('451 4.3.0 later') } } },
    messages: {
      ada: {
        attempts: [deferred('451 4.3.0', 'server-error', 5 * MINUTE, 'mx rcpt 451'), delivered('mx dot 250')],
        status: 'delivered',
      },
    },
    play: async (run) => {
      const id = await run.send('ada');
      await run.settle();
      run.env.setAccountStatus('disabled');
      await run.env.advance(HOUR);
      const { tables } = run.env.daemon;
      const seq = tables.messages.byId(id)?.seq ?? 0;
      await eventually('the message to be held', () => tables.queue.get(seq)?.held === 1);
      expect(run.sink('mx').count).toBe(0);
      run.env.setAccountStatus('active');
      await eventually(
        'the message to be sent',
        async () => (await run.message('ada')).status === 'delivered',
      );
    },
  },
  'expiry-marketing': {
    title: 'fails a marketing message after four days, with the last reply',
    settings: () => ({ 'delivery.retry.first': '40h', 'delivery.retry.max': '40h' }),
    hosts: { mx: { script: { rcpt: '452 4.2.2 Mailbox full' } } },
    messages: {
      ada: {
        marketing: true,
        attempts: Array.from({ length: 3 }, () =>
          deferred('452 4.2.2', 'mailbox-full', undefined, 'mx rcpt 452'),
        ),
        status: 'failed',
        lastEvent: { reason: 'expired', attempts: 3, lastDiagnostic: 'Mailbox full' },
      },
    },
  },
  'expiry-transactional': {
    title: 'fails a transactional message after two days, with the last reply, and marks the last attempt',
    settings: () => ({ 'delivery.retry.first': '20h', 'delivery.retry.max': '20h' }),
    hosts: { mx: { script: { rcpt: '452 4.2.2 Mailbox full' } } },
    messages: {
      ada: {
        attempts: Array.from({ length: 3 }, () =>
          deferred('452 4.2.2', 'mailbox-full', undefined, 'mx rcpt 452'),
        ),
        status: 'failed',
        lastEvent: {
          reason: 'expired',
          attempts: 3,
          classification: 'mailbox-full',
          lastDiagnostic: 'Mailbox full',
        },
      },
    },
    verify: async (run) => {
      const { timeline } = await run.message('ada');
      const attempts = timeline.filter(({ type }) => type === 'attempt');
      expect(attempts.map(({ lastAttempt }) => lastAttempt)).toEqual([undefined, undefined, true]);
    },
  },
  'failed-domain-until-expiry': {
    title: 'fails the held mail of a failed domain as expired, with the reason',
    hosts: { mx: { script: { rcpt: inTurn('451 4.3.0 later') } } },
    messages: {
      ada: {
        attempts: [deferred('451 4.3.0', 'server-error', 5 * MINUTE, 'mx rcpt 451')],
        events: ['email_sent', 'email_delayed', 'email_failed'],
        status: 'failed',
        lastEvent: {
          reason: 'expired',
          lastDiagnostic: 'the message was held because the verification of its domain has failed',
        },
      },
    },
    play: async (run) => {
      await run.sendAll();
      await run.settle();
      run.env.setDomainStatus('transactional', 'FAILED');
      await run.finish();
      run.env.setDomainStatus('transactional', 'SUCCESS');
    },
  },
  'failed-domain': {
    title:
      'holds the mail of a sending domain whose verification has failed, and sends it when the verification succeeds',
    hosts: { mx: { script: { rcpt: inTurn('451 4.3.0 later') } } },
    messages: {
      ada: {
        attempts: [deferred('451 4.3.0', 'server-error', 5 * MINUTE, 'mx rcpt 451'), delivered('mx dot 250')],
        status: 'delivered',
      },
    },
    play: async (run) => {
      await run.sendAll();
      await run.settle();
      run.env.setDomainStatus('transactional', 'FAILED');
      await run.env.advance(HOUR);
      await eventually(
        'the message to be held',
        async () => (await run.message('ada')).heldBecause === 'domain_failed',
      );
      expect(run.sink('mx').count).toBe(0);
      run.env.setDomainStatus('transactional', 'SUCCESS');
      await eventually(
        'the message to be sent',
        async () => (await run.message('ada')).status === 'delivered',
      );
    },
  },
  'greylisted-twice': {
    title: 'waits longer when a recipient is greylisted again',
    hosts: { mx: { script: { rcpt: repeated(2, '450 4.2.0 Recipient address rejected: Greylisted') } } },
    messages: {
      ada: {
        attempts: [
          deferred('450 4.2.0', 'greylisted', 2 * MINUTE),
          deferred('450 4.2.0', 'greylisted', 10 * MINUTE),
          delivered('mx dot 250'),
        ],
        status: 'delivered',
      },
    },
  },
  'greylisting-with-clock': {
    title: 'waits as long as a greylisting reply states as a clock time',
    hosts: { mx: { script: { rcpt: inTurn('450 4.7.1 Greylisted, try again in 00:04:59') } } },
    messages: {
      ada: {
        attempts: [
          deferred('450 4.7.1', 'greylisted', { named: 299 * SECOND }, 'mx rcpt 450'),
          delivered('mx dot 250'),
        ],
        status: 'delivered',
      },
    },
  },
  'greylisting-with-minutes': {
    title:
      'waits as long as a greylisting reply states in minutes, even if that is less than the default wait',
    hosts: { mx: { script: { rcpt: inTurn('451 4.7.1 Greylisted, please try again in 1 minute') } } },
    messages: {
      ada: {
        attempts: [
          deferred('451 4.7.1', 'greylisted', { named: MINUTE }, 'mx rcpt 451'),
          delivered('mx dot 250'),
        ],
        status: 'delivered',
      },
    },
  },
  'greylisting-with-seconds': {
    title: 'waits as long as a greylisting reply states in seconds',
    hosts: {
      mx: { script: { rcpt: inTurn('451 4.7.1 Greylisting in action, please come back in 600 seconds') } },
    },
    messages: {
      ada: {
        attempts: [
          deferred('451 4.7.1', 'greylisted', { named: 10 * MINUTE }, 'mx rcpt 451'),
          delivered('mx dot 250'),
        ],
        status: 'delivered',
      },
    },
  },
  greylisting: {
    title: 'retries a greylisted recipient after two minutes',
    hosts: {
      mx: { script: { rcpt: inTurn('450 4.2.0 <ada@example>: Recipient address rejected: Greylisted') } },
    },
    messages: {
      ada: {
        attempts: [deferred('450 4.2.0', 'greylisted', 2 * MINUTE, 'mx rcpt 450'), delivered('mx dot 250')],
        status: 'delivered',
      },
    },
    connections: { mx: ['EHLO MAIL RCPT DATA QUIT', 'EHLO MAIL RCPT DATA . QUIT'] },
  },
  'mixed-verdicts': {
    title: 'records the result of each recipient separately',
    settings: ({ domain }) => ({ 'delivery.shaping': [{ match: domain, connections: 1 }] }),
    hosts: {
      mx: {
        recipients: {
          'bob@': '550 5.1.1 No such user',
          'eve@': inTurn('451 4.3.0 later'),
          'kim@': '552 5.2.2 Mailbox full',
          'lea@': '550 5.7.1 Sender not permitted to send to this recipient',
        },
      },
    },
    messages: {
      ada: { attempts: [delivered('mx dot 250')], status: 'delivered' },
      bob: {
        attempts: [bounced('550 5.1.1', 'invalid-recipient', 'mx rcpt 550')],
        status: 'bounced',
        lastEvent: { bounceType: 'hard', suppressed: true },
      },
      eve: {
        attempts: [deferred('451 4.3.0', 'server-error', 5 * MINUTE), delivered('mx dot 250')],
        status: 'delivered',
      },
      kim: {
        attempts: [bounced('552 5.2.2', 'mailbox-full', 'mx rcpt 552')],
        status: 'bounced',
        lastEvent: { bounceType: 'soft', suppressed: false },
      },
      lea: {
        attempts: [bounced('550 5.7.1', 'policy-block', 'mx rcpt 550')],
        status: 'bounced',
        lastEvent: { suppressed: false },
      },
      zoe: { attempts: [delivered('mx dot 250')], status: 'delivered' },
    },
    suppressed: ['bob'],
  },
  'rate-limit-with-seconds': {
    title: 'waits as long as the reply for a rate limit states',
    hosts: { mx: { script: { rcpt: inTurn('452 4.3.2 Rate limit exceeded, try again in 1800 seconds') } } },
    messages: {
      ada: {
        attempts: [
          deferred('452 4.3.2', 'rate-limited', { named: 30 * MINUTE }, 'mx rcpt 452'),
          delivered('mx dot 250'),
        ],
        status: 'delivered',
      },
    },
  },
  'rate-limit-without-time': {
    title: 'waits five minutes after a reply for a rate limit that states no time',
    hosts: {
      mx: {
        script: {
          rcpt: inTurn(
            '450 4.7.28 Our system has detected an unusual rate of unsolicited mail originating from your IP address',
          ),
        },
      },
    },
    messages: {
      ada: {
        attempts: [
          deferred('450 4.7.28', 'rate-limited', 5 * MINUTE, 'mx rcpt 450'),
          delivered('mx dot 250'),
        ],
        status: 'delivered',
      },
    },
  },
  'retried-on-request': {
    title: 'retries a deferred message immediately on request over the API',
    hosts: { mx: { script: { rcpt: inTurn('451 4.3.0 later') } } },
    messages: {
      ada: {
        attempts: [deferred('451 4.3.0', 'server-error', 5 * MINUTE), delivered('mx dot 250')],
        status: 'delivered',
      },
    },
    play: async (run) => {
      const id = await run.send('ada');
      await run.settle();
      const before = run.env.clock.now();
      await run.env.api.post(`/web-setup/messages/${id}/retry`);
      await run.settle();
      expect((await run.message('ada')).status).toBe('delivered');
      expect(run.env.clock.now() - before).toBeLessThan(4 * MINUTE);
    },
  },
  scheduled: {
    title: 'sends a scheduled message at its time, and not before',
    hosts: { mx: {} },
    messages: { ada: { marketing: true, attempts: [delivered('mx dot 250')], status: 'delivered' } },
    play: async (run) => {
      const at = run.env.clock.now() + 6 * HOUR;
      await run.send('ada', { scheduledAt: new Date(at).toISOString() });
      await run.settle();
      await run.env.advance(5 * HOUR);
      await run.settle();
      expect(run.sink('mx').sessions).toEqual([]);
      await run.finish();
      expect(run.env.clock.now()).toBeGreaterThanOrEqual(at);
    },
  },
  'suppressed-while-deferred': {
    title: 'fails a deferred message whose recipient is suppressed before the next attempt',
    settings: ({ domain }) => ({ 'delivery.shaping': [{ match: domain, connections: 1 }] }),
    hosts: { mx: { script: { rcpt: inTurn('451 4.3.0 later') } } },
    messages: {
      ada: {
        attempts: [deferred('451 4.3.0', 'server-error', 5 * MINUTE, 'mx rcpt 451')],
        events: ['email_sent', 'email_delayed', 'email_suppressed'],
        status: 'failed',
      },
    },
    connections: { mx: ['EHLO MAIL RCPT DATA QUIT'] },
    suppressed: ['ada'],
    play: async (run) => {
      await run.sendAll();
      await run.settle();
      await run.env.api.post('/web-setup/suppressions', {
        email: `ada@${run.domain}`,
        reason: 'manual',
        stream: 'all',
      });
    },
  },
});
