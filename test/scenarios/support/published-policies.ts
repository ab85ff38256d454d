import { policyText } from '../../support/policy-host.ts';
import { delivered } from './attempts.ts';
import type { ExpectedMessage, MtaSts } from './scenario.ts';

/** The MTA-STS policy of a scenario's destination. Default of `hosts`: its host `mx`. */
export function policyOf(
  name: string,
  mode: 'enforce' | 'testing' | 'none' = 'enforce',
  hosts: readonly string[] = [`mx.${name}.example`],
): MtaSts & { policy: string } {
  return { policy: policyText(mode, hosts) };
}

/** Delivered at the first attempt to a host whose certificate the MTA-STS policy permits. */
export const BY_POLICY: ExpectedMessage = {
  attempts: [delivered('mx dot 250 TLS verified')],
  status: 'delivered',
  tls: { requiredBy: 'mta-sts', verification: 'webpki', policy: 'verified' },
};

/** Delivered at the first attempt with encryption that is not required. */
export const OPPORTUNISTIC: ExpectedMessage = {
  attempts: [delivered('mx dot 250 TLS')],
  status: 'delivered',
  tls: { requiredBy: 'default', verification: 'none', policy: 'opportunistic' },
};

/** Delivered at the first attempt to a host whose certificate a TLSA record matches. */
export const BY_DANE: ExpectedMessage = {
  attempts: [delivered('mx dot 250 TLS verified')],
  status: 'delivered',
  tls: { requiredBy: 'dane', verification: 'dane', policy: 'verified' },
};
