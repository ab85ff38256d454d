import { txtStrings } from '../dns/zone-record.ts';
import type { DkimKeyRow, DomainRow } from '../store/domains/domains.ts';
import type { Platform } from './platform/platform.ts';

/** A DNS record that the owner of a domain publishes. */
export interface DnsRecord {
  type: 'TXT' | 'CNAME' | 'MX';
  name: string;
  value: string;
  description: string;
  purpose?: string;
  priority?: number;
  ttl?: number;
  /** A TXT value of more than 255 bytes, in the strings that make up its one record (RFC 1035 §3.3). */
  chunks?: string[];
}

/** What the records of a domain derive from. */
export interface RecordContext {
  domain: DomainRow;
  keys: readonly DkimKeyRow[];
  platform: Pick<Platform, 'hostname' | 'keyPolicy' | 'dmarcPolicy' | 'stsPolicy'>;
}

/** Bytes in one string of a TXT record (RFC 1035 §3.3). */
const MAX_TXT_STRING = 255;

/** Adds `chunks` to a value of more than 255 bytes; a shorter one has none. */
export function txtRecord(record: Omit<DnsRecord, 'type' | 'chunks'>): DnsRecord {
  const whole: DnsRecord = { type: 'TXT', ...record };
  if (Buffer.byteLength(record.value) <= MAX_TXT_STRING) return whole;
  return { ...whole, chunks: txtStrings(record.value).map((string) => string.toString()) };
}
