import { selfSigned } from '../../support/certificates.ts';
import { deferred } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';
import { BOGUS_TLSA, withTlsa } from '../support/signed-destination.ts';

const BOGUS = deferred(
  '454 4.7.5',
  'tls-failed',
  undefined,
  'mx dns: mx.dane-bogus.example: the TLSA records of _25._tcp.mx.dane-bogus.example could not be looked up (ESERVFAIL); mail is sent only if DNSSEC proves that there are none',
);

export default {
  title: 'never connects to a host whose TLSA records are bogus, and fails its mail as expired',
  settings: () => ({ 'delivery.retry.first': '20h', 'delivery.retry.max': '20h' }),
  signed: withTlsa(BOGUS_TLSA),
  hosts: { mx: { tls: selfSigned(['mx.example']) } },
  messages: {
    ada: { attempts: [BOGUS, BOGUS, BOGUS], status: 'failed', lastEvent: { reason: 'expired' } },
  },
  connections: { mx: [] },
} satisfies Scenario;
