import { delivered } from '../support/attempts.ts';
import { AUTHORITY } from '../support/environment.ts';
import { policyOf } from '../support/published-policies.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'never connects to a host that is not in the policy, and delivers to one that is',
  mtaSts: policyOf('sts-second-host', 'enforce', ['mx2.sts-second-host.example']),
  hosts: {
    mx: { tls: AUTHORITY.issue(['mx.sts-second-host.example']) },
    mx2: { tls: AUTHORITY.issue(['mx2.sts-second-host.example']) },
  },
  messages: {
    ada: {
      attempts: [delivered('mx2 dot 250 TLS verified')],
      status: 'delivered',
    },
  },
  connections: { mx: [] },
} satisfies Scenario;
