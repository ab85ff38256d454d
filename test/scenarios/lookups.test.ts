import { MINUTE } from '../../src/core/clock.ts';
import { bounced, deferred, delivered } from './support/attempts.ts';
import { deferredForLookup } from './support/deferred-for-lookup.ts';
import { registerScenarios } from './support/register.ts';

registerScenarios('lookups', {
  'alias-loop': {
    title: 'defers mail to a domain while its aliases form a loop',
    hosts: { mx: {} },
    zone: () => ({ shop: { CNAME: ['store'] }, store: { CNAME: ['shop'] } }),
    messages: {
      ada: {
        subdomain: 'shop',
        attempts: [deferred('451 4.4.3', 'network-error', 5 * MINUTE), delivered('mx dot 250')],
        status: 'delivered',
      },
    },
    play: async (run) => {
      await run.sendAll();
      await run.settle();
      run.publish({ store: { CNAME: ['@'] } });
    },
  },
  'bad-answer': deferredForLookup({
    title: 'defers mail while the answers of the name server cannot be parsed',
    answer: 'bad bytes',
  }),
  lame: deferredForLookup({
    title: 'defers mail while the name server answers with a referral',
    answer: 'referral',
  }),
  'neither-mx-nor-address': {
    title:
      'defers mail to a domain with neither MX nor address, and bounces it if there is still none on another day',
    // Waits are spread by 10 %: even the shortest one ends on another day.
    settings: () => ({ 'delivery.retry.first': '28h', 'delivery.retry.max': '28h' }),
    hosts: {},
    zone: () => ({ '@': { TXT: ['nothing else'] } }),
    messages: {
      ada: {
        attempts: [
          deferred('450 4.1.2', 'invalid-domain', undefined),
          bounced('550 5.1.2', 'invalid-domain'),
        ],
        status: 'bounced',
        lastEvent: { source: 'local', suppressed: false },
      },
    },
  },
  'no-such-domain': {
    title: 'bounces mail to a domain that does not exist, without suppressing the recipient the first time',
    hosts: {},
    zone: () => ({ '@': { '*': 'NXDOMAIN' } }),
    messages: {
      ada: {
        attempts: [bounced('550 5.1.2', 'invalid-domain')],
        status: 'bounced',
        lastEvent: { bounceType: 'hard', source: 'local', suppressed: false },
      },
    },
  },
  'one-mx-lookup-fails': {
    title: 'uses the MX host whose address can be looked up when the lookup of another one fails',
    hosts: { mx: {} },
    zone: () => ({ '@': { MX: ['10 broken', '20 mx'] }, broken: { '*': 'SERVFAIL' } }),
    messages: { ada: { attempts: [delivered('mx dot 250')], status: 'delivered' } },
    connections: { mx: ['EHLO MAIL RCPT DATA . QUIT'] },
  },
  refused: deferredForLookup({
    title: 'defers mail while the name server refuses to answer',
    answer: 'REFUSED',
  }),
  'servfail-until-expiry': {
    title: 'fails mail as expired, without a bounce, when the domain cannot be looked up for two days',
    settings: () => ({ 'delivery.retry.first': '20h', 'delivery.retry.max': '20h' }),
    hosts: {},
    zone: () => ({ '@': { '*': 'SERVFAIL' } }),
    messages: {
      ada: {
        attempts: Array.from({ length: 3 }, () => deferred('451 4.4.3', 'network-error', undefined)),
        status: 'failed',
        lastEvent: { reason: 'expired', lastDiagnostic: 'The domain could not be looked up' },
      },
    },
  },
  servfail: deferredForLookup({
    title: 'defers mail while the lookup of the domain fails',
    answer: 'SERVFAIL',
  }),
  timeout: deferredForLookup({
    title: 'defers mail while the name server does not answer',
    settings: () => ({ 'dns.timeoutMs': 200 }),
    answer: 'silent',
    resetsSettings: true,
  }),
});
