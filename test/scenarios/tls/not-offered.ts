import { delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'sends in plain text to a host that does not offer STARTTLS',
  hosts: { mx: {} },
  messages: { ada: { attempts: [delivered('mx dot 250')], status: 'delivered', lastEvent: { tls: null } } },
  connections: { mx: ['EHLO MAIL RCPT DATA . QUIT'] },
} satisfies Scenario;
