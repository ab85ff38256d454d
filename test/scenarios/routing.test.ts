import { expect } from 'vitest';
import { MINUTE } from '../../src/core/clock.ts';
import { PLATFORM } from '../support/in-process-daemon.ts';
import { inTurn } from './support/answers.ts';
import { bounced, deferred, delivered } from './support/attempts.ts';
import { forbiddenAddress } from './support/forbidden-address.ts';
import { registerScenarios } from './support/register.ts';

/** More preferred than the host with an address, and more than the hosts that one attempt tries. */
const GONE_FIRST_HOSTS_WITHOUT_ADDRESS = Array.from({ length: 8 }, (_, n) => `gone${n}`);

/** As many hosts as are looked up. */
const GONE_MORE_DEAD_HOSTS_THAN_LOOKED_UP = Array.from({ length: 25 }, (_, n) => `gone${n}`);

const PUBLIC_ADDRESS = '192.0.2.25';

// Public addresses behind NAT count as those of this server only with an MX listener.
registerScenarios(
  'routing',
  {
    'dead-ipv6': {
      title: 'uses the IPv4 address of a host whose IPv6 address refuses connections',
      settings: () => ({ 'delivery.egress': [{ name: 'main', address6: '::1' }] }),
      hosts: { mx: {} },
      zone: (address) => ({ mx: { AAAA: ['::1'], A: [address('mx')] } }),
      messages: {
        ada: { attempts: [delivered('mx connect: connection refused', 'mx dot 250')], status: 'delivered' },
      },
      connections: { mx: ['EHLO MAIL RCPT DATA . QUIT'] },
    },
    'domain-is-an-alias': {
      // RFC 5321 §5.1: the target of the alias is used in place of the original name.
      title: 'follows the chain of aliases of a domain to its MX hosts',
      hosts: { mx: {} },
      zone: () => ({ shop: { CNAME: ['store'] }, store: { CNAME: ['@'] } }),
      messages: { ada: { subdomain: 'shop', attempts: [delivered('mx dot 250')], status: 'delivered' } },
      connections: { mx: ['EHLO MAIL RCPT DATA . QUIT'] },
    },
    'equal-preferences': {
      // RFC 5321 §5.1: hosts of equal preference share the load.
      title: 'distributes mail over MX hosts of equal preference',
      settings: ({ domain }) => ({
        'delivery.shaping': [{ match: `*.${domain}`, connections: 1, messagesPerConnection: 1 }],
      }),
      hosts: { mx: {}, mx2: {} },
      zone: () =>
        Object.fromEntries(Array.from({ length: 24 }, (_, n) => [`d${n}`, { MX: ['10 mx', '10 mx2'] }])),
      messages: Object.fromEntries(
        Array.from({ length: 24 }, (_, n) => [
          `user${n}`,
          { subdomain: `d${n}`, attempts: [delivered()], status: 'delivered' as const },
        ]),
      ),
      verify: ({ sink }) => {
        // The probability that one host gets everything is one in eight million.
        expect(sink('mx').count).toBeGreaterThan(0);
        expect(sink('mx2').count).toBeGreaterThan(0);
      },
    },
    'first-hosts-without-address': {
      title: 'uses an MX host after many more preferred ones that have no address',
      hosts: { mx: {} },
      zone: () => ({
        '@': { MX: [...GONE_FIRST_HOSTS_WITHOUT_ADDRESS.map((name, n) => `${n} ${name}`), '50 mx'] },
        ...Object.fromEntries(GONE_FIRST_HOSTS_WITHOUT_ADDRESS.map((name) => [name, { '*': 'NXDOMAIN' }])),
      }),
      messages: { ada: { attempts: [delivered('mx dot 250')], status: 'delivered' } },
      connections: { mx: ['EHLO MAIL RCPT DATA . QUIT'] },
    },
    'ipv6-only': {
      title:
        'defers mail to a host that has only IPv6 addresses while this server has only IPv4 source addresses',
      settings: () => ({ 'delivery.egress': [{ name: 'main', address: '127.0.0.1' }] }),
      hosts: { mx: {} },
      zone: () => ({ mx: { A: 'NODATA', AAAA: { values: ['2001:db8::25'], ttl: 60 } } }),
      messages: {
        ada: {
          attempts: [deferred('451 4.4.4', 'network-error', 5 * MINUTE), delivered('mx dot 250')],
          status: 'delivered',
        },
      },
      play: async (run) => {
        await run.sendAll();
        await run.settle();
        run.publish({ mx: { A: [run.address('mx')], AAAA: 'NODATA' } });
      },
    },
    'many-mx-hosts': {
      title: 'tries the five most preferred of sixty MX hosts',
      hosts: Object.fromEntries(
        Array.from({ length: 6 }, (_, n) => [
          `mx${n}`,
          { script: { greeting: n < 5 ? inTurn('450 4.3.2 busy') : '220 sink' } },
        ]),
      ),
      zone: () => ({
        '@': {
          MX: [
            ...Array.from({ length: 54 }, (_, n) => `${100 + n} far${n}`),
            ...Array.from({ length: 6 }, (_, n) => `${n} mx${n}`),
          ],
        },
      }),
      messages: {
        ada: {
          attempts: [
            deferred(
              '450 4.3.2',
              'server-error',
              5 * MINUTE,
              ...Array.from({ length: 5 }, (_, n) => `mx${n} greeting 450`),
            ),
            delivered('mx0 dot 250'),
          ],
          status: 'delivered',
        },
      },
      connections: { mx5: [] },
    },
    'more-dead-hosts-than-looked-up': {
      title:
        'defers mail, and does not bounce it, when so many MX hosts have no address that others are not looked up',
      hosts: { mx: {} },
      zone: () => ({
        '@': {
          MX: {
            values: [...GONE_MORE_DEAD_HOSTS_THAN_LOOKED_UP.map((name, n) => `${n} ${name}`), '50 mx'],
            ttl: 60,
          },
        },
        ...Object.fromEntries(GONE_MORE_DEAD_HOSTS_THAN_LOOKED_UP.map((name) => [name, { '*': 'NXDOMAIN' }])),
      }),
      messages: {
        ada: {
          attempts: [deferred('451 4.4.3', 'network-error', 5 * MINUTE), delivered('mx dot 250')],
          status: 'delivered',
        },
      },
      play: async (run) => {
        await run.sendAll();
        await run.settle();
        run.publish({ '@': { MX: ['10 mx'] } });
      },
    },
    'moved-while-deferred': {
      title: 'sends a deferred message to the new host after the MX record has changed',
      hosts: { old: { script: { rcpt: '451 4.3.0 moving' } }, fresh: {} },
      zone: () => ({ '@': { MX: { values: ['10 old'], ttl: 60 } } }),
      messages: {
        ada: {
          attempts: [
            deferred('451 4.3.0', 'server-error', 5 * MINUTE, 'old rcpt 451'),
            delivered('fresh dot 250'),
          ],
          status: 'delivered',
        },
      },
      play: async (run) => {
        await run.sendAll();
        await run.settle();
        run.publish({ '@': { MX: ['10 fresh'] } });
      },
    },
    'mx-is-an-alias': {
      // RFC 2181 §10.3 forbids such records, which are common.
      title: 'follows the alias of an MX host',
      hosts: { mx: {} },
      zone: () => ({ '@': { MX: ['10 alias'] }, alias: { CNAME: ['mx'] } }),
      messages: { ada: { attempts: [delivered('alias dot 250')], status: 'delivered' } },
      connections: { mx: ['EHLO MAIL RCPT DATA . QUIT'] },
    },
    'mx-loopback': forbiddenAddress('never connects to the loopback address', { A: '127.0.0.1' }),
    'mx-mapped-loopback': forbiddenAddress(
      'never connects to the loopback address in IPv6 form',
      { AAAA: '::ffff:127.0.0.1' },
      { 'delivery.egress': [{ name: 'main', address6: '::1' }] },
    ),
    'mx-metadata': forbiddenAddress('never connects to a link-local address', { A: '169.254.169.254' }),
    'mx-private': forbiddenAddress('never connects to a private address', { A: '10.1.2.3' }),
    'neighbor-behind-nat': {
      title: 'delivers to another server behind the same NAT',
      settings: ({ address }) => ({ 'delivery.egress': [{ name: 'main', publicAddress: address('mx') }] }),
      hosts: { mx: {} },
      messages: { ada: { attempts: [delivered('mx dot 250')], status: 'delivered' } },
    },
    'no-mx': {
      // RFC 5321 §5.1: implicit MX
      title: 'uses the address of a domain without MX records',
      hosts: { mx: {} },
      zone: (address) => ({ '@': { MX: 'NODATA', A: [address('mx')] } }),
      messages: { ada: { attempts: [delivered('no-mx.example dot 250')], status: 'delivered' } },
      connections: { mx: ['EHLO MAIL RCPT DATA . QUIT'] },
    },
    'null-mx': {
      // RFC 7505
      title: 'bounces mail to a domain with a null MX, and suppresses the recipient',
      hosts: { mx: {} },
      zone: () => ({ '@': { MX: ['0 .'] } }),
      messages: {
        ada: {
          attempts: [bounced('556 5.1.10', 'invalid-domain')],
          status: 'bounced',
          lastEvent: { bounceType: 'hard', source: 'local', suppressed: true },
        },
      },
      connections: { mx: [] },
      suppressed: ['ada'],
    },
    'one-mx-without-address': {
      title: 'uses the next MX host when the most preferred one has no address',
      hosts: { mx: {} },
      zone: () => ({ '@': { MX: ['10 gone', '20 mx'] }, gone: { '*': 'NXDOMAIN' } }),
      messages: { ada: { attempts: [delivered('mx dot 250')], status: 'delivered' } },
      connections: { mx: ['EHLO MAIL RCPT DATA . QUIT'] },
    },
    'ourselves-behind-nat': {
      title:
        'fails mail as a loop when the most preferred MX host is this server behind NAT, under another name',
      settings: () => ({ 'delivery.egress': [{ name: 'main', publicAddress: PUBLIC_ADDRESS }] }),
      hosts: { backup: {} },
      zone: () => ({
        '@': { MX: ['10 mail', '20 backup'] },
        mail: { A: [PUBLIC_ADDRESS] },
        [`${PLATFORM}.`]: { A: [PUBLIC_ADDRESS] },
      }),
      messages: {
        ada: {
          attempts: [bounced('554 5.4.6', 'routing-loop')],
          status: 'failed',
          lastEvent: { reason: 'loop' },
        },
      },
      connections: { backup: [] },
    },
    'ourselves-least-preferred': {
      // RFC 5321 §5.1
      title: 'uses neither this server as MX host, nor hosts that are not more preferred than it',
      hosts: { mx: { script: { rcpt: inTurn('451 4.3.0 later') } }, backup: {} },
      zone: () => ({ '@': { MX: ['10 mx', `20 ${PLATFORM}.`, '20 backup', '30 backup'] } }),
      messages: {
        ada: {
          attempts: [
            deferred('451 4.3.0', 'server-error', 5 * MINUTE, 'mx rcpt 451'),
            delivered('mx dot 250'),
          ],
          status: 'delivered',
        },
      },
      connections: { backup: [] },
    },
    'ourselves-most-preferred': {
      title: 'fails mail as a loop when the most preferred MX host is this server',
      hosts: { backup: {} },
      zone: () => ({ '@': { MX: [`10 ${PLATFORM}.`, '20 backup'] } }),
      messages: {
        ada: {
          attempts: [bounced('554 5.4.6', 'routing-loop')],
          status: 'failed',
          lastEvent: { reason: 'loop' },
        },
      },
      connections: { backup: [] },
    },
    'unusable-mx-is-no-implicit-mx': {
      // RFC 5321 §5.1: if there are MX records, the address of the domain itself is not used.
      title: 'bounces mail when no MX host has an address, although the domain itself has one',
      hosts: { web: {} },
      zone: (address) => ({
        '@': { MX: ['10 gone', '20 gone2'], A: [address('web')] },
        gone: { '*': 'NXDOMAIN' },
        gone2: { TXT: ['x'] },
      }),
      messages: {
        ada: {
          attempts: [bounced('550 5.4.4', 'invalid-domain')],
          status: 'bounced',
          lastEvent: { source: 'local' },
        },
      },
      connections: { web: [] },
    },
  },
  { settings: { 'mx.listen': '127.0.0.1:0' } },
);
