import { bounced } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
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
} satisfies Scenario;
