import { delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

/** More preferred than the host with an address, and more than the hosts that one attempt tries. */
const GONE = Array.from({ length: 8 }, (_, n) => `gone${n}`);

export default {
  title: 'uses an MX host after many more preferred ones that have no address',
  hosts: { mx: {} },
  zone: () => ({
    '@': { MX: [...GONE.map((name, n) => `${n} ${name}`), '50 mx'] },
    ...Object.fromEntries(GONE.map((name) => [name, { '*': 'NXDOMAIN' }])),
  }),
  messages: { ada: { attempts: [delivered('mx dot 250')], status: 'delivered' } },
  connections: { mx: ['EHLO MAIL RCPT DATA . QUIT'] },
} satisfies Scenario;
