import { isIPv4, isIPv6 } from 'node:net';
import type { Answer } from 'dns-packet';
import { canonicalName } from './names.ts';

/**
 * A resource record as in the API, and its encoding. The value has the text form of a zone file, except that a TXT value
 * is one text without quotes, and that an MX record may have its preference in `priority`.
 */
export interface ZoneRecord {
  /** Name of the record, with or without trailing dot, any case. */
  name: string;
  type: ZoneRecordType;
  value: string;
  /** Seconds. */
  ttl: number;
  priority?: number;
}

export type ZoneRecordType = 'A' | 'AAAA' | 'MX' | 'TXT' | 'CNAME' | 'NS' | 'SOA' | 'TLSA' | 'PTR' | 'CAA';

/** Bytes (RFC 1035 §3.3). */
const MAX_TXT_STRING = 255;

/** The record for dns-packet. Throws an Error with the record when it is malformed. */
export function toAnswer(record: ZoneRecord): Answer {
  const name = nameIn(record, record.name);
  const { type } = record;
  const ttl = numberIn(record, record.ttl, 0x7fff_ffff);
  const fields = record.value.trim().split(/\s+/);
  switch (type) {
    case 'A':
    case 'AAAA':
      if (!(type === 'A' ? isIPv4 : isIPv6)(record.value)) throw malformed(record);
      return { name, type, ttl, data: record.value };
    case 'CNAME':
    case 'NS':
    case 'PTR':
      return { name, type, ttl, data: nameIn(record, record.value) };
    case 'TXT':
      return { name, type, ttl, data: txtStrings(record.value) };
    case 'MX': {
      const [exchange = '', preference = record.priority, ...more] = fields.toReversed();
      if (more.length > 0) throw malformed(record);
      return {
        name,
        type,
        ttl,
        data: { preference: numberIn(record, preference, 0xffff), exchange: nameIn(record, exchange) },
      };
    }
    case 'SOA': {
      const [mname = '', rname = '', ...times] = fields;
      const [serial, refresh, retry, expire, minimum] = times.map((field) => numberIn(record, field));
      if (times.length !== 5) throw malformed(record);
      const data = { mname: nameIn(record, mname), rname: nameIn(record, rname) };
      return { name, type, ttl, data: { ...data, serial, refresh, retry, expire, minimum } };
    }
    case 'TLSA': {
      const [usage, selector, matchingType, ...hex] = fields;
      if (!/^([\da-f]{2})+$/i.test(hex.join(''))) throw malformed(record);
      const data = {
        usage: numberIn(record, usage, 0xff),
        selector: numberIn(record, selector, 0xff),
        matchingType: numberIn(record, matchingType, 0xff),
        certificate: Buffer.from(hex.join(''), 'hex'),
      };
      return { name, type, ttl, data };
    }
    case 'CAA': {
      // Not linear: the operator writes the record.
      const match = /^(\d+)\s+(issue|issuewild|iodef)\s+"?([^"]*)"?$/i.exec(record.value.trim());
      if (!match) throw malformed(record);
      const tag = match[2]?.toLowerCase() as 'issue' | 'issuewild' | 'iodef'; // the alternatives of the expression
      return {
        name,
        type,
        ttl,
        data: { flags: numberIn(record, match[1], 0xff), tag, value: match[3] ?? '' },
      };
    }
    default:
      throw malformed(record);
  }
}

/** Splits a TXT value into the strings of its record; at least one, which may be empty. */
export function txtStrings(value: string): Buffer[] {
  const bytes = Buffer.from(value);
  const strings = [bytes.subarray(0, MAX_TXT_STRING)];
  for (let at = MAX_TXT_STRING; at < bytes.length; at += MAX_TXT_STRING)
    strings.push(bytes.subarray(at, at + MAX_TXT_STRING));
  return strings;
}

function nameIn(record: ZoneRecord, text: string): string {
  const name = canonicalName(text);
  if (name === null) throw malformed(record);
  return name;
}

function numberIn(record: ZoneRecord, text: string | number | undefined, max = 0xffff_ffff): number {
  const number = /^\d+$/.test(String(text)) ? Number(text) : Number.NaN;
  if (!(number <= max)) throw malformed(record);
  return number;
}

function malformed({ type, name, value }: ZoneRecord): Error {
  return new Error(`malformed ${type} record at ${name}: ${JSON.stringify(value)}`);
}
