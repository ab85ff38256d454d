import { delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'uses the next host when one refuses the connection',
  hosts: { mx: 'refused', mx2: {} },
  messages: {
    ada: { attempts: [delivered('mx connect: connection refused', 'mx2 dot 250')], status: 'delivered' },
  },
  connections: { mx2: ['EHLO MAIL RCPT DATA . QUIT'] },
} satisfies Scenario;
