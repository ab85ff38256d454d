import { normalizeAddress } from '../../dns/address-kinds.ts';
import { addressesOf, type DnsView, type LookupResult } from '../../dns/dns-view.ts';
import type { ZoneRecord } from '../../dns/zone-record.ts';
import { platformZone } from '../../domains/platform/platform-zone.ts';
import type { DoctorContext } from '../context.ts';
import { failure, ok, quoted, type Result, unknown, warning, zoneLines } from '../finding.ts';

/** The records of one name and type. */
interface RecordSet {
  name: string;
  type: ZoneRecord['type'];
  expected: ZoneRecord[];
  found: LookupResult<string>;
  /** For an expected CNAME: whether the name has an address of the target, such as by an A record. */
  leadsToTarget: boolean;
}

/** Replaces the wildcard of a name in lookups. */
const SAMPLE_LABEL = 'doctor-example.com';

/**
 * One result for each name and type. A missing record is a failure, a missing wildcard a warning. Keys that were not
 * examined are one unknown result.
 */
export async function examinePlatformZone({ view, platform, state }: DoctorContext): Promise<Result[]> {
  const { zoneKeys, zoneKeyCount } = await state();
  // Reverse DNS has its own check.
  const records = (await platformZone(view, platform, zoneKeys)).filter(({ type }) => type !== 'PTR');
  const sets = groupByName(records).values();
  const results = await Promise.all(
    Array.from(sets, async ([first, ...others]): Promise<Result[]> => {
      if (first === undefined) return [];
      const { name, type, value } = first;
      const asked = name.replace(/^\*/, SAMPLE_LABEL);
      const found = await lookUp(view, asked, type);
      const leadsToTarget = type === 'CNAME' && (await shareAddress(view, asked, value));
      const set = { name, type, expected: [first, ...others], found, leadsToTarget };
      return [judgeSet(set, platform.hostname)];
    }),
  );
  const omitted = zoneKeyCount - zoneKeys.length;
  if (omitted > 0)
    results.push([
      unknown('further DKIM keys', `${omitted} keys of secondary lanes were not examined.`, 'postrider zone'),
    ]);
  return results.flat();
}

function groupByName(records: readonly ZoneRecord[]): Map<string, ZoneRecord[]> {
  const grouped = new Map<string, ZoneRecord[]>();
  for (const record of records) {
    const key = `${record.type} ${record.name}`;
    grouped.set(key, [...(grouped.get(key) ?? []), record]);
  }
  return grouped;
}

async function lookUp(view: DnsView, name: string, type: ZoneRecord['type']): Promise<LookupResult<string>> {
  switch (type) {
    case 'A':
      return view.a(name);
    case 'AAAA':
      return view.aaaa(name);
    case 'CNAME':
      return view.cname(name);
    case 'TXT':
      return view.txt(name);
    case 'MX': {
      const found = await view.mx(name);
      if (found.kind !== 'records') return found;
      const sorted = found.records.toSorted((one, two) => one.preference - two.preference);
      return {
        kind: 'records',
        records: sorted.map(({ preference, exchange }) => `${preference} ${exchange}`),
      };
    }
    default:
      throw new Error(`the platform's zone has no ${type} records`);
  }
}

async function shareAddress(view: DnsView, name: string, target: string): Promise<boolean> {
  const [own, others] = await Promise.all([addressesOf(view, name), addressesOf(view, target)]);
  if (own.kind !== 'records' || others.kind !== 'records') return false;
  return own.records.some((address) => others.records.includes(address));
}

function judgeSet(set: RecordSet, hostname: string): Result {
  const { name, type, expected, found, leadsToTarget } = set;
  const subject = `${type} ${name}`;
  const fix = zoneLines(expected);
  if (found.kind === 'unknown') return unknown(subject, `It could not be looked up: ${found.reason}.`);
  const wanted = expected.map(({ value, priority }) =>
    priority === undefined ? value : `${priority} ${value}`,
  );
  const values = found.kind === 'records' ? found.records : [];
  const shown = values.map((value) => quoted(value)).join(' | ');
  if (type === 'CNAME' && leadsToTarget) return ok(subject, 'Resolves to the expected host.');
  if (found.kind === 'absent') {
    const reason = `There is no ${type} record; expected: ${wanted.map((value) => quoted(value)).join(' | ')}`;
    return (name.startsWith('*') ? warning : failure)(subject, reason, fix);
  }
  const judgment = JUDGES[kindOf(set)](values, wanted, hostname);
  if (judgment === null) return ok(subject, 'As expected.');
  const reason = `${judgment.problem} Found: ${shown}. Expected: ${wanted.map((value) => quoted(value)).join(' | ')}`;
  return (judgment.isWarning ? warning : failure)(subject, reason, fix);
}

type Kind = 'address' | 'alias' | 'mx' | 'spf' | 'dkim' | 'text';

function kindOf({ type, expected }: RecordSet): Kind {
  if (type === 'A' || type === 'AAAA') return 'address';
  if (type === 'CNAME') return 'alias';
  if (type === 'MX') return 'mx';
  const [first] = expected;
  if (first?.value.startsWith('v=spf1') === true) return 'spf';
  return first?.value.startsWith('v=DKIM1') === true ? 'dkim' : 'text';
}

/** Null: the records found match the expected ones. */
type Judge = (
  found: readonly string[],
  wanted: readonly string[],
  hostname: string,
) => { problem: string; isWarning?: boolean } | null;

const JUDGES: Record<Kind, Judge> = {
  address: (found, wanted) => {
    const addresses = found.map(normalizeAddress);
    if (!wanted.every((address) => addresses.includes(normalizeAddress(address))))
      return { problem: 'An address is missing.' };
    return found.length > wanted.length ? { problem: 'It has additional addresses.', isWarning: true } : null;
  },
  alias: (found, wanted) =>
    wanted.every((target) => found.includes(target)) ? null : { problem: 'It leads elsewhere.' },
  mx: (found, _wanted, hostname) => {
    const exchanges = found.map((value) => value.split(' ')[1]);
    if (!exchanges.includes(hostname))
      return { problem: 'Mail to the platform goes elsewhere: bounces do not arrive.' };
    return exchanges[0] === hostname
      ? null
      : { problem: 'Another host is preferred: bounces that it receives do not arrive.', isWarning: true };
  },
  spf: (found, [wanted = '']) => {
    const records = found.filter((value) => /^v=spf1(?: |$)/i.test(value));
    if (records.length === 0) return { problem: 'There is no SPF record among its TXT records.' };
    if (records.length > 1) return { problem: 'Several SPF records are an error (RFC 7208 §4.5).' };
    const terms = new Set(records[0]?.toLowerCase().split(/\s+/));
    const missing = wanted
      .split(' ')
      .filter((term) => !/^[~?+-]all$/.test(term) && !terms.has(term.toLowerCase()));
    return missing.length === 0 ? null : { problem: `It lacks ${missing.join(' ')}.` };
  },
  dkim: (found, [wanted = '']) => {
    if (found.some((value) => keyOf(value) === keyOf(wanted))) return null;
    return { problem: 'It has another key, so signatures of the secondary lane are invalid.' };
  },
  text: (found, wanted) =>
    wanted.every((value) => found.some((each) => each.startsWith(value)))
      ? null
      : { problem: 'The record is missing among its TXT records.', isWarning: true },
};

function keyOf(record: string): string | undefined {
  return /(?:^|;)\s*p\s*=([^;]*)/.exec(record)?.[1]?.replaceAll(/\s/g, '');
}
