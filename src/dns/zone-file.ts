import { toAnswer, txtStrings, type ZoneRecord } from './zone-record.ts';

/**
 * Formats records as a zone file (RFC 1035 §5.1), one per line in the given order. All names are absolute, so that a
 * line is valid in any zone.
 */
export function toZoneFile(records: readonly ZoneRecord[]): string {
  return records.map((record) => `${line(record)}\n`).join('');
}

/** Throws for a malformed record: a line break in a value would add a line. */
function line(record: ZoneRecord): string {
  const answer = toAnswer(record);
  return [absolute(answer.name), record.ttl, 'IN', record.type, data(record, answer)].join('\t');
}

function data(record: ZoneRecord, answer: ReturnType<typeof toAnswer>): string {
  switch (answer.type) {
    case 'CNAME':
    case 'NS':
    case 'PTR':
      return absolute(answer.data);
    case 'MX':
      return `${answer.data.preference} ${absolute(answer.data.exchange)}`;
    case 'SOA': {
      const { mname, rname, serial, refresh, retry, expire, minimum } = answer.data;
      return [absolute(mname), absolute(rname), serial, refresh, retry, expire, minimum].join(' ');
    }
    case 'TLSA': {
      const { usage, selector, matchingType, certificate } = answer.data;
      return `${usage} ${selector} ${matchingType} ${certificate.toString('hex')}`;
    }
    case 'TXT':
      return txtStrings(record.value).map(quoted).join(' ');
    case 'CAA':
      return `${answer.data.flags} ${answer.data.tag} ${quoted(Buffer.from(answer.data.value))}`;
    default:
      return record.value; // A, AAAA: validated addresses
  }
}

/** Escapes the special characters of zone files (RFC 1035 §5.1: `\X`). */
function absolute(name: string): string {
  return name === '.' ? name : `${name.replace(/["$();@\\]/g, '\\$&')}.`;
}

/** A character string: `\"`, `\\`, and `\DDD` for each byte that is not printable ASCII. */
function quoted(bytes: Buffer): string {
  const text = [...bytes].map((byte) => {
    if (byte === 0x22 || byte === 0x5c) return `\\${String.fromCharCode(byte)}`;
    return byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : `\\${String(byte).padStart(3, '0')}`;
  });
  return `"${text.join('')}"`;
}
