import type { DnsView } from '../../../dns/dns-view.ts';

/*
 * DMARC policy records: parsing (RFC 9989 §4.7), discovery of the policy of a domain (§4.10), and adding our report
 * address to an existing record.
 */

export type Policy = 'none' | 'quarantine' | 'reject';

export interface DmarcRecord {
  /** The text of the record as published. */
  text: string;
  /** Tag names in lower case, values as published, in order. */
  tags: Map<string, string>;
}

export interface DiscoveredPolicy {
  record: DmarcRecord;
  /** The domain whose `_dmarc` name has the record. */
  at: string;
  /** The policy for mail from the domain in question. */
  policy: Policy;
  /** The tag with that policy. */
  tag: 'p' | 'sp' | 'np';
}

export interface Discovery {
  found: DiscoveredPolicy | null;
  /** All DMARC records at the domain's own `_dmarc` name, as published. */
  own: string[];
  /** A sentence on records that receivers ignore because a name has several; null: none. */
  fault: string | null;
  /** Why the policy is not known; null when it is. */
  unknown: string | null;
}

/** From an author domain of eight labels or more the walk continues at seven (RFC 9989 §4.10 step 4). */
const MAX_LABELS = 7;

/** RFC 9989 §4.7: the version is first, and its value is case-sensitive. */
export function isDmarc(text: string): boolean {
  return /^\s*[vV][ \t]*=[ \t]*DMARC1[ \t]*(?:;|$)/.test(text);
}

/** Parses the tags of a DMARC record, without validation. */
export function parseDmarc(text: string): DmarcRecord {
  const tags = new Map<string, string>();
  for (const part of text.split(';')) {
    const at = part.indexOf('=');
    if (at > 0) tags.set(part.slice(0, at).trim().toLowerCase(), part.slice(at + 1).trim());
  }
  return { text, tags };
}

/** The value of a policy tag; null when the tag is missing or not a policy. */
export function policyTag(record: DmarcRecord, tag: 'p' | 'sp' | 'np'): Policy | null {
  const value = record.tags.get(tag)?.toLowerCase();
  return isPolicy(value) ? value : null;
}

function isPolicy(value: string | undefined): value is Policy {
  return value === 'none' || value === 'quarantine' || value === 'reject';
}

/**
 * The policy for mail from `domain`: its own record, else that of its organizational domain, found by walking
 * up the tree (RFC 9989 §4.10). Several records at one name count as none there (§4.10 step 2).
 */
export async function discoverPolicy(view: DnsView, domain: string): Promise<Discovery> {
  const walked = await walkTree(view, domain);
  const { found, own, several } = walked;
  const fault =
    several.length === 0
      ? null
      : `There are several DMARC records at ${several.map((name) => `_dmarc.${name}`).join(' and ')}, so receivers ignore all of them.`;
  const first = found[0];
  // The domain's own record applies even when the names above it could not be looked up.
  if (first?.at === domain) {
    return { found: { ...first, ...ownPolicy(first.record) }, own, fault, unknown: null };
  }
  if (walked.unknown !== null) return { found: null, own, fault, unknown: walked.unknown };
  const organizational = organizationalRecord(domain, found);
  if (organizational === null) return { found: null, own, fault, unknown: null };
  const inherited = await inheritedPolicy(view, domain, organizational.record);
  if (inherited.kind === 'unknown') return { found: null, own, fault, unknown: inherited.reason };
  return {
    found: { ...organizational, policy: inherited.policy, tag: inherited.tag },
    own,
    fault,
    unknown: null,
  };
}

interface WalkStep {
  at: string;
  record: DmarcRecord;
}

interface TreeWalk {
  found: WalkStep[];
  own: string[];
  several: string[];
  unknown: string | null;
}

async function walkTree(view: DnsView, domain: string): Promise<TreeWalk> {
  const result: TreeWalk = { found: [], own: [], several: [], unknown: null };
  let labels = domain.split('.');
  while (labels.length > 0) {
    const at = labels.join('.');
    const answer = await view.txt(`_dmarc.${at}`);
    if (answer.kind === 'unknown') return { ...result, unknown: answer.reason };
    const records = answer.kind === 'records' ? answer.records.filter(isDmarc) : [];
    if (at === domain) result.own = records;
    if (records.length > 1) result.several.push(at);
    const [text] = records;
    if (text !== undefined && records.length === 1) {
      const record = parseDmarc(text);
      result.found.push({ at, record });
      if (/^[yn]$/i.test(record.tags.get('psd') ?? '')) break;
    }
    labels = labels.length > MAX_LABELS ? labels.slice(-MAX_LABELS) : labels.slice(1);
  }
  return result;
}

/** The record of the organizational domain, else of the public suffix domain above it (RFC 9989 §4.10.1, §4.10.2). */
function organizationalRecord(domain: string, found: WalkStep[]): WalkStep | null {
  const last = found.at(-1);
  if (last === undefined) return null;
  const marked = found.find(({ record }) => record.tags.get('psd')?.toLowerCase() === 'n');
  if (marked) return marked;
  if (last.record.tags.get('psd')?.toLowerCase() !== 'y') return last;
  const below = domain
    .split('.')
    .slice(-(last.at.split('.').length + 1))
    .join('.');
  return found.find(({ at }) => at === below) ?? last;
}

/** A record without a valid policy counts as p=none (RFC 9989 §4.10.1). */
function ownPolicy(record: DmarcRecord): { policy: Policy; tag: 'p' } {
  return { policy: isValid(record) ? (policyTag(record, 'p') ?? 'none') : 'none', tag: 'p' };
}

type Inherited =
  | { kind: 'known'; policy: Policy; tag: 'p' | 'sp' | 'np' }
  | { kind: 'unknown'; reason: string };

/** `np` for a name that does not exist, else `sp`, else `p` (RFC 9989 §4.7). */
async function inheritedPolicy(view: DnsView, domain: string, record: DmarcRecord): Promise<Inherited> {
  if (!isValid(record)) return { kind: 'known', policy: 'none', tag: 'p' };
  const np = policyTag(record, 'np');
  if (np !== null) {
    const [address, alias] = await Promise.all([view.a(domain), view.cname(domain)]);
    if (address.kind === 'unknown') return address;
    // A CNAME exists even if its target does not (RFC 6604 §3).
    const exists = address.kind === 'records' || address.nameExists || alias.kind === 'records';
    if (!exists) return { kind: 'known', policy: np, tag: 'np' };
  }
  const sp = policyTag(record, 'sp');
  return sp === null
    ? { kind: 'known', policy: policyTag(record, 'p') ?? 'none', tag: 'p' }
    : { kind: 'known', policy: sp, tag: 'sp' };
}

/** Whether `p` is a policy, and `sp` and `np` are policies or missing. */
export function isValid(record: DmarcRecord): boolean {
  const misspelled = (['sp', 'np'] as const).some(
    (tag) => record.tags.has(tag) && policyTag(record, tag) === null,
  );
  return policyTag(record, 'p') !== null && !misspelled;
}

/** The record for a domain without one. Never `aspf=s`: our return path is a subdomain. */
export function newDmarc(reportTo: string, policy: Policy = 'reject'): string {
  return `v=DMARC1; p=${policy}; rua=mailto:${reportTo}`;
}

/**
 * One record with the tags of `records`, `policy` (default: theirs, at least quarantine), and our report address. Of
 * several records the first with a tag determines its value; report addresses are combined.
 */
export function mergedDmarc(records: readonly string[], reportTo: string, policy?: Policy): string {
  if (records.length === 0) return newDmarc(reportTo, policy);
  const parsed = records.map(parseDmarc);
  const tags = new Map(parsed.toReversed().flatMap(({ tags }) => [...tags]));
  const ours = `mailto:${reportTo}`;
  const reports = parsed.flatMap(({ tags }) => (tags.get('rua') ?? '').split(',').map((uri) => uri.trim()));
  const others = reports.filter((uri) => uri !== '' && uri.toLowerCase() !== ours);
  tags.set('rua', [...new Set(others), ours].join(','));
  tags.set('p', policy ?? (tags.get('p')?.toLowerCase() === 'quarantine' ? 'quarantine' : 'reject'));
  if (tags.get('aspf')?.toLowerCase() === 's') tags.delete('aspf');
  for (const tag of ['sp', 'np'])
    if (tags.has(tag) && !isPolicy(tags.get(tag)?.toLowerCase())) tags.delete(tag);
  const first = ['p', 'sp', 'np', 'rua'].flatMap((tag) => (tags.has(tag) ? [tag] : []));
  const rest = [...tags.keys()].filter((tag) => tag !== 'v' && !first.includes(tag));
  return ['v=DMARC1', ...[...first, ...rest].map((tag) => `${tag}=${tags.get(tag)}`)].join('; ');
}
