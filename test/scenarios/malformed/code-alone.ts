import type { Scenario } from '../support/scenario.ts';

export default {
  // RFC 5321 §4.2: a client accepts replies without text.
  title: 'accepts replies that consist of a code without text',
  hosts: { mx: { script: { greeting: '220', mail: '250', rcpt: '250 ', data: '354', dot: '250' } } },
  messages: {
    ada: { attempts: [{ reply: '250', action: 'deliver', sessions: ['mx dot 250'] }], status: 'delivered' },
  },
} satisfies Scenario;
