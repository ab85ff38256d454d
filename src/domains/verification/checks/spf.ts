import { spf } from 'mailauth/lib/spf/index.js';
import type { EgressSet } from '../../platform/egress-addresses.ts';
import type { DnsView, Seen } from '../dns-view.ts';
import { fail, type Judgement, listed, pass, unknown } from './check.ts';
import { whereabouts } from './misplaced.ts';
import {
  correctedTerm,
  includedNames,
  isMistypedMechanism,
  isSpf,
  looksLikeSpf,
  mergedSpf,
  ownSpf,
  passesEverybody,
  termsOfAll,
  withIncludeFirst,
} from './spf-record.ts';

/**
 * Whether receivers let mail from our addresses pass: the SPF of a name is evaluated (RFC 7208) once for
 * every address, as a receiver would.
 */
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

export interface SpfJudgement extends Judgement {
  expected: string;
}

/** Milliseconds for the evaluation of one address; DNS is asked once for all of them. */
const MAX_EVALUATION = 15_000;
/** RFC 7208 §4.6.4. */
const MAX_LOOKUPS = 10;

export async function checkSpf(view: DnsView, subject: SpfSubject): Promise<SpfJudgement> {
  const { domain } = subject;
  const answer = await view.txt(domain);
  const expected = await expectedSpf(view, subject, answer);
  const judgement = await judge(view, subject, answer, expected);
  return { ...judgement, expected };
}

async function judge(
  view: DnsView,
  subject: SpfSubject,
  answer: Seen<string>,
  expected: string,
): Promise<Judgement> {
  const { domain, egress } = subject;
  if (answer.kind === 'unknown') return unknown(answer.why);
  const records = answer.kind === 'records' ? answer.records.filter(isSpf) : [];
  const found = records.length > 0 ? records.join('\n') : null;
  if (records.length > 1) {
    return fail(
      found,
      `There are ${records.length} SPF records at ${domain}; receivers treat that as an error. Merge them into one: ${expected}`,
    );
  }
  const [record] = records;
  if (record === undefined) return missing(view, subject, answer, expected);

  const results = await evaluateAll(view, subject);
  if ('why' in results) return unknown(results.why);
  const broken = results.find(({ result }) => result === 'permerror');
  if (broken) return fail(found, errorHint(broken, subject, expected));
  const refused = results.filter(({ result }) => !['pass', 'temperror'].includes(result));
  if (refused.length > 0) return fail(found, refusedHint(record, refused, subject, expected));
  const undecided = results.find(({ result }) => result === 'temperror');
  if (undecided) return unknown(undecided.reason);
  if (egress.unknown !== null) return unknown(egress.unknown);
  return pass(
    found,
    passesEverybody(record)
      ? 'The record ends with "+all", which lets anybody send in your name: use "~all".'
      : '',
  );
}

/** Terms of existing records that are tried one by one; a longer record is replaced by ours. */
const MAX_TERMS = 100;

/**
 * The record to publish: ours, or the existing one with our include, corrected until it passes for our addresses.
 * Terms are corrected or, when they make the record an error, removed; our include goes first where another
 * term would decide before it.
 */
async function expectedSpf(view: DnsView, subject: SpfSubject, answer: Seen<string>): Promise<string> {
  const { include } = subject;
  const existing = answer.kind === 'records' ? answer.records.filter(looksLikeSpf) : [];
  if (existing.length === 0) return ownSpf(include);
  const merged = mergedSpf(existing, include);
  // Our include is the platform operator's to repair: no wording of this record helps.
  if (!(await passesWith(view, subject, ownSpf(include)))) return merged;
  const terms = termsOfAll(existing);
  if (!terms.some(isMistypedMechanism) && (await passesWith(view, subject, merged))) return merged;
  if (terms.length > MAX_TERMS) return ownSpf(include);
  const kept = await Promise.all(terms.map((term) => validTerm(view, subject, term)));
  const corrected = mergedSpf([`v=spf1 ${kept.filter((term) => term !== null).join(' ')}`], include);
  for (const candidate of [corrected, withIncludeFirst(corrected, include)])
    if (await passesWith(view, subject, candidate)) return candidate;
  return ownSpf(include);
}

/** The term, corrected where need be; null when a record with it alone is an error. */
async function validTerm(view: DnsView, subject: SpfSubject, term: string): Promise<string | null> {
  for (const candidate of [correctedTerm(term), term]) {
    if (candidate === null) continue;
    const resolve = withRecord(view.resolve, subject.domain, `v=spf1 ${candidate}`);
    const { result } = await evaluate(resolve, subject, STAND_IN);
    if (result !== 'permerror') return candidate;
  }
  return null;
}

/** Whether the domain with this record passes for every address of ours; a temporary DNS error counts as yes. */
async function passesWith(view: DnsView, subject: SpfSubject, record: string): Promise<boolean> {
  const resolve = withRecord(view.resolve, subject.domain, record);
  const results = await evaluateAll({ ...view, resolve }, subject);
  if ('why' in results) return true;
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
  answer: Seen<string>,
  expected: string,
): Promise<Judgement> {
  const malformed = answer.kind === 'records' ? answer.records.filter(looksLikeSpf) : [];
  if (malformed.length > 0) {
    return fail(
      malformed.join('\n'),
      `The record at ${domain} must begin with "v=spf1" and a blank, without quotation marks, or receivers do not see it. Publish: ${expected}`,
    );
  }
  const elsewhere = await whereabouts(view, domain, zone, looksLikeSpf);
  return fail(
    null,
    elsewhere === '' ? `There is no SPF record at ${domain}. Publish: ${expected}` : elsewhere,
  );
}

interface Evaluation {
  address: string;
  result: string;
  /** mailauth's words for an error, '' otherwise. */
  reason: string;
  lookups: number;
}

/**
 * Stands for our addresses where none is known: of a block that nobody will ever use (RFC 1112 §4), so that
 * only a term that lets everybody pass takes it by chance.
 */
const STAND_IN = '240.0.0.1';

/**
 * For every address of ours. With none known, the record counts when it includes ours (contract §13.2): it is
 * evaluated as if our record listed the stand-in, so that an include behind `all`, or in a record that is an
 * error, does not count.
 */
async function evaluateAll(view: DnsView, subject: SpfSubject): Promise<Evaluation[] | { why: string }> {
  const { include, egress } = subject;
  if (egress.addresses.length > 0) {
    return Promise.all(egress.addresses.map((address) => evaluate(view.resolve, subject, address)));
  }
  if (egress.unknown !== null) return { why: egress.unknown };
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
  const response = await spf({
    resolver,
    sender: `postmaster@${domain}`,
    ip: address,
    helo,
    mta: helo,
    // Exactly RFC 7208: what only a lenient receiver accepts must not count as set up.
    strict: true,
    maxElapsedTime: MAX_EVALUATION,
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
  expected: string,
): string {
  if (lookups > MAX_LOOKUPS || /too many dns/i.test(reason)) {
    return `Evaluating the SPF of ${domain} takes more than ${MAX_LOOKUPS} DNS look-ups, so receivers treat it as an error (RFC 7208 §4.6.4). Remove includes that are no longer needed, or write their addresses as ip4: and ip6: terms.`;
  }
  if (/void/i.test(reason)) {
    return `The SPF of ${domain} names more than two hosts that do not exist, so receivers treat it as an error. Remove those terms.`;
  }
  if (reason.endsWith(`for ${include}`)) {
    return `The record includes ${include}, which has no SPF record: the operator of this platform must publish the records of "postrider zone".`;
  }
  return `Receivers treat the SPF of ${domain} as an error: ${reason}. Correct it to: ${expected}`;
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
    ? `${still}: a term before the include decides. Change it to: ${expected}`
    : `${still}. Either a term before the include decides, or ${include} does not list that address: the operator of this platform must publish the records of "postrider zone".`;
}
