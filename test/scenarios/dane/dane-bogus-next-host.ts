import { selfSigned } from '../../support/certificates.ts';
import { delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';
import { BOGUS_TLSA, withTlsa } from '../support/signed-destination.ts';

const BOGUS =
  'mx dns: mx.dane-bogus-next-host.example: the TLSA records of _25._tcp.mx.dane-bogus-next-host.example could not be looked up (ESERVFAIL); mail is sent only if DNSSEC proves that there are none';

export default {
  title: 'uses the next host when the TLSA records of one are bogus',
  signed: withTlsa(BOGUS_TLSA),
  hosts: { mx: { tls: selfSigned(['mx.example']) }, mx2: { tls: selfSigned(['mx2.example']) } },
  messages: { ada: { attempts: [delivered(BOGUS, 'mx2 dot 250 TLS')], status: 'delivered' } },
  connections: { mx: [] },
} satisfies Scenario;
