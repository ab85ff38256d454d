import { MINUTE } from '../../../src/core/clock.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
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
} satisfies Scenario;
