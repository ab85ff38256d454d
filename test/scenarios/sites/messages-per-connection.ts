import { delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'opens another connection after the number of messages that the shaping allows',
  settings: ({ domain }) => ({
    'delivery.shaping': [{ match: domain, connections: 1, messagesPerConnection: 2 }],
  }),
  hosts: { mx: {} },
  messages: {
    ada: { attempts: [delivered('mx dot 250')], status: 'delivered' },
    bob: { attempts: [delivered('mx dot 250')], status: 'delivered' },
    eve: { attempts: [delivered('mx dot 250')], status: 'delivered' },
  },
  connections: { mx: ['EHLO MAIL RCPT DATA . MAIL RCPT DATA . QUIT', 'EHLO MAIL RCPT DATA . QUIT'] },
} satisfies Scenario;
