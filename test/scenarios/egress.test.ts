import { expect } from 'vitest';
import { HOUR, MINUTE } from '../../src/core/clock.ts';
import type { SinkSession } from '../support/smtp-sink-session.ts';
import { startSocksServer } from '../support/socks-server.ts';
import { deferred, delivered } from './support/attempts.ts';
import { many } from './support/many.ts';
import { registerScenarios } from './support/register.ts';
import {
  addressSettings,
  expectReason,
  NEW_ADDRESS,
  sourcesAt,
  startWarmup,
  WARM,
  WARM_ADDRESS,
} from './support/source-addresses.ts';

const LISTED_BLOCKLISTED_ADDRESS = `550 5.7.1 Service unavailable, Client host [${NEW_ADDRESS}] blocked using Spamhaus`;
const refuse = (session: SinkSession) =>
  session.remoteAddress === NEW_ADDRESS ? LISTED_BLOCKLISTED_ADDRESS : undefined;

/** RFC 1928 §6: connection not allowed by ruleset. */
const NOT_ALLOWED = 2;

const LISTED_SECOND_ADDRESS = `550 5.7.1 messages from [${NEW_ADDRESS}] weren't sent: part of their network is on our block list (S3140)`;

registerScenarios('egress', {
  'blocklisted-address': {
    title:
      'avoids a source address that a provider has blocklisted, probes it, and uses it again when mail is accepted',
    settings: ({ domain }) => addressSettings(domain, [{ name: 'listed', address: NEW_ADDRESS }]),
    hosts: { mx: { script: { mail: refuse } } },
    messages: {
      // Refused from the listed address, and retried from the other one.
      first: {
        attempts: [
          deferred('550 5.7.1', 'reputation-block', undefined, 'mx mail 550'),
          delivered('mx dot 250'),
        ],
        status: 'delivered',
      },
      ...many(6, 'during'),
      ...many(8, 'after'),
    },
    play: async (run) => {
      const users = (prefix: string, count: number) =>
        Array.from({ length: count }, (_, n) => `${prefix}${n}`);
      await run.configure(addressSettings(run.domain, [{ name: 'listed', address: NEW_ADDRESS }, WARM]));
      // The name of the site decides that the first connection is from the listed address.
      await run.send('first');
      await run.settle();
      await run.env.advance(6 * MINUTE);
      await run.settle();
      for (const user of users('during', 6)) await run.send(user);
      await run.settle();
      expect(sourcesAt(run)).toEqual({ [WARM_ADDRESS]: 7 });
      run.sink('mx').program({ script: {} });
      await run.env.advance(HOUR);
      for (const user of users('after', 8)) {
        await run.send(user);
        await run.settle();
      }
      expect(sourcesAt(run)[NEW_ADDRESS] ?? 0).toBeGreaterThanOrEqual(3);
      const { data } = await run.env.api.get<{ total: { blocked: number; delivered: number } }>(
        '/web-setup/reputation?sourceAddress=listed',
      );
      expect(data.total.blocked).toBeGreaterThanOrEqual(1);
      expect(data.total.delivered).toBe(sourcesAt(run)[NEW_ADDRESS]);
      const metrics = await (await fetch(`${run.env.daemon.url}/metrics`)).text();
      expect(metrics).not.toContain('postrider_egress_problems{entry="listed"');
    },
  },
  'proxy-refuses-host': {
    title: 'defers mail while the proxy of the only source address does not allow the connection',
    hosts: { mx: {} },
    messages: {
      ada: {
        attempts: [deferred('451 4.4.4', 'network-error', 5 * MINUTE), delivered('mx dot 250')],
        status: 'delivered',
      },
    },
    connections: { mx: ['EHLO MAIL RCPT DATA . QUIT'] },
    play: async (run) => {
      const strict = await startSocksServer({ code: NOT_ALLOWED });
      const open = await startSocksServer();
      const via = ({ port }: { port: number }) =>
        addressSettings(run.domain, [
          { name: 'far', address: '127.0.0.13', proxy: `socks5://127.0.0.1:${port}` },
        ]);
      await run.configure(via(strict));
      await run.send('ada');
      await run.settle();
      await run.configure(via(open));
      await run.finish();
    },
  },
  proxy: {
    title:
      'sends through the SOCKS5 proxy of a source address, which gets the address of the host, not its name',
    hosts: { mx: {} },
    messages: { ada: { attempts: [delivered('mx dot 250')], status: 'delivered' } },
    play: async (run) => {
      const proxy = await startSocksServer();
      const far = { name: 'far', address: '127.0.0.13', proxy: `socks5://${proxy.host}:${proxy.port}` };
      await run.configure(addressSettings(run.domain, [far]));
      await run.send('ada');
      await run.finish();
      expect(proxy.requests).toEqual([
        { login: null, type: 1, destination: `${run.address('mx')}:${run.env.port}` },
      ]);
    },
  },
  'second-address': {
    title: 'delivers all mail from the second address after one refusal of the first one at MAIL',
    settings: ({ domain }) => addressSettings(domain, [{ name: 'blocked', address: NEW_ADDRESS }]),
    hosts: {
      mx: {
        script: {
          mail: ({ remoteAddress }) => (remoteAddress === NEW_ADDRESS ? LISTED_SECOND_ADDRESS : undefined),
        },
      },
    },
    messages: {
      first: {
        attempts: [
          deferred('550 5.7.1', 'reputation-block', undefined, 'mx mail 550'),
          delivered('mx dot 250'),
        ],
        status: 'delivered',
      },
      ...many(30, 'user'),
    },
    play: async (run) => {
      await run.configure(addressSettings(run.domain, [{ name: 'blocked', address: NEW_ADDRESS }, WARM]));
      await run.send('first');
      await run.settle();
      for (let n = 0; n < 30; n++) await run.send(`user${n}`);
      await run.finish();
      expect(sourcesAt(run)).toEqual({ [WARM_ADDRESS]: 31 });
    },
  },
  'warmup-expiry': {
    title: 'fails mail as expired if its expiry is before the next day of a warm-up',
    hosts: { mx: {} },
    messages: {
      ada: { marketing: true, attempts: [delivered('mx dot 250')], status: 'delivered' },
      bob: {
        marketing: true,
        attempts: [],
        status: 'failed',
        lastEvent: { reason: 'expired', attempts: 0 },
      },
    },
    play: async (run) => {
      await startWarmup(run, [1, 10], [], { 'delivery.retry.expireMarketing': '30m' });
      await run.send('ada');
      await run.settle();
      await run.send('bob');
    },
  },
  'warmup-overflow': {
    title: 'sends mail above the quota of a warm-up from another address of the pool',
    hosts: { mx: {} },
    messages: many(8, 'reader', { marketing: true }),
    play: async (run) => {
      await startWarmup(run, [2, 4], [WARM]);
      await run.sendAll();
    },
    verify: (run) => {
      expect(sourcesAt(run)).toEqual({ [NEW_ADDRESS]: 2, [WARM_ADDRESS]: 6 });
    },
  },
  'warmup-schedule': {
    title:
      'sends no more than the quota of a warm-up; the rest waits for the next day, as its explanation states',
    hosts: { mx: {} },
    messages: many(5, 'reader', { marketing: true }),
    play: async (run) => {
      await startWarmup(run, [2, 4]);
      await run.sendAll();
      await run.settle();
      expect(sourcesAt(run)).toEqual({ [NEW_ADDRESS]: 2 });
      await expectReason(run, 'reader4', 'warmup', "waits for tomorrow's warm-up quota");
    },
    verify: (run) => expect(sourcesAt(run)).toEqual({ [NEW_ADDRESS]: 5 }),
  },
  'warmup-transactional-first': {
    title:
      'sends transactional mail when the quota of a warm-up is used up, and marketing mail on the next day',
    hosts: { mx: {} },
    messages: { ...many(4, 'reader', { marketing: true }), ...many(2, 'user') },
    play: async (run) => {
      await startWarmup(run, [2, 10]);
      for (const user of ['reader0', 'reader1', 'reader2', 'reader3']) await run.send(user);
      await run.settle();
      await run.send('user0');
      await run.send('user1');
      await run.settle();
      const statuses = async (user: string) => (await run.message(user)).status;
      expect(await Promise.all(['user0', 'user1'].map(statuses))).toEqual(['delivered', 'delivered']);
      expect(await Promise.all(['reader2', 'reader3'].map(statuses))).toEqual(['queued', 'queued']);
      expect(run.sink('mx').count).toBe(4);
    },
  },
  'warmup-transactional-limit': {
    title: 'sends at most twice the quota of a warm-up of transactional mail',
    hosts: { mx: {} },
    messages: many(7, 'user'),
    play: async (run) => {
      await startWarmup(run, [2, 10]);
      await run.sendAll();
      await run.settle();
      expect(run.sink('mx').count).toBe(4);
    },
  },
});
