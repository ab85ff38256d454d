import { delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'uses the next host when one defers MAIL',
  hosts: { mx: { script: { mail: '451 4.1.8 Sender address rejected: Domain not found' } }, mx2: {} },
  messages: { ada: { attempts: [delivered('mx mail 451', 'mx2 dot 250')], status: 'delivered' } },
  connections: { mx: ['EHLO MAIL RCPT DATA QUIT'], mx2: ['EHLO MAIL RCPT DATA . QUIT'] },
} satisfies Scenario;
