import { bounced } from './attempts.ts';
import type { Scenario } from './scenario.ts';

/** The MX host has an address to which no mail is ever sent. `record`: its type and value. */
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
