import { expect } from 'vitest';
import { selfSigned } from '../../support/certificates.ts';
import { OPPORTUNISTIC } from '../support/published-policies.ts';
import type { ScenarioRun } from '../support/run.ts';
import type { Scenario } from '../support/scenario.ts';

const tlsaName = ({ env, domain }: ScenarioRun) => `_${env.port}._tcp.mx.${domain}`;

export default {
  // RFC 7672 §2.2.2
  title: 'does not query TLSA records in a zone that is not signed',
  hosts: { mx: { tls: selfSigned(['mx.example']) } },
  messages: { ada: OPPORTUNISTIC },
  play: async (run) => {
    run.publish({ [`${tlsaName(run)}.`]: { '*': 'SERVFAIL' } });
    await run.sendAll();
  },
  verify: (run) => expect(run.env.daemon.dns.asked(tlsaName(run), 'TLSA')).toBe(0),
} satisfies Scenario;
