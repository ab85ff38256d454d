import { toAnswer, txtStrings, type ZoneRecord } from './zone-record.ts';

/**
 * Records as a zone file (RFC 1035 §5.1), in the order given, one a line, every name absolute, so that a line
 * can be pasted into any zone of any server.
 */
export function toZoneFile(records: readonly ZoneRecord[]): string {
  return records.map((record) => `${line(record)}\n`).join('');
}

/** Throws at a malformed record: half a zone file helps nobody, and a line break in a value would forge a line. */
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
      return record.value; // A, AAAA: checked addresses
  }
}

/** Labels may hold what a zone file gives a meaning to (RFC 1035 §5.1: `\X`). */
function absolute(name: string): string {
  return name === '.' ? name : `${name.replace(/["$();@\\]/g, '\\$&')}.`;
}

/** A character string: `\"`, `\\`, and `\DDD` for every byte that is not printable ASCII. */
function quoted(bytes: Buffer): string {
  const text = [...bytes].map((byte) => {
    if (byte === 0x22 || byte === 0x5c) return `\\${String.fromCharCode(byte)}`;
    return byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : `\\${String(byte).padStart(3, '0')}`;
  });
  return `"${text.join('')}"`;
}
