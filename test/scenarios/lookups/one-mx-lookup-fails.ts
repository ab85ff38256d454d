import { delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'uses the MX host whose address can be looked up when the lookup of another one fails',
  hosts: { mx: {} },
  zone: () => ({ '@': { MX: ['10 broken', '20 mx'] }, broken: { '*': 'SERVFAIL' } }),
  messages: { ada: { attempts: [delivered('mx dot 250')], status: 'delivered' } },
  connections: { mx: ['EHLO MAIL RCPT DATA . QUIT'] },
} satisfies Scenario;
