import { delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'delivers to another server behind the same NAT',
  settings: ({ address }) => ({ 'delivery.egress': [{ name: 'main', publicAddress: address('mx') }] }),
  hosts: { mx: {} },
  messages: { ada: { attempts: [delivered('mx dot 250')], status: 'delivered' } },
} satisfies Scenario;
