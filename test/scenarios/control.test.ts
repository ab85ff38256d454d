import { expect } from 'vitest';
import { HOUR } from '../../src/core/clock.ts';
import { bounced, delivered } from './support/attempts.ts';
import { changeQueued, control, resume } from './support/controls.ts';
import { paused } from './support/paused.ts';
import { registerScenarios } from './support/register.ts';

const PURGED = {
  attempts: [],
  status: 'cancelled',
  events: ['email_failed'],
  lastEvent: { reason: 'cancelled', diagnostic: 'purged by the operator: wrong list' },
} as const;

registerScenarios('control', {
  'paused-account': paused('does not send the mail of an account while it is paused', ({ env }) => ({
    scope: 'account',
    target: env.api.accountId,
  })),
  'paused-destination': paused(
    'does not send the mail to a destination while it is paused, and sends it when it is resumed',
    ({ domain }) => ({ scope: 'destination', target: domain }),
  ),
  'paused-past-expiry': {
    title: 'does not expire mail while it is paused, and attempts it once afterwards',
    settings: () => ({ 'delivery.retry.expireTransactional': '1h' }),
    hosts: { mx: {} },
    messages: { ada: { attempts: [delivered('mx dot 250')], status: 'delivered' } },
    play: async (run) => {
      await control(run, 'pause');
      await run.send('ada');
      await run.settle();
      await run.env.advance(3 * HOUR);
      await run.settle();
      expect((await run.message('ada')).status).toBe('queued');
      await resume(run);
    },
  },
  'paused-pool': paused('does not send the mail of an egress pool while it is paused', () => ({
    scope: 'pool',
    target: 'default',
  })),
  purged: {
    title: 'cancels queued mail that the operator purges',
    hosts: { mx: {} },
    messages: { ada: PURGED, bob: PURGED },
    connections: { mx: [] },
    play: async (run) => {
      await control(run, 'pause');
      await run.sendAll();
      await run.settle();
      expect(await changeQueued(run, 'purge', { reason: 'wrong list' })).toBe(2);
      await resume(run);
    },
  },
  'rejected-destination': {
    title:
      'bounces mail while the operator rejects its destination, without suppressing recipients, and delivers it afterwards',
    hosts: { mx: {} },
    messages: {
      ada: {
        attempts: [bounced('550 5.7.1', 'policy-block')],
        status: 'bounced',
        lastEvent: { bounceType: 'block', source: 'local', suppressed: false },
      },
      bob: { attempts: [delivered('mx dot 250')], status: 'delivered' },
    },
    connections: { mx: ['EHLO MAIL RCPT DATA . QUIT'] },
    play: async (run) => {
      await control(run, 'bounce');
      await run.send('ada');
      await run.finish();
      await resume(run);
      await run.send('bob');
    },
  },
  rerouted: {
    title: 'sends queued mail to the next hop that the operator chose, and later mail to the MX host',
    hosts: { mx: {}, other: {} },
    zone: () => ({ '@': { MX: ['10 mx'] } }),
    messages: {
      ada: { attempts: [delivered()], status: 'delivered' },
      bob: { attempts: [delivered('mx dot 250')], status: 'delivered' },
    },
    connections: { mx: ['EHLO MAIL RCPT DATA . QUIT'], other: ['EHLO MAIL RCPT DATA . QUIT'] },
    play: async (run) => {
      await control(run, 'pause');
      await run.send('ada');
      await run.settle();
      expect(await changeQueued(run, 'reroute', { via: `${run.address('other')}:${run.env.port}` })).toBe(1);
      await resume(run);
      await run.finish();
      await run.send('bob');
    },
  },
});
