import { selfSigned } from '../../support/certificates.ts';
import { OPPORTUNISTIC } from './published-policies.ts';
import type { MtaSts, Scenario } from './scenario.ts';

/**
 * A destination whose announced MTA-STS policy cannot be fetched or is invalid: its mail is sent as without a policy
 * (RFC 8461 §3.3).
 */
export function unavailablePolicy(
  title: string,
  mtaSts: MtaSts,
  zone: Scenario['zone'] = () => ({}),
): Scenario {
  return {
    title,
    mtaSts,
    zone,
    hosts: { mx: { tls: selfSigned(['mx.example']) } },
    messages: { ada: OPPORTUNISTIC },
  };
}
