import { selfSigned } from '../../support/certificates.ts';
import { OPPORTUNISTIC } from '../support/published-policies.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'does not ask for TLSA records of a zone that is not signed',
  hosts: { mx: { tls: selfSigned(['mx.example']) } },
  zone: () => ({ '_25._tcp.mx': { '*': 'SERVFAIL' } }),
  messages: { ada: OPPORTUNISTIC },
} satisfies Scenario;
