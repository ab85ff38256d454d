import { delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'shares connections and limits among domains with the same MX hosts',
  settings: ({ domain }) => ({ 'delivery.shaping': [{ match: `mx.${domain}`, connections: 1 }] }),
  hosts: { mx: {} },
  zone: () => ({ one: { MX: ['10 mx'] }, two: { MX: ['10 mx'] }, three: { MX: ['10 mx'] } }),
  messages: {
    ada: { subdomain: 'one', attempts: [delivered('mx dot 250')], status: 'delivered' },
    bob: { subdomain: 'two', attempts: [delivered('mx dot 250')], status: 'delivered' },
    eve: { subdomain: 'three', attempts: [delivered('mx dot 250')], status: 'delivered' },
  },
  connections: { mx: ['EHLO MAIL RCPT DATA . MAIL RCPT DATA . MAIL RCPT DATA . QUIT'] },
} satisfies Scenario;
