import { tlsaRecord } from '../../support/tlsa.ts';
import type { Scenario } from './scenario.ts';

/** Signs the zone of the destination. `records`: the TLSA records of the host `mx`, such as `TLSA 3 1 1 …`. */
export function withTlsa(...records: readonly string[]): NonNullable<Scenario['signed']> {
  return ({ port }) => records.map((record) => `_${port}._tcp.mx 60 ${record}`);
}

/** A TLSA record that no certificate matches. */
export const NO_MATCH = `TLSA 3 1 1 ${'ab'.repeat(32)}`;

/** A TLSA record with usage 1, which SMTP does not use (RFC 7672 §3.1.3). */
export const UNUSABLE = `TLSA 1 1 1 ${'ab'.repeat(32)}`;

/** A zone whose trust anchor in the resolver is wrong: its answers do not validate. */
export const BOGUS_ZONE = 'bogus-anchor.example';

/** An alias of the TLSA record in that zone. */
export const BOGUS_TLSA = `CNAME tlsa.${BOGUS_ZONE}.`;

/** The lines of BOGUS_ZONE, by its name. */
export function bogusZone(certificate: { cert: string }): Record<string, readonly string[]> {
  return { [BOGUS_ZONE]: [`tlsa 60 ${tlsaRecord(3, certificate)}`] };
}
