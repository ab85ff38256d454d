import { expect } from 'vitest';
import { delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'parses keywords in any case and form, and ignores extensions that it does not use',
  hosts: {
    mx: {
      keywords: [
        'pipelining',
        'Size 50000000 ',
        'CHUNKING',
        'X-EXPS=LOGIN',
        'AUTH LOGIN PLAIN',
        'DSN',
        '',
        'LIMITS RCPTMAX=1',
      ],
    },
  },
  messages: { ada: { attempts: [delivered('mx dot 250')], status: 'delivered' } },
  connections: { mx: ['EHLO MAIL RCPT DATA . QUIT'] },
  verify: ({ sink }) => {
    expect(sink('mx').messages[0]?.parameters).toMatch(/^SIZE=\d+$/);
    expect(sink('mx').sessions[0]?.pipelined).toBe(2);
  },
} satisfies Scenario;
