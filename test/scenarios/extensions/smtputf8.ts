import { expect } from 'vitest';
import { delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  // RFC 6531 §3.4
  title: 'requests SMTPUTF8 only for an address that needs it',
  settings: ({ domain }) => ({ 'delivery.shaping': [{ match: domain, connections: 1 }] }),
  hosts: { mx: {} },
  messages: {
    用户: { attempts: [delivered('mx dot 250')], status: 'delivered' },
    ada: { attempts: [delivered('mx dot 250')], status: 'delivered' },
  },
  verify: ({ sink }) => {
    expect(sink('mx').messages.map(({ parameters }) => parameters.replace(/^SIZE=\d+ ?/, ''))).toEqual([
      'SMTPUTF8 BODY=8BITMIME',
      '',
    ]);
  },
} satisfies Scenario;
