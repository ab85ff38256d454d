import { delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  // RFC 5321 §3.1: the client sends only QUIT.
  title: 'uses the next host when one greets with 554',
  hosts: { mx: { script: { greeting: '554 No SMTP service here' } }, mx2: {} },
  messages: {
    ada: { attempts: [delivered('mx greeting 554', 'mx2 dot 250')], status: 'delivered' },
  },
  connections: { mx: ['QUIT'], mx2: ['EHLO MAIL RCPT DATA . QUIT'] },
} satisfies Scenario;
