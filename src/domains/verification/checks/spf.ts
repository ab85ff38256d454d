import type { DnsView, LookupResult } from '../../../dns/dns-view.ts';
import type { DomainRow } from '../../../store/domains/domains.ts';
import { type DnsRecord, type RecordContext, txtRecord } from '../../dns-record.ts';
import { returnPathHost } from '../../names.ts';
import { type EgressSet, egressSet } from '../../platform/egress-addresses.ts';
import { type Platform, spfHost } from '../../platform/platform.ts';
import {
  type CheckContext,
  type CheckResult,
  fail,
  type Judgment,
  listed,
  pass,
  unknown,
  type Verdict,
} from './check.ts';
import { findMisplaced } from './misplaced.ts';
import {
  correctedTerm,
  includedNames,
  isMistypedMechanism,
  isSpf,
  looksLikeSpf,
  mergedSpf,
  newSpf,
  passesEveryone,
  termsOfAll,
  withIncludeFirst,
} from './spf-record.ts';

/* SPF of a domain, of its secondary lane and of its return path. */

/** The SPF record of the domain. */
export function spfRecord({ domain, platform }: RecordContext): DnsRecord {
  return txtRecord({
    name: domain.name,
    value: newSpf(spfHost(platform)),
    description:
      'SPF: allows both lanes of this platform to send for your domain. A name has one SPF record: if there is one already, add the include to it.',
    purpose: 'SPF',
  });
}

/** Whether the SPF record of the domain permits our addresses. */
export async function checkDomainSpf({ view, platform, domain }: CheckContext): Promise<CheckResult> {
  return checkSpf(view, await subjectOf(view, platform, domain.name));
}

/** Evaluates the lane's own addresses; with a relay, the record that lists those of the relay. */
export async function checkSecondarySpf({ view, platform, domain }: CheckContext): Promise<CheckResult> {
  const { secondary } = platform;
  const subject = await subjectOf(view, platform, domain.name);
  if (secondary.type === 'builtin')
    return checkSpf(view, { ...subject, egress: await egressSet(view, platform, secondary.pool) });
  const include = secondary.spfInclude ?? subject.include;
  return checkSpf(view, { ...subject, include, egress: { addresses: [], unknown: null } });
}

/** The SPF record of the return path. */
export function returnPathSpfRecord({ domain, platform }: RecordContext): DnsRecord {
  return txtRecord({
    name: returnPathHost(domain.name),
    value: newSpf(spfHost(platform)),
    description:
      'Needed for SPF alignment: the SPF of the return path, which is the name whose SPF receivers evaluate. Without it DMARC relies on DKIM alone.',
    purpose: 'Return path SPF',
  });
}

/** Whether the SPF record of the return path permits our addresses. */
export async function checkReturnPathSpf({ view, platform, domain }: CheckContext): Promise<CheckResult> {
  const subject = await subjectOf(view, platform, domain.name);
  const result = await checkSpf(view, { ...subject, domain: returnPathHost(domain.name) });
  const returnPath = await chooseReturnPath(view, platform, result.verdict);
  return { ...result, changes: returnPath === undefined ? {} : { return_path: returnPath } };
}

/**
 * The platform's own return path if SPF fails for the domain's and passes for the platform's, else the domain's. Undefined:
 * not known.
 */
async function chooseReturnPath(
  view: DnsView,
  platform: Platform,
  ofDomain: Verdict,
): Promise<DomainRow['return_path'] | undefined> {
  if (platform.returnPath !== 'auto') return platform.returnPath;
  if (ofDomain === 'pass') return 'customer';
  if (ofDomain === 'unknown') return undefined;
  const { verdict } = await checkSpf(view, await subjectOf(view, platform, platform.hostname));
  if (verdict === 'unknown') return undefined;
  return verdict === 'pass' ? 'platform' : 'customer';
}

async function subjectOf(view: DnsView, platform: Platform, domain: string): Promise<SpfSubject> {
  return {
    domain,
    zone: domain,
    include: spfHost(platform),
    egress: await egressSet(view, platform, null),
    helo: platform.hostname,
  };
}

export interface SpfSubject {
  /** The name in the envelope sender. */
  domain: string;
  /** The registered domain, at or above that name. */
  zone: string;
  /** The name whose record lists our addresses, `spf.<hostname>`. */
  include: string;
  egress: EgressSet;
  helo: string;
}

/** Limit for one address; the addresses share their lookups. */
const EVALUATION_TIMEOUT_MS = 15_000;
/** RFC 7208 §4.6.4. */
const MAX_LOOKUPS = 10;

/**
 * Evaluates the record for every egress address (RFC 7208), each for at most 15 s. `expected` is the record to publish:
 * the existing one with our include, corrected where it would not pass. `unknown` when DNS does not answer.
 */
export async function checkSpf(view: DnsView, subject: SpfSubject): Promise<CheckResult> {
  const { domain } = subject;
  const answer = await view.txt(domain);
  const expected = await expectedSpf(view, subject, answer);
  const judgment = await judge(view, subject, answer, expected);
  return { ...judgment, expected };
}

async function judge(
  view: DnsView,
  subject: SpfSubject,
  answer: LookupResult<string>,
  expected: string,
): Promise<Judgment> {
  const { domain, egress } = subject;
  if (answer.kind === 'unknown') return unknown(answer.reason);
  const records = answer.kind === 'records' ? answer.records.filter(isSpf) : [];
  const found = records.length > 0 ? records.join('\n') : null;
  if (records.length > 1) {
    return fail(
      found,
      `There are ${records.length} SPF records at ${domain}, which receivers treat as an error. Merge them into one: ${expected}`,
    );
  }
  const [record] = records;
  if (record === undefined) return missing(view, subject, answer, expected);

  const results = await evaluateAll(view, subject);
  if ('kind' in results) return unknown(results.reason);
  const broken = results.find(({ result }) => result === 'permerror');
  if (broken) return fail(found, errorHint(broken, subject, record, expected));
  const refused = results.filter(({ result }) => !['pass', 'temperror'].includes(result));
  if (refused.length > 0) return fail(found, refusedHint(record, refused, subject, expected));
  const undecided = results.find(({ result }) => result === 'temperror');
  if (undecided) return unknown(undecided.reason);
  if (egress.unknown !== null) return unknown(egress.unknown);
  return pass(
    found,
    passesEveryone(record)
      ? 'The record ends with "+all", which allows everyone to send in your name: use "~all".'
      : '',
  );
}

/** Maximum number of terms that are evaluated one by one; a record with more is replaced by ours. */
const MAX_TERMS = 100;

/**
 * The record to publish: ours, or the existing one with our include, corrected until it passes for our addresses.
 * Terms are corrected or, when they make the record an error, removed; our include is first where another term would
 * match before it.
 */
async function expectedSpf(
  view: DnsView,
  subject: SpfSubject,
  answer: LookupResult<string>,
): Promise<string> {
  const { include } = subject;
  const existing = answer.kind === 'records' ? answer.records.filter(looksLikeSpf) : [];
  if (existing.length === 0) return newSpf(include);
  const merged = mergedSpf(existing, include);
  // Only the operator of the platform can correct our include: no change of this record helps.
  if (!(await passesWith(view, subject, newSpf(include)))) return merged;
  const terms = termsOfAll(existing);
  if (!terms.some(isMistypedMechanism) && (await passesWith(view, subject, merged))) return merged;
  if (terms.length > MAX_TERMS) return newSpf(include);
  const kept = await Promise.all(terms.map((term) => validTerm(view, subject, term)));
  const corrected = mergedSpf([`v=spf1 ${kept.filter((term) => term !== null).join(' ')}`], include);
  for (const candidate of [corrected, withIncludeFirst(corrected, include)])
    if (await passesWith(view, subject, candidate)) return candidate;
  return newSpf(include);
}

/** The term, corrected if necessary; null when a record with this term alone is an error. */
async function validTerm(view: DnsView, subject: SpfSubject, term: string): Promise<string | null> {
  for (const candidate of [correctedTerm(term), term]) {
    if (candidate === null) continue;
    const resolve = withRecord(view.resolve, subject.domain, `v=spf1 ${candidate}`);
    const { result } = await evaluate(resolve, subject, STAND_IN);
    if (result !== 'permerror') return candidate;
  }
  return null;
}

/** Whether the domain with this record passes for every egress address; a temporary DNS error counts as a pass. */
async function passesWith(view: DnsView, subject: SpfSubject, record: string): Promise<boolean> {
  const resolve = withRecord(view.resolve, subject.domain, record);
  const results = await evaluateAll({ ...view, resolve }, subject);
  if ('kind' in results) return true;
  return results.every(({ result }) => result === 'pass' || result === 'temperror');
}

/** DNS as it would be with this SPF record at the name. */
function withRecord(resolve: DnsView['resolve'], domain: string, record: string): DnsView['resolve'] {
  return (name, type) =>
    name.toLowerCase() === domain && type === 'TXT' ? Promise.resolve([[record]]) : resolve(name, type);
}

async function missing(
  view: DnsView,
  { domain, zone }: SpfSubject,
  answer: LookupResult<string>,
  expected: string,
): Promise<Judgment> {
  const malformed = answer.kind === 'records' ? answer.records.filter(looksLikeSpf) : [];
  if (malformed.length > 0) {
    return fail(
      malformed.join('\n'),
      `The record at ${domain} must begin with "v=spf1" and a space, without quotation marks, or receivers ignore it. Publish: ${expected}`,
    );
  }
  const hint = await findMisplaced(view, domain, zone, looksLikeSpf);
  return fail(null, hint === '' ? `There is no SPF record at ${domain}. Publish: ${expected}` : hint);
}

interface Evaluation {
  address: string;
  result: string;
  /** mailauth's error message, '' otherwise. */
  reason: string;
  lookups: number;
}

/**
 * Replaces our addresses where none is known: from a reserved block (RFC 1112 §4), so that only a term that matches
 * every address matches it by chance.
 */
const STAND_IN = '240.0.0.1';

/**
 * Evaluates the record for every egress address. When none is known, the record passes if it includes ours: it is
 * evaluated as if our record listed the stand-in, so that an include after `all`, or in a record that is an error, does
 * not count.
 */
async function evaluateAll(
  view: DnsView,
  subject: SpfSubject,
): Promise<Evaluation[] | { kind: 'unknown'; reason: string }> {
  const { include, egress } = subject;
  if (egress.addresses.length > 0) {
    return Promise.all(egress.addresses.map((address) => evaluate(view.resolve, subject, address)));
  }
  if (egress.unknown !== null) return { kind: 'unknown', reason: egress.unknown };
  const ours = await view.txt(include);
  if (ours.kind === 'unknown') return ours;
  const resolve: DnsView['resolve'] = (name, type) =>
    name === include && type === 'TXT'
      ? Promise.resolve([[`v=spf1 ip4:${STAND_IN} -all`]])
      : view.resolve(name, type);
  return [await evaluate(resolve, subject, STAND_IN)];
}

async function evaluate(
  resolver: DnsView['resolve'],
  { domain, helo }: SpfSubject,
  address: string,
): Promise<Evaluation> {
  const { spf } = await import('./spf-library.ts');
  const response = await spf({
    resolver,
    sender: `postmaster@${domain}`,
    ip: address,
    helo,
    mta: helo,
    // Exactly RFC 7208: a record that only lenient receivers accept must not pass.
    strict: true,
    maxElapsedTime: EVALUATION_TIMEOUT_MS,
  });
  const { result, comment } = response.status;
  const reason =
    typeof comment === 'string' ? comment.slice(comment.lastIndexOf(`postmaster@${domain}`)) : '';
  return {
    address,
    result,
    reason: reason.replace(/^[^:]*:?\s*/, ''),
    lookups: response.lookups?.count ?? 0,
  };
}

function errorHint(
  { reason, lookups }: Evaluation,
  { domain, include }: SpfSubject,
  record: string,
  expected: string,
): string {
  if (lookups > MAX_LOOKUPS || /too many dns/i.test(reason)) {
    return `Evaluating the SPF of ${domain} requires more than ${MAX_LOOKUPS} DNS lookups, so receivers treat it as an error (RFC 7208 §4.6.4). Remove includes that are no longer needed, or list their addresses as ip4: and ip6: terms.`;
  }
  if (/void/i.test(reason)) {
    return `The SPF of ${domain} names more than two hosts that do not exist, so receivers treat it as an error. Remove those terms.`;
  }
  if (reason.endsWith(`for ${include}`)) {
    return `The record includes ${include}, which has no SPF record: the operator of this platform must publish the records of "postrider zone".`;
  }
  const error = `Receivers treat the SPF of ${domain} as an error: ${reason}.`;
  return record === expected
    ? `${error} The record itself is right, but the records that it includes are not: the operator of this platform must publish the records of "postrider zone".`
    : `${error} Correct it to: ${expected}`;
}

function refusedHint(
  record: string,
  refused: Evaluation[],
  { domain, include }: SpfSubject,
  expected: string,
): string {
  const result = [...new Set(refused.map((one) => one.result))].join(', ');
  const known = refused.filter(({ address }) => address !== STAND_IN).map(({ address }) => address);
  const whose = known.length === 0 ? 'our addresses' : `our address ${listed(known)}`;
  if (!includedNames(record).includes(include)) {
    return `The SPF of ${domain} gives "${result}" for ${whose}. Change it to: ${expected}`;
  }
  const still = `The record includes ${include}, but mail from ${whose} still gets "${result}"`;
  return known.length === 0
    ? `${still}: a term before the include matches first. Change it to: ${expected}`
    : `${still}. Either a term before the include matches first, or ${include} does not list that address: the operator of this platform must publish the records of "postrider zone".`;
}
