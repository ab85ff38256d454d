import { delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

const PHASES = [
  ['greeting', '220 slow'],
  ['ehlo', '250 slow'],
  ['mail', '250 2.1.0 ok'],
  ['rcpt', '250 2.1.5 ok'],
  ['data', '354 go on'],
  ['dot', '250 2.0.0 taken'],
] as const;

export default {
  title: 'delivers to a host that sends each reply slowly',
  hosts: {
    mx: {
      script: Object.fromEntries(PHASES.map(([phase, reply]) => [phase, { reply, bytesPerSecond: 500 }])),
    },
  },
  messages: { ada: { attempts: [delivered('mx dot 250')], status: 'delivered' } },
  connections: { mx: ['EHLO MAIL RCPT DATA . QUIT'] },
} satisfies Scenario;
