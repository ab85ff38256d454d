import { isIP } from 'node:net';
import type { IncomingLimits } from '../limits.ts';
import { createSums } from './sums.ts';
import { readXml, type XmlElement } from './xml.ts';

/**
 * Parses DMARC aggregate reports (RFC 9990, and the older form of RFC 7489), one record at a time. Generated XML is often
 * malformed: unknown elements are skipped, and missing values are empty. Records are summed while they are read, and only
 * what is stored is returned: a report of 50 KB can have 10,000 records, and the result is copied between threads.
 */
export interface AggregateReport {
  organization: string;
  email: string;
  reportId: string;
  /** Epoch ms; 0 when missing. */
  begin: number;
  end: number;
  /** The domain whose policy was applied. */
  domain: string;
  policy: { p: string; sp: string; np: string; adkim: string; aspf: string; testing: string };
  /** At most `reportRows`, those with the most messages first. */
  sources: AggregateSource[];
  /** True when records or sources were omitted because of a limit. */
  isTruncated: boolean;
}

/** The sum of the records that differ in their counts only. */
export interface AggregateSource {
  /** `unknown` if it is not an IP address. */
  sourceIp: string;
  /** Messages. */
  count: number;
  /** none, quarantine, reject; also `pass` in RFC 9990. */
  disposition: string;
  dkim: string;
  spf: string;
  headerFrom: string;
}

/** Null when the text is not an aggregate report, or has neither metadata nor records. */
export function readAggregateReport(
  xml: string,
  limits: IncomingLimits,
): AggregateReport | 'too-large' | null {
  // Some generators write the schema in front of the report.
  if (!/<(?:\w{1,20}:)?feedback[\s>]/.test(xml)) return null;
  const sources = createSums<AggregateSource>();
  let records = 0;
  const document = readXml(xml, limits, (element) => {
    if (element.name !== 'record') return false;
    if (records >= limits.records) return 'stop';
    records++;
    sources.add(readRecord(element));
    return true;
  });
  if (!document.isComplete && records === 0) return 'too-large';
  const root = descendant(document.root, 'feedback') ?? document.root;
  const metadata = child(root, 'report_metadata');
  const range = child(metadata, 'date_range');
  const policy = child(root, 'policy_published');
  const report: AggregateReport = {
    organization: value(metadata, 'org_name'),
    email: value(metadata, 'email'),
    reportId: value(metadata, 'report_id'),
    begin: seconds(value(range, 'begin')),
    end: seconds(value(range, 'end')),
    domain: value(policy, 'domain').toLowerCase().replace(/\.$/, ''),
    policy: {
      p: value(policy, 'p'),
      sp: value(policy, 'sp'),
      np: value(policy, 'np'),
      adkim: value(policy, 'adkim'),
      aspf: value(policy, 'aspf'),
      testing: value(policy, 'testing'),
    },
    sources: sources.highest(limits.reportRows),
    isTruncated: !document.isComplete || sources.size() > limits.reportRows,
  };
  return report.reportId === '' && report.domain === '' && records === 0 ? null : report;
}

function readRecord(record: XmlElement): AggregateSource {
  const row = child(record, 'row');
  const evaluated = child(row, 'policy_evaluated');
  const identifiers = child(record, 'identifiers') ?? child(record, 'identities');
  const count = Number.parseInt(value(row, 'count'), 10);
  const sourceIp = value(row, 'source_ip');
  return {
    sourceIp: isIP(sourceIp) === 0 ? 'unknown' : sourceIp,
    count: Number.isSafeInteger(count) && count > 0 ? count : 0,
    disposition: value(evaluated, 'disposition').toLowerCase(),
    dkim: value(evaluated, 'dkim').toLowerCase(),
    spf: value(evaluated, 'spf').toLowerCase(),
    headerFrom: value(identifiers, 'header_from').toLowerCase(),
  };
}

function child(parent: XmlElement | undefined, name: string): XmlElement | undefined {
  return parent?.children.find((each) => each.name === name);
}

/** The first element of this name at any depth: some generators wrap the report in another element. */
function descendant(parent: XmlElement, name: string): XmlElement | undefined {
  const direct = child(parent, name);
  if (direct !== undefined) return direct;
  for (const each of parent.children) {
    const found = descendant(each, name);
    if (found !== undefined) return found;
  }
  return undefined;
}

function value(parent: XmlElement | undefined, name: string): string {
  return child(parent, name)?.text.replaceAll(/\s+/g, ' ').trim().slice(0, 500) ?? '';
}

function seconds(text: string): number {
  const count = Number.parseInt(text, 10);
  return Number.isSafeInteger(count) && count > 0 && count < 1e11 ? count * 1000 : 0;
}
