import type { DnsView, LookupResult } from '../../dns/dns-view.ts';
import type { DomainRow } from '../../store/domains/domains.ts';
import type { Tables } from '../../store/tables.ts';
import type { DnsRecord, RecordContext } from '../dns-record.ts';
import type { DomainRecords } from '../records.ts';
import { CHECK_NAMES, checkOf, type ReportedCheck } from './checks.ts';
import type { CheckReport } from './status.ts';

/*
 * What a verification found for each record of a domain, as it is stored: so that the records can be shown next to it
 * without another check. Records that no check looks up are looked up only by requested verifications.
 */

export interface RecordResult {
  /** Type, name and value of the record (`recordKey`): the result of another key or host does not apply to it. */
  record: string;
  check: ReportedCheck | null;
  result: CheckReport['result'];
  expected: string;
  found: string | null;
  hint: string;
}

/** Characters of each text: a name may have 64 KiB of records. */
const MAX_TEXT = 4000;
const MAX_RESULTS = 50;

/** What a result belongs to. */
export function recordKey({ type, name, value }: Pick<DnsRecord, 'type' | 'name' | 'value'>): string {
  return `${type} ${name} ${value}`;
}

/** The results of the checks that look up a record, limited to what is stored. */
export function checkedRecords(context: RecordContext, reports: readonly CheckReport[]): RecordResult[] {
  return reports.flatMap((report) => {
    const { record } = checkOf(report.check);
    return record === null ? [] : [limited({ record: recordKey(record.build(context)), ...report })];
  });
}

/** Looks up records that no check looks up. */
export function lookUpRecords(view: DnsView, records: readonly DnsRecord[]): Promise<RecordResult[]> {
  return Promise.all(
    records.slice(0, MAX_RESULTS).map(async (record) => {
      const { type, name, value } = record;
      const answer = await (type === 'TXT'
        ? view.txt(name)
        : type === 'MX'
          ? hostsOf(view, name)
          : view.cname(name));
      return limited({ record: recordKey(record), check: null, expected: value, ...judge(record, answer) });
    }),
  );
}

/** The hosts of the MX records, the preferred one first. */
async function hostsOf(view: DnsView, name: string): Promise<LookupResult<string>> {
  const answer = await view.mx(name);
  if (answer.kind !== 'records') return answer;
  const sorted = answer.records.toSorted((one, two) => one.preference - two.preference);
  return { kind: 'records', records: sorted.map(({ exchange }) => exchange) };
}

function judge(
  record: DnsRecord,
  answer: LookupResult<string>,
): Pick<RecordResult, 'result' | 'found' | 'hint'> {
  const { type, name } = record;
  if (answer.kind === 'unknown')
    return { result: 'unknown', found: null, hint: `No result: ${answer.reason}.` };
  if (answer.kind === 'absent')
    return { result: 'missing', found: null, hint: `There is no ${type} record at ${name}.` };
  const found = answer.records.join('\n');
  return answer.records.some((each) => fulfills(each, record))
    ? { result: 'ok', found, hint: '' }
    : { result: 'wrong', found, hint: `The ${type} record at ${name} has another value.` };
}

/**
 * Whether a published value serves the purpose of the recommended one. The tags of TLS-RPT and MTA-STS records are the
 * owner's choice; their version is not.
 */
function fulfills(found: string, { type, value, purpose }: DnsRecord): boolean {
  if (type !== 'TXT') return found.toLowerCase() === value.toLowerCase();
  const plain = (text: string) => text.replaceAll(/\s/g, '').replace(/;$/, '');
  if (plain(found) === plain(value)) return true;
  const [version = ''] = plain(value).split(';');
  return purpose !== 'Previous DKIM key' && plain(found).split(';')[0] === version;
}

/** Records that no check looks up. */
export function uncheckedRecords(context: RecordContext, records: readonly DnsRecord[]): DnsRecord[] {
  const checked = new Set(
    CHECK_NAMES.flatMap((name) => {
      const { record } = checkOf(name);
      return record === null ? [] : [recordKey(record.build(context))];
    }),
  );
  return records.filter((record) => !checked.has(recordKey(record)));
}

/**
 * The results to store: those of the checks, and those of the other records. A scheduled verification (`others` is null)
 * keeps the latter from the `last` results, if the domain still has the record.
 */
export function mergedResults(
  checked: readonly RecordResult[],
  others: readonly RecordResult[] | null,
  { last, records }: { last: readonly RecordResult[]; records: readonly DnsRecord[] },
): RecordResult[] {
  const keys = new Set(records.map(recordKey));
  const kept = others ?? last.filter(({ check, record }) => check === null && keys.has(record));
  return [...checked, ...kept].slice(0, MAX_RESULTS);
}

/** The results of the last verification; empty before the first one. */
export function storedResults(tables: Tables, domainId: string): RecordResult[] {
  // Sound: only verifications write it.
  return JSON.parse(tables.domainChecks.get(domainId) ?? '[]') as RecordResult[];
}

/** A record with what the last check found. */
export interface CheckedRecord extends DnsRecord {
  isRequired: boolean;
  /** Null: not looked up yet. */
  lastResult: Omit<RecordResult, 'record'> | null;
}

export interface LastCheck {
  checkedAt: number | null;
  records: CheckedRecord[];
}

/** The records of a domain with their results; a result of an earlier key or host is omitted. */
export function lastCheckOf(
  { last_checked_at: checkedAt }: DomainRow,
  { dnsRecords, recommendedDnsRecords }: DomainRecords,
  results: readonly RecordResult[],
): LastCheck {
  const byKey = new Map(results.map(({ record, ...result }) => [record, result]));
  const checked = (isRequired: boolean) => (record: DnsRecord) => ({
    ...record,
    isRequired,
    lastResult: byKey.get(recordKey(record)) ?? null,
  });
  return {
    checkedAt,
    records: [...dnsRecords.map(checked(true)), ...recommendedDnsRecords.map(checked(false))],
  };
}

function limited({ record, check, result, expected, found, hint }: RecordResult): RecordResult {
  const text = (value: string) => value.slice(0, MAX_TEXT);
  return {
    record,
    check,
    result,
    expected: text(expected),
    found: found === null ? null : text(found),
    hint: text(hint),
  };
}
