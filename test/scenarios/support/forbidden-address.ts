import { bounced } from './attempts.ts';
import type { Scenario } from './scenario.ts';

/** A destination whose MX host has an address to which no mail may be sent. `record`: type and value of the address. */
export function forbiddenAddress(
  title: string,
  record: { A: string } | { AAAA: string },
  settings: Record<string, unknown> = {},
): Scenario {
  return {
    title,
    settings: () => ({ 'delivery.allowPrivateNetworks': false, ...settings }),
    hosts: {},
    zone: () => ({
      '@': { MX: ['10 mx'] },
      mx: 'A' in record ? { A: [record.A] } : { AAAA: [record.AAAA] },
    }),
    messages: {
      ada: {
        attempts: [bounced('554 5.4.4', 'invalid-domain')],
        status: 'bounced',
        lastEvent: { bounceType: 'soft', source: 'local', suppressed: false },
      },
    },
  };
}
