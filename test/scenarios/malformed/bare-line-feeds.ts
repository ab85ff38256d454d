import { delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'accepts replies whose lines end with a bare LF',
  hosts: {
    mx: {
      keywords: [],
      script: {
        greeting: { bytes: '220 old server\n' },
        ehlo: { bytes: '250-old server\n250 SIZE 1000000\n' },
        mail: { bytes: '250 ok\n' },
        dot: { bytes: '250 2.0.0 taken\n' },
      },
    },
  },
  messages: { ada: { attempts: [delivered('mx dot 250')], status: 'delivered' } },
} satisfies Scenario;
