import { delivered } from '../support/attempts.ts';
import { policyOf } from '../support/published-policies.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'delivers in plain text under a policy in mode none',
  mtaSts: policyOf('sts-none', 'none'),
  hosts: { mx: {} },
  messages: { ada: { attempts: [delivered('mx dot 250')], status: 'delivered' } },
} satisfies Scenario;
