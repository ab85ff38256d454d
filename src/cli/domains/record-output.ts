import { InvalidArgumentError } from 'commander';
import { toZoneFile } from '../../dns/zone-file.ts';
import type { ZoneRecord } from '../../dns/zone-record.ts';
import type { DnsRecord } from '../../domains/dns-record.ts';
import { IN_PROGRESS } from '../../domains/verification/checks/dkim.ts';

/** Output format of DNS records: zone file, JSON, or text with each value on a separate line. */
export type RecordFormat = 'bind' | 'json' | 'table';

const FORMATS: readonly RecordFormat[] = ['bind', 'json', 'table'];

/** Parses `--format`. Throws InvalidArgumentError. */
export function recordFormat(text: string): RecordFormat {
  const format = FORMATS.find((name) => name === text);
  if (format === undefined) throw new InvalidArgumentError(`Must be one of ${FORMATS.join(', ')}`);
  return format;
}

const DEFAULT_TTL = 3600;

/** The platform's zone as a zone file. Reverse records, which belong to other zones, and notes are comments. */
export function platformZoneFile(records: readonly ZoneRecord[], notes: readonly string[]): string {
  const forward = records.filter(({ type }) => type !== 'PTR');
  const reverse = records.filter(({ type }) => type === 'PTR');
  return [...notes.map(comment), toZoneFile(forward).trimEnd(), ...commentedOut(reverse)].join('\n');
}

/**
 * The platform's zone as text: the notes, then the records, with values on separate lines so that they can be copied.
 */
export function platformZoneTable(records: readonly ZoneRecord[], notes: readonly string[]): string {
  return [...notes, ...records.flatMap((record) => block(record))].join('\n');
}

interface RecordSets {
  dnsRecords: readonly DnsRecord[];
  recommendedDnsRecords: readonly DnsRecord[];
}

/** Records of a domain as a zone file. Records without a value yet are comments. */
export function domainZoneFile({ dnsRecords, recommendedDnsRecords }: RecordSets): string {
  const lines = [comment('Required')];
  for (const record of dnsRecords) {
    lines.push(comment(record.description));
    if (isPlaceholder(record)) lines.push(comment(notReady(record)));
    else lines.push(toZoneFile([zoneRecord(record)]).trimEnd());
  }
  lines.push('', comment('Recommended'));
  for (const record of recommendedDnsRecords) {
    lines.push(comment(record.description), toZoneFile([zoneRecord(record)]).trimEnd());
  }
  return lines.join('\n');
}

/** Records of a domain as text, with values on separate lines, so that they can be copied. */
export function domainRecordTable({ dnsRecords, recommendedDnsRecords }: RecordSets): string {
  const published = (record: DnsRecord) => (isPlaceholder(record) ? ['', notReady(record)] : block(record));
  return [
    'Records that are required for sending',
    ...dnsRecords.filter((record) => !isOfFeature(record)).flatMap(published),
    '',
    'Records of features: tracked links, secondary lane',
    ...dnsRecords.filter(isOfFeature).flatMap(published),
    '',
    'Recommended records',
    ...recommendedDnsRecords.flatMap(block),
  ].join('\n');
}

function block(record: ZoneRecord | DnsRecord): string[] {
  const { type, name, value, priority } = record;
  const lines = [
    '',
    `${type.padEnd(6)} ${name}`,
    `       ${priority === undefined ? value : `${priority} ${value}`}`,
  ];
  return 'description' in record ? [...lines, `       (${record.description})`] : lines;
}

function isPlaceholder({ value }: DnsRecord): boolean {
  return value === IN_PROGRESS;
}

function notReady({ type, name }: DnsRecord): string {
  return `${type} ${name}: the value is being created; print the records again in a minute`;
}

/** Whether mail is sent without the record: its feature alone needs it. */
function isOfFeature({ purpose }: DnsRecord): boolean {
  return purpose === 'Tracking' || purpose === 'Secondary DKIM';
}

function zoneRecord({ type, name, value, priority, ttl = DEFAULT_TTL }: DnsRecord): ZoneRecord {
  return { type, name, value, ttl, ...(priority === undefined ? {} : { priority }) };
}

function commentedOut(records: readonly ZoneRecord[]): string[] {
  return records.map((record) => comment(toZoneFile([record]).trimEnd()));
}

function comment(text: string): string {
  return `; ${text}`;
}
