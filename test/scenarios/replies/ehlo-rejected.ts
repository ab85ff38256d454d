import { delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

const REJECTED = '550 5.7.1 Helo command rejected: Host not found';

export default {
  title: 'uses the next host when one rejects our host name after EHLO and HELO',
  hosts: {
    mx: { script: { ehlo: REJECTED, helo: REJECTED } },
    mx2: {},
  },
  messages: { ada: { attempts: [delivered('mx ehlo 550', 'mx2 dot 250')], status: 'delivered' } },
  connections: { mx: ['EHLO HELO QUIT'], mx2: ['EHLO MAIL RCPT DATA . QUIT'] },
} satisfies Scenario;
