import type { IncomingLimits } from '../limits.ts';
import { readXml, type XmlElement } from './xml.ts';

/**
 * Parses DMARC aggregate reports (RFC 9990, and the older form of RFC 7489), one record at a time. Generated XML is often
 * malformed: unknown elements are skipped, and missing values are empty.
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
  records: AggregateRecord[];
  /** True when records were omitted because of a limit. */
  isTruncated: boolean;
}

export interface AggregateRecord {
  sourceIp: string;
  count: number;
  /** none, quarantine, reject; also `pass` in RFC 9990. */
  disposition: string;
  dkim: string;
  spf: string;
  /** Why the receiver did not apply the policy: `forwarded`, `local_policy: text`, ... */
  overrides: string[];
  headerFrom: string;
  envelopeFrom: string;
  dkimResults: { domain: string; selector: string; result: string }[];
  spfResults: { domain: string; result: string }[];
}

/** Null when the text is not an aggregate report, or has neither metadata nor records. */
export function readAggregateReport(
  xml: string,
  limits: IncomingLimits,
): AggregateReport | 'too-large' | null {
  if (!/<(?:\w{1,20}:)?feedback[\s>]/.test(xml.slice(0, 10_000))) return null;
  const records: AggregateRecord[] = [];
  const document = readXml(xml, limits, (element) => {
    if (element.name !== 'record') return false;
    if (records.length >= limits.records) return 'stop';
    records.push(readRecord(element));
    return true;
  });
  if (!document.isComplete && records.length === 0) return 'too-large';
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
    records,
    isTruncated: !document.isComplete,
  };
  return report.reportId === '' && report.domain === '' && records.length === 0 ? null : report;
}

function readRecord(record: XmlElement): AggregateRecord {
  const row = child(record, 'row');
  const evaluated = child(row, 'policy_evaluated');
  const identifiers = child(record, 'identifiers') ?? child(record, 'identities');
  const results = child(record, 'auth_results');
  const count = Number.parseInt(value(row, 'count'), 10);
  return {
    sourceIp: value(row, 'source_ip'),
    count: Number.isSafeInteger(count) && count > 0 ? count : 0,
    disposition: value(evaluated, 'disposition').toLowerCase(),
    dkim: value(evaluated, 'dkim').toLowerCase(),
    spf: value(evaluated, 'spf').toLowerCase(),
    overrides: all(evaluated, 'reason')
      .map((reason) =>
        [value(reason, 'type'), value(reason, 'comment')].filter((each) => each !== '').join(': '),
      )
      .filter((override) => override !== ''),
    headerFrom: value(identifiers, 'header_from').toLowerCase(),
    envelopeFrom: value(identifiers, 'envelope_from').toLowerCase(),
    dkimResults: all(results, 'dkim').map((dkim) => ({
      domain: value(dkim, 'domain').toLowerCase(),
      selector: value(dkim, 'selector'),
      result: value(dkim, 'result').toLowerCase(),
    })),
    spfResults: all(results, 'spf').map((spf) => ({
      domain: value(spf, 'domain').toLowerCase(),
      result: value(spf, 'result').toLowerCase(),
    })),
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

function all(parent: XmlElement | undefined, name: string): XmlElement[] {
  return parent?.children.filter((each) => each.name === name).slice(0, 20) ?? [];
}

function value(parent: XmlElement | undefined, name: string): string {
  return child(parent, name)?.text.replaceAll(/\s+/g, ' ').trim().slice(0, 500) ?? '';
}

function seconds(text: string): number {
  const count = Number.parseInt(text, 10);
  return Number.isSafeInteger(count) && count > 0 && count < 1e11 ? count * 1000 : 0;
}
