import { delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'uses the IPv4 address of a host whose IPv6 address refuses connections',
  settings: () => ({ 'delivery.egress': [{ name: 'main', address6: '::1' }] }),
  hosts: { mx: {} },
  zone: (address) => ({ mx: { AAAA: ['::1'], A: [address('mx')] } }),
  messages: {
    ada: { attempts: [delivered('mx connect: connection refused', 'mx dot 250')], status: 'delivered' },
  },
  connections: { mx: ['EHLO MAIL RCPT DATA . QUIT'] },
} satisfies Scenario;
