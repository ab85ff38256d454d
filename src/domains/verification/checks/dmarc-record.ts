import type { DnsView } from '../dns-view.ts';

/**
 * DMARC policy records: reading one (RFC 9989 §4.7), finding the one that holds for a domain (§4.10), and
 * writing our report address into one that is there already.
 */
export type Policy = 'none' | 'quarantine' | 'reject';

export interface DmarcRecord {
  /** As published. */
  text: string;
  /** Tag names in lower case, values as they stand, in order. */
  tags: Map<string, string>;
}

export interface FoundPolicy {
  record: DmarcRecord;
  /** The domain whose `_dmarc` name holds it. */
  at: string;
  /** What it asks for mail from our domain. */
  policy: Policy;
  /** Which tag said so. */
  tag: 'p' | 'sp' | 'np';
}

export interface Discovery {
  found: FoundPolicy | null;
  /** DMARC records at the domain's own `_dmarc` name, as published, however many. */
  own: string[];
  /** Whether a record that would count is too many or is not usable, in words; null when nothing is. */
  fault: string | null;
  /** Why the policy is not known, null when it is. */
  unknown: string | null;
}

/** An author domain of eight labels or more goes straight to seven (RFC 9989 §4.10 step 4). */
const MOST_LABELS = 7;

/** RFC 9989 §4.7: the version comes first and in this letter case. */
export function isDmarc(text: string): boolean {
  return /^\s*[vV][ \t]*=[ \t]*DMARC1[ \t]*(?:;|$)/.test(text);
}

export function parseDmarc(text: string): DmarcRecord {
  const tags = new Map<string, string>();
  for (const part of text.split(';')) {
    const at = part.indexOf('=');
    if (at > 0) tags.set(part.slice(0, at).trim().toLowerCase(), part.slice(at + 1).trim());
  }
  return { text, tags };
}

/** The value of a policy tag; null when the tag is missing or says something else. */
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
  const walked = await walk(view, domain);
  const { found, own, several } = walked;
  const fault =
    several.length === 0
      ? null
      : `There are several DMARC records at ${several.map((name) => `_dmarc.${name}`).join(' and ')}, so receivers ignore all of them.`;
  const first = found[0];
  // Its own record holds whatever is above it, also when that could not be seen.
  if (first?.at === domain) {
    return { found: { ...first, ...ownPolicy(first.record) }, own, fault, unknown: null };
  }
  if (walked.unknown !== null) return { found: null, own, fault, unknown: walked.unknown };
  const organizational = organizationalRecord(domain, found);
  if (organizational === null) return { found: null, own, fault, unknown: null };
  const inherited = await inheritedPolicy(view, domain, organizational.record);
  if (inherited.kind === 'unknown') return { found: null, own, fault, unknown: inherited.why };
  return {
    found: { ...organizational, policy: inherited.policy, tag: inherited.tag },
    own,
    fault,
    unknown: null,
  };
}

interface Step {
  at: string;
  record: DmarcRecord;
}

interface Walk {
  found: Step[];
  own: string[];
  several: string[];
  unknown: string | null;
}

async function walk(view: DnsView, domain: string): Promise<Walk> {
  const result: Walk = { found: [], own: [], several: [], unknown: null };
  let labels = domain.split('.');
  while (labels.length > 0) {
    const at = labels.join('.');
    const answer = await view.txt(`_dmarc.${at}`);
    if (answer.kind === 'unknown') return { ...result, unknown: answer.why };
    const records = answer.kind === 'records' ? answer.records.filter(isDmarc) : [];
    if (at === domain) result.own = records;
    if (records.length > 1) result.several.push(at);
    const [text] = records;
    if (text !== undefined && records.length === 1) {
      const record = parseDmarc(text);
      result.found.push({ at, record });
      if (/^[yn]$/i.test(record.tags.get('psd') ?? '')) break;
    }
    labels = labels.length > MOST_LABELS ? labels.slice(-MOST_LABELS) : labels.slice(1);
  }
  return result;
}

/** The record of the organizational domain, else of the public suffix domain above it (RFC 9989 §4.10.1, §4.10.2). */
function organizationalRecord(domain: string, found: Step[]): Step | null {
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

/** A record without a usable policy asks for nothing but reports (RFC 9989 §4.10.1). */
function ownPolicy(record: DmarcRecord): { policy: Policy; tag: 'p' } {
  return { policy: isUsable(record) ? (policyTag(record, 'p') ?? 'none') : 'none', tag: 'p' };
}

type Inherited = { kind: 'known'; policy: Policy; tag: 'p' | 'sp' | 'np' } | { kind: 'unknown'; why: string };

/** `np` for a name that does not exist, else `sp`, else `p` (RFC 9989 §4.7). */
async function inheritedPolicy(view: DnsView, domain: string, record: DmarcRecord): Promise<Inherited> {
  if (!isUsable(record)) return { kind: 'known', policy: 'none', tag: 'p' };
  const np = policyTag(record, 'np');
  if (np !== null) {
    const [address, alias] = await Promise.all([view.a(domain), view.cname(domain)]);
    if (address.kind === 'unknown') return address;
    // A CNAME whose target is gone exists all the same (RFC 6604 §3).
    const exists = address.kind === 'records' || address.nameExists || alias.kind === 'records';
    if (!exists) return { kind: 'known', policy: np, tag: 'np' };
  }
  const sp = policyTag(record, 'sp');
  return sp === null
    ? { kind: 'known', policy: policyTag(record, 'p') ?? 'none', tag: 'p' }
    : { kind: 'known', policy: sp, tag: 'sp' };
}

/** Whether `p` is valid and neither `sp` nor `np` is misspelt. */
export function isUsable(record: DmarcRecord): boolean {
  const misspelt = (['sp', 'np'] as const).some(
    (tag) => record.tags.has(tag) && policyTag(record, tag) === null,
  );
  return policyTag(record, 'p') !== null && !misspelt;
}

/** The record for a domain without one. Never `aspf=s`: our return path is a subdomain. */
export function ownDmarc(reportTo: string): string {
  return `v=DMARC1; p=reject; rua=mailto:${reportTo}`;
}

/**
 * One record that keeps what theirs say, asks for quarantine at least, and sends the reports to us too. Of
 * several records the first to set a tag wins; report addresses are put together.
 */
export function mergedDmarc(records: readonly string[], reportTo: string): string {
  if (records.length === 0) return ownDmarc(reportTo);
  const parsed = records.map(parseDmarc);
  const tags = new Map(parsed.toReversed().flatMap(({ tags }) => [...tags]));
  const ours = `mailto:${reportTo}`;
  const reports = parsed.flatMap(({ tags }) => (tags.get('rua') ?? '').split(',').map((uri) => uri.trim()));
  const others = reports.filter((uri) => uri !== '' && uri.toLowerCase() !== ours);
  tags.set('rua', [...new Set(others), ours].join(','));
  tags.set('p', tags.get('p')?.toLowerCase() === 'quarantine' ? 'quarantine' : 'reject');
  if (tags.get('aspf')?.toLowerCase() === 's') tags.delete('aspf');
  for (const tag of ['sp', 'np'])
    if (tags.has(tag) && !isPolicy(tags.get(tag)?.toLowerCase())) tags.delete(tag);
  const first = ['p', 'sp', 'np', 'rua'].flatMap((tag) => (tags.has(tag) ? [tag] : []));
  const rest = [...tags.keys()].filter((tag) => tag !== 'v' && !first.includes(tag));
  return ['v=DMARC1', ...[...first, ...rest].map((tag) => `${tag}=${tags.get(tag)}`)].join('; ');
}
