import type * as z from 'zod';
import type { dnsRecord } from '../../../http/api/domains/domain-schemas.ts';

/** The records in the format of zone files (RFC 1035, section 5). */
export function zoneFile(records: readonly z.output<typeof dnsRecord>[]): string {
  return records
    .map(({ type, name, value, priority, ttl = 3600, chunks }) => {
      const strings = (chunks ?? [value]).map((text) => `"${text.replaceAll(/["\\]/g, '\\$&')}"`).join(' ');
      const target = value.endsWith('.') ? value : `${value}.`;
      const data = type === 'TXT' ? strings : type === 'MX' ? `${priority ?? 10} ${target}` : target;
      return `${name}. ${ttl} IN ${type} ${data}\n`;
    })
    .join('');
}
