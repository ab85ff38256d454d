import type { DataOf } from '../../operations.ts';

/** The records in the format of zone files (RFC 1035, section 5). */
export function zoneFile(
  records: readonly DataOf<'/web-setup/domains/{domainId}/last-check'>['records'][number][],
): string {
  return records
    .map(({ type, name, value, priority, ttl = 3600, chunks }) => {
      const strings = (chunks ?? [value]).map((text) => `"${text.replaceAll(/["\\]/g, '\\$&')}"`).join(' ');
      const target = value.endsWith('.') ? value : `${value}.`;
      const data = type === 'TXT' ? strings : type === 'MX' ? `${priority ?? 10} ${target}` : target;
      return `${name}. ${ttl} IN ${type} ${data}\n`;
    })
    .join('');
}
