import { delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'sends in plain text when DNSSEC proves that a host has no TLSA records',
  signed: () => [],
  hosts: { mx: {} },
  messages: { ada: { attempts: [delivered('mx dot 250')], status: 'delivered' } },
} satisfies Scenario;
