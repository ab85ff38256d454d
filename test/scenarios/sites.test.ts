import { expect } from 'vitest';
import { MINUTE } from '../../src/core/clock.ts';
import { selfSigned } from '../support/certificates.ts';
import { eventually } from '../support/eventually.ts';
import { deferred, delivered } from './support/attempts.ts';
import { AUTHORITY } from './support/environment.ts';
import { many } from './support/many.ts';
import { registerScenarios } from './support/register.ts';
import type { ScenarioRun } from './support/run.ts';
import { twoCustomers } from './support/two-customers.ts';

const BLOCKED =
  "550 5.7.1 Unfortunately, messages from [192.0.2.25] weren't sent. Please contact your Internet service provider since part of their network is on our block list (S3140).";

const refused = (run: ScenarioRun) =>
  run.sink('mx').sessions.flatMap(({ commands }) => commands.filter((line) => line.startsWith('MAIL')))
    .length;

const REFUSED = deferred('550 5.7.1', 'reputation-block', undefined, 'mx mail 550');

async function readiness({ env }: ScenarioRun) {
  const response = await fetch(`${env.daemon.url}/readyz`);
  const body = (await response.json()) as {
    data: { checks: { check: string; ok: boolean; details?: object }[] };
  };
  return body.data;
}

const ATTEMPTED = {
  attempts: [deferred('451 4.4.1', 'network-error', undefined, 'mx connect: connection refused')],
  status: 'failed',
  lastEvent: { reason: 'expired', attempts: 1 },
} as const;

const LOST = 'mx greeting: server closed the connection before the greeting';

const PHASES = [
  ['greeting', '220 slow'],
  ['ehlo', '250 slow'],
  ['mail', '250 2.1.0 ok'],
  ['rcpt', '250 2.1.5 ok'],
  ['data', '354 go on'],
  ['dot', '250 2.0.0 taken'],
] as const;

registerScenarios('sites', {
  'blocked-address': {
    title:
      'suspends a site that blocks the only source address, probes it with one message after longer waits, and loses no mail',
    settings: ({ domain }) => ({
      'delivery.shaping': [{ match: domain, connections: 1, messagesPerConnection: 1 }],
    }),
    hosts: { mx: { script: { mail: BLOCKED } } },
    messages: {
      // The oldest one is the first probe, too.
      early0: { attempts: [REFUSED, REFUSED, delivered('mx dot 250')], status: 'delivered' },
      early1: { attempts: [REFUSED, delivered('mx dot 250')], status: 'delivered' },
      early2: { attempts: [REFUSED, delivered('mx dot 250')], status: 'delivered' },
      ...many(12, 'late'),
    },
    play: async (run) => {
      for (const user of ['early0', 'early1', 'early2']) {
        await run.send(user);
        await run.settle();
      }
      expect(refused(run)).toBe(3);
      for (let n = 0; n < 12; n++) await run.send(`late${n}`);
      await run.settle();
      expect(refused(run)).toBe(3);
      const { data } = await run.env.api.get<{ blockedAt: string | null }>(
        `/web-setup/queue/destinations/${run.domain}`,
      );
      expect(data.blockedAt).not.toBeNull();
      const { checks } = await readiness(run);
      expect(checks.find(({ check }) => check === 'queue')).toMatchObject({
        ok: true,
        details: { blocked: [{ receiver: run.domain, reply: expect.stringContaining('S3140') }] },
      });
      const events = await run.env.api.get<{ events: { event: string; receiver?: string }[] }>(
        '/web-setup/events?event=source_address_blocked&limit=10',
      );
      expect(events.data.events.map(({ receiver }) => receiver)).toContain(run.domain);
      // The first probe is refused, the next one is due after twice the wait.
      await run.env.advance(31 * MINUTE);
      await run.settle();
      expect(refused(run)).toBe(4);
      await run.env.advance(31 * MINUTE);
      await run.settle();
      expect(refused(run)).toBe(4);
      run.sink('mx').program({ script: {} });
      await run.env.advance(30 * MINUTE);
    },
  },
  'closed-while-idle': {
    title: 'replaces an idle connection that the host has closed, without a failed session',
    settings: ({ domain }) => ({ 'delivery.shaping': [{ match: domain, connections: 1 }] }),
    hosts: { mx: {} },
    messages: {
      ada: { attempts: [delivered('mx dot 250')], status: 'delivered' },
      bob: { attempts: [delivered('mx dot 250')], status: 'delivered' },
    },
    connections: { mx: ['EHLO MAIL RCPT DATA .', 'EHLO MAIL RCPT DATA . QUIT'] },
    play: async (run) => {
      await run.send('ada');
      await run.settle();
      run.sink('mx').disconnect();
      await run.send('bob');
    },
  },
  'connection-limit': {
    title: 'opens no more connections to a site than its shaping allows',
    settings: ({ domain }) => ({ 'delivery.shaping': [{ match: domain, connections: 2 }] }),
    hosts: { mx: { script: { dot: { reply: '250 2.0.0 taken', delayMs: 20 } } } },
    messages: Object.fromEntries(
      Array.from({ length: 12 }, (_, n) => [
        `user${n}`,
        { attempts: [delivered('mx dot 250')], status: 'delivered' as const },
      ]),
    ),
    verify: ({ sink }) => {
      expect(sink('mx').peak).toBe(2);
      expect(sink('mx').sessions).toHaveLength(2);
    },
  },
  'down-until-expiry': {
    /*
     * Two failures suspend the site for a minute, each failed probe for twice as long as before. The last message is never
     * attempted: it expires after 20 minutes, during the suspension of 16 minutes that starts after 15 minutes.
     */
    title: 'fails mail that waits for a suspended site as expired',
    settings: ({ domain }) => ({
      'delivery.shaping': [{ match: domain, connections: 1 }],
      'delivery.retry.first': '1h',
      'delivery.retry.expireTransactional': '20m',
    }),
    hosts: { mx: 'refused' },
    messages: {
      ...Object.fromEntries(Array.from({ length: 6 }, (_, n) => [`user${n}`, ATTEMPTED])),
      last: {
        attempts: [],
        status: 'failed',
        lastEvent: {
          reason: 'expired',
          attempts: 0,
          lastDiagnostic: 'the mail hosts of down-until-expiry.example cannot be reached',
        },
      },
    },
  },
  'idle-timeout': {
    title: 'sends QUIT on a connection that was idle for a minute',
    settings: ({ domain }) => ({ 'delivery.shaping': [{ match: domain, connections: 1 }] }),
    hosts: { mx: {} },
    messages: {
      ada: { attempts: [delivered('mx dot 250')], status: 'delivered' },
      bob: { attempts: [delivered('mx dot 250')], status: 'delivered' },
    },
    connections: { mx: ['EHLO MAIL RCPT DATA . QUIT', 'EHLO MAIL RCPT DATA . QUIT'] },
    play: async (run) => {
      await run.send('ada');
      await run.settle();
      expect(run.sink('mx').open).toBe(1);
      await run.env.advance(MINUTE);
      await eventually('the connection to be closed', () => run.sink('mx').open === 0);
      await run.send('bob');
    },
  },
  'messages-per-connection': {
    title: 'opens another connection after the number of messages that the shaping allows',
    settings: ({ domain }) => ({
      'delivery.shaping': [{ match: domain, connections: 1, messagesPerConnection: 2 }],
    }),
    hosts: { mx: {} },
    messages: {
      ada: { attempts: [delivered('mx dot 250')], status: 'delivered' },
      bob: { attempts: [delivered('mx dot 250')], status: 'delivered' },
      eve: { attempts: [delivered('mx dot 250')], status: 'delivered' },
    },
    connections: { mx: ['EHLO MAIL RCPT DATA . MAIL RCPT DATA . QUIT', 'EHLO MAIL RCPT DATA . QUIT'] },
  },
  'one-down-others-not': {
    title: 'delivers to other domains while one cannot be reached',
    hosts: { dead: 'unresponsive', mx: {} },
    zone: () => ({ '@': { MX: ['10 mx'] }, down: { MX: ['10 dead'] } }),
    messages: {
      ada: {
        subdomain: 'down',
        attempts: [
          deferred(
            '451 4.4.1',
            'network-error',
            5 * MINUTE,
            'dead connect: timed out after 30 s waiting for the connection',
          ),
          delivered('mx dot 250'),
        ],
        status: 'delivered',
      },
      bob: { attempts: [delivered('mx dot 250')], status: 'delivered' },
    },
    play: async (run) => {
      await run.sendAll();
      await run.settle();
      run.publish({ down: { MX: ['10 mx'] } });
    },
  },
  'profile-is-one-site': twoCustomers(
    'limits the rate to all hosts of a shared profile when one of them requests it',
    true,
  ),
  'profile-of-separate-sites': twoCustomers(
    'limits the rate to one customer of a mail filter only, when the hosts of that customer request it',
    false,
  ),
  reused: {
    title: 'sends messages to one host over one connection, without RSET between them',
    settings: ({ domain }) => ({ 'delivery.shaping': [{ match: domain, connections: 1 }] }),
    hosts: { mx: {} },
    messages: {
      ada: { attempts: [delivered('mx dot 250')], status: 'delivered' },
      bob: { attempts: [delivered('mx dot 250')], status: 'delivered' },
      eve: { attempts: [delivered('mx dot 250')], status: 'delivered' },
    },
    connections: { mx: ['EHLO MAIL RCPT DATA . MAIL RCPT DATA . MAIL RCPT DATA . QUIT'] },
  },
  'route-required-tls': {
    title: 'defers the mail of a route that requires encryption until its host offers it',
    settings: ({ domain, address, port }) => ({
      'delivery.routes': [{ match: domain, host: address('relay'), port, tls: 'required' }],
    }),
    hosts: { relay: {} },
    messages: {
      ada: {
        attempts: [deferred('454 4.7.5', 'tls-failed', 5 * MINUTE), delivered()],
        status: 'delivered',
        lastEvent: { tls: 'TLSv1.3' },
      },
    },
    connections: { relay: ['EHLO QUIT', 'EHLO STARTTLS TLS EHLO MAIL RCPT DATA . QUIT'] },
    play: async (run) => {
      await run.sendAll();
      await run.settle();
      run.sink('relay').program({ tls: selfSigned(['relay.example']) });
    },
  },
  'route-verified-tls': {
    title: 'defers the mail of a route that requires a valid certificate until its host has one',
    settings: ({ domain, port }) => ({
      'delivery.routes': [{ match: domain, host: `relay.${domain}`, port, tls: 'verified' }],
    }),
    hosts: { relay: { tls: selfSigned(['relay.route-verified-tls.example']) } },
    messages: {
      ada: {
        attempts: [
          deferred(
            '454 4.7.5',
            'tls-failed',
            5 * MINUTE,
            'relay starttls: TLS handshake failed: self-signed certificate',
          ),
          delivered('relay dot 250 TLS verified'),
        ],
        status: 'delivered',
      },
    },
    play: async (run) => {
      await run.sendAll();
      await run.settle();
      run.sink('relay').program({ tls: AUTHORITY.issue(['relay.route-verified-tls.example']) });
    },
  },
  route: {
    title: 'sends the mail of a route to its host and port, without querying MX records',
    settings: ({ domain, address, port }) => ({
      'delivery.routes': [{ match: domain, host: address('relay'), port }],
    }),
    hosts: { mx: {}, relay: {} },
    zone: () => ({ '@': { MX: 'SERVFAIL' } }),
    messages: { ada: { attempts: [delivered()], status: 'delivered' } },
    connections: { mx: [], relay: ['EHLO MAIL RCPT DATA . QUIT'] },
    verify: ({ env, domain }) => expect(env.daemon.dns.asked(domain, 'MX')).toBe(0),
  },
  'shared-by-domains': {
    title: 'shares connections and limits among domains with the same MX hosts',
    settings: ({ domain }) => ({ 'delivery.shaping': [{ match: `mx.${domain}`, connections: 1 }] }),
    hosts: { mx: {} },
    zone: () => ({ one: { MX: ['10 mx'] }, two: { MX: ['10 mx'] }, three: { MX: ['10 mx'] } }),
    messages: {
      ada: { subdomain: 'one', attempts: [delivered('mx dot 250')], status: 'delivered' },
      bob: { subdomain: 'two', attempts: [delivered('mx dot 250')], status: 'delivered' },
      eve: { subdomain: 'three', attempts: [delivered('mx dot 250')], status: 'delivered' },
    },
    connections: { mx: ['EHLO MAIL RCPT DATA . MAIL RCPT DATA . MAIL RCPT DATA . QUIT'] },
  },
  'shutdown-while-idle': {
    title: 'replaces an idle connection that the host has ended with 421',
    settings: ({ domain }) => ({ 'delivery.shaping': [{ match: domain, connections: 1 }] }),
    hosts: { mx: {} },
    messages: {
      ada: { attempts: [delivered('mx dot 250')], status: 'delivered' },
      bob: { attempts: [delivered('mx dot 250')], status: 'delivered' },
    },
    connections: { mx: ['EHLO MAIL RCPT DATA . QUIT', 'EHLO MAIL RCPT DATA . QUIT'] },
    play: async (run) => {
      await run.send('ada');
      await run.settle();
      run.sink('mx').send('421 4.4.2 Idle for too long\r\n');
      await eventually('the connection to be closed', () => run.sink('mx').open === 0);
      await run.send('bob');
    },
  },
  'suspended-and-recovered': {
    title:
      'suspends a site that cannot be reached, attempts no other mail to it, and sends it after a successful probe',
    settings: ({ domain }) => ({ 'delivery.shaping': [{ match: domain, connections: 2 }] }),
    hosts: { mx: { script: { greeting: 'drop' } } },
    messages: {
      ada: {
        attempts: [deferred('451 4.4.1', 'network-error', 5 * MINUTE, LOST), delivered('mx dot 250')],
        status: 'delivered',
      },
      bob: {
        attempts: [deferred('451 4.4.1', 'network-error', 5 * MINUTE, LOST), delivered('mx dot 250')],
        status: 'delivered',
      },
      // Not attempted while the site is suspended.
      eve: { attempts: [delivered('mx dot 250')], status: 'delivered' },
      kim: { attempts: [delivered('mx dot 250')], status: 'delivered' },
    },
    play: async (run) => {
      await run.send('ada');
      await run.send('bob');
      await run.settle();
      await run.send('eve');
      await run.send('kim');
      await run.settle();
      expect(run.sink('mx').sessions).toHaveLength(2);
      run.sink('mx').program({ script: {} });
    },
  },
  tarpit: {
    title: 'delivers to a host that sends each reply slowly',
    hosts: {
      mx: {
        script: Object.fromEntries(PHASES.map(([phase, reply]) => [phase, { reply, bytesPerSecond: 500 }])),
      },
    },
    messages: { ada: { attempts: [delivered('mx dot 250')], status: 'delivered' } },
    connections: { mx: ['EHLO MAIL RCPT DATA . QUIT'] },
  },
});
