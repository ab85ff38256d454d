import { tlsaRecord } from '../../support/tlsa.ts';
import type { Scenario } from './scenario.ts';

/** A signed destination whose first MX host has the TLSA records, such as `TLSA 3 1 1 …`. */
export function withTlsa(...records: readonly string[]): NonNullable<Scenario['signed']> {
  return ({ port }) => records.map((record) => `_${port}._tcp.mx 60 ${record}`);
}

/** A TLSA record that no certificate matches. */
export const NO_MATCH = `TLSA 3 1 1 ${'ab'.repeat(32)}`;

/** Of usage 1, which SMTP does not use (RFC 7672 §3.1.3). */
export const UNUSABLE = `TLSA 1 1 1 ${'ab'.repeat(32)}`;

/** The name of a TLSA record in a zone whose trust anchor is wrong. */
export const BOGUS_ZONE = 'bogus-anchor.example';
export const BOGUS_TLSA = `CNAME tlsa.${BOGUS_ZONE}.`;

/** The lines of that zone. */
export function bogusZone(certificate: { cert: string }): Record<string, readonly string[]> {
  return { [BOGUS_ZONE]: [`tlsa 60 ${tlsaRecord(3, certificate)}`] };
}
