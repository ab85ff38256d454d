import { expect } from 'vitest';
import { delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

const FOOTER = '{{company_address_html}}{{unsubscribe_email_html}}';
const SEVEN_BITS = /^[\t\r\n\x20-\x7e]+$/;

export default {
  title: 'sends a message in any language to a host without extensions as seven-bit text',
  hosts: { mx: { keywords: [] } },
  messages: {
    ada: {
      body: { subject: 'Grüße', html: `<p>Schöne Grüße, 你好</p>${FOOTER}` },
      attempts: [delivered('mx dot 250')],
      status: 'delivered',
    },
  },
  connections: { mx: ['EHLO MAIL RCPT DATA . QUIT'] },
  verify: ({ sink }) => {
    const [message] = sink('mx').messages;
    expect(message?.parameters).toBe('');
    expect(message?.raw).toMatch(SEVEN_BITS);
  },
} satisfies Scenario;
