import {
  type AuthoritativeData,
  encodeResponse,
  readDnsQuery,
  sectionsOf,
} from '../../src/dns/authoritative.ts';

/** The response of a name server to a message; null: none. */
export function respondTo(query: Buffer, via: 'udp' | 'tcp', data: AuthoritativeData): Buffer | null {
  const parsed = readDnsQuery(query);
  if (parsed === null || Buffer.isBuffer(parsed)) return parsed;
  return encodeResponse(parsed, via, sectionsOf(parsed, data));
}
