import { isIP } from 'node:net';
import { Tokenizer } from 'htmlparser2';
import type { IncomingLimits } from '../limits.ts';
import { createSums } from './sums.ts';

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

/**
 * Reads XML that may be malformed, as report generators send it. An element without an end tag ends with its parent;
 * an element nested too deep is skipped. No entities except the predefined ones and character references, and
 * nothing is fetched. Reading stops at the limits on the number of tags and on the length of a tag.
 *
 * Uses the tokenizer of htmlparser2 without its parser, whose stack of open elements has no bound and takes quadratic
 * time.
 */
interface XmlElement {
  /** Lower case, without namespace prefix. */
  name: string;
  text: string;
  children: XmlElement[];
}

const MAX_DEPTH = 20;
const MAX_TEXT_LENGTH = 2000;
const MAX_CHILDREN = 1000;
const MAX_NAME_LENGTH = 80;

type XmlLimits = Pick<IncomingLimits, 'xmlTags' | 'xmlTagChars'>;

interface XmlDocument {
  /** The tree below a root without a name. */
  root: XmlElement;
  /** False when a limit or `visit` stopped reading. */
  isComplete: boolean;
}

/**
 * Calls `visit` for each element with content when it ends. `true` removes the element from the tree, so that a report
 * of many records is read without holding it in memory; 'stop' ends reading.
 */
function readXml(
  xml: string,
  { xmlTags, xmlTagChars }: XmlLimits,
  visit: (element: XmlElement) => boolean | 'stop',
): XmlDocument {
  const root: XmlElement = { name: '', text: '', children: [] };
  const open: XmlElement[] = [root];
  /** Open elements below MAX_DEPTH. */
  let skippedDepth = 0;
  let tags = 0;
  let isComplete = true;
  let name = '';
  let tagStart = 0;

  const stop = () => {
    isComplete = false;
    tokenizer.pause();
  };
  /** Counts a tag, comment or section of `length` characters; false when it exceeds a limit. */
  const isWithinLimits = (length: number): boolean => {
    if (++tags <= xmlTags && length <= xmlTagChars) return true;
    stop();
    return false;
  };
  const countSection = () => void isWithinLimits(0);

  const addText = (text: string) => {
    const element = open.at(-1) ?? root;
    if (skippedDepth === 0 && element.text.length < MAX_TEXT_LENGTH) {
      element.text += text.slice(0, MAX_TEXT_LENGTH);
    }
  };
  const addChild = (element: XmlElement) => {
    const { children } = open.at(-1) ?? root;
    if (children.length < MAX_CHILDREN) children.push(element);
  };
  const endElement = (): string => {
    const ended = open.pop() ?? root;
    const visited = visit(ended);
    if (visited === 'stop') stop();
    if (visited === false) addChild(ended);
    return ended.name;
  };
  const endElementsUpTo = (endTag: string) => {
    if (skippedDepth > 0) skippedDepth--;
    else if (open.some((element) => element.name === endTag)) {
      while (open.length > 1 && endElement() !== endTag);
    }
  };
  const startElement = () => {
    if (open.length < MAX_DEPTH) open.push({ name, text: '', children: [] });
    else skippedDepth++;
  };

  const tokenizer = new Tokenizer(
    { xmlMode: true },
    {
      onopentagname: (start, end) => {
        tagStart = start;
        name = localName(xml, start, end);
      },
      onopentagend: (end) => {
        if (isWithinLimits(end - tagStart)) startElement();
      },
      onselfclosingtag: (end) => {
        if (isWithinLimits(end - tagStart) && skippedDepth === 0) addChild({ name, text: '', children: [] });
      },
      onclosetag: (start, end) => {
        if (isWithinLimits(end - start)) endElementsUpTo(localName(xml, start, end));
      },
      ontext: (start, end) => addText(xml.slice(start, Math.min(end, start + MAX_TEXT_LENGTH))),
      ontextentity: (codePoint) => addText(String.fromCodePoint(codePoint)),
      oncdata: (start, end, endLength) => {
        countSection();
        addText(xml.slice(start, Math.min(end - endLength, start + MAX_TEXT_LENGTH)));
      },
      oncomment: countSection,
      ondeclaration: countSection,
      onprocessinginstruction: countSection,
      onattribname: ignore,
      onattribdata: ignore,
      onattribentity: ignore,
      onattribend: ignore,
      onend: ignore,
    },
  );
  tokenizer.write(xml);
  tokenizer.end();
  while (open.length > 1) endElement();
  return { root, isComplete };
}

function ignore(): void {}

function localName(xml: string, start: number, end: number): string {
  const name = xml.slice(start, Math.min(end, start + MAX_NAME_LENGTH));
  return name.slice(name.indexOf(':') + 1).toLowerCase();
}
