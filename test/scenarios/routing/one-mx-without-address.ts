import { delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'uses the next MX host when the most preferred one has no address',
  hosts: { mx: {} },
  zone: () => ({ '@': { MX: ['10 gone', '20 mx'] }, gone: { '*': 'NXDOMAIN' } }),
  messages: { ada: { attempts: [delivered('mx dot 250')], status: 'delivered' } },
  connections: { mx: ['EHLO MAIL RCPT DATA . QUIT'] },
} satisfies Scenario;
