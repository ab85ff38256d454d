import { delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'tries one further host when a host defers the recipient',
  hosts: { mx: { script: { rcpt: '451 4.3.0 Try later' } }, mx2: {}, mx3: {} },
  messages: { ada: { attempts: [delivered('mx rcpt 451', 'mx2 dot 250')], status: 'delivered' } },
  connections: { mx: ['EHLO MAIL RCPT DATA QUIT'], mx2: ['EHLO MAIL RCPT DATA . QUIT'], mx3: [] },
} satisfies Scenario;
