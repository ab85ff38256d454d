import { delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'sends messages to one host over one connection, without RSET between them',
  settings: ({ domain }) => ({ 'delivery.shaping': [{ match: domain, connections: 1 }] }),
  hosts: { mx: {} },
  messages: {
    ada: { attempts: [delivered('mx dot 250')], status: 'delivered' },
    bob: { attempts: [delivered('mx dot 250')], status: 'delivered' },
    eve: { attempts: [delivered('mx dot 250')], status: 'delivered' },
  },
  connections: { mx: ['EHLO MAIL RCPT DATA . MAIL RCPT DATA . MAIL RCPT DATA . QUIT'] },
} satisfies Scenario;
