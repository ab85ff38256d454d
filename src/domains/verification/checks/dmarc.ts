import { type DnsRecord, type RecordContext, txtRecord } from '../../dns-record.ts';
import { reportAddress } from '../../names.ts';
import type { DmarcRequirement } from '../../platform/platform.ts';
import { type CheckResult, type CheckSubject, fail, type Judgment, pass, unknown } from './check.ts';
import {
  type DiscoveredPolicy,
  type Discovery,
  discoverPolicy,
  isValid,
  mergedDmarc,
  newDmarc,
} from './dmarc-record.ts';
import { findMisplaced } from './misplaced.ts';

/** The DMARC record to publish when there is none. */
export function dmarcRecord({ domain: { name }, platform }: RecordContext): DnsRecord {
  const start =
    platform.dmarcPolicy === 'any' ? 'start with p=none' : `start with p=none (accepted once ${ACCEPT_ANY})`;
  return txtRecord({
    name: `_dmarc.${name}`,
    value: newDmarc(reportAddress(name)),
    description: `DMARC, strict policy (supports BIMI): receivers reject mail in your name that is not authenticated. If other systems send for this domain, ${start} and raise the policy after two weeks of clean reports.`,
    purpose: 'DMARC',
  });
}

/** For domains for which other systems send mail that is not authenticated yet. */
const ACCEPT_ANY = 'the operator of this platform has set verification.dmarcPolicy = "any"';

export interface DmarcSubject {
  domain: string;
  /** Our address for aggregate reports. */
  reportTo: string;
  policy: DmarcRequirement;
}

/**
 * Whether receivers find a DMARC policy for the domain, its own or inherited from the organizational domain
 * (RFC 9989), that fulfills the requirement of the platform.
 */
export async function checkDmarc({
  view,
  platform,
  domain: { name: domain },
}: CheckSubject<'dmarcPolicy', 'name'>): Promise<CheckResult> {
  const reportTo = reportAddress(domain);
  const subject = { domain, reportTo, policy: platform.dmarcPolicy };
  const discovery = await discoverPolicy(view, domain);
  const expected = mergedDmarc(discovery.own, reportTo);
  const judgment = judge(discovery, subject, expected);
  if (judgment.verdict !== 'fail' || discovery.own.length > 0 || discovery.found !== null)
    return { ...judgment, expected };
  const hint = await findMisplaced(view, `_dmarc.${domain}`, domain, (value) =>
    /^\W*v\s*=\s*DMARC1/i.test(value),
  );
  return { ...judgment, hint: hint === '' ? judgment.hint : hint, expected };
}

function judge(
  { found, own, fault, unknown: reason }: Discovery,
  subject: DmarcSubject,
  expected: string,
): Judgment {
  const { domain, reportTo, policy } = subject;
  if (reason !== null) return unknown(reason);
  if (own.length > 1) {
    return fail(
      own.join('\n'),
      `There are ${own.length} DMARC records at _dmarc.${domain}, so receivers ignore all of them. Merge them into one: ${expected}`,
    );
  }
  if (found === null) {
    const problem = fault ?? `There is no DMARC record at _dmarc.${domain} or at a domain above it.`;
    return fail(null, `${problem} Publish: ${expected}`);
  }
  if (found.policy === 'none') {
    if (policy === 'any' && isValid(found.record) && found.record.tags.has('rua'))
      return pass(found.record.text, monitoringAdvice(found, domain, reportTo));
    return fail(found.record.text, weakHint(found, subject, expected));
  }
  return pass(found.record.text, advice(found, domain, reportTo));
}

function weakHint(
  found: DiscoveredPolicy,
  { domain, reportTo, policy }: DmarcSubject,
  expected: string,
): string {
  const where = `_dmarc.${found.at}`;
  if (!isValid(found.record)) {
    return `The record at ${where} has no valid policy (p, sp and np take none, quarantine or reject), so receivers apply none. Publish at _dmarc.${domain}: ${expected}`;
  }
  if (found.at !== domain) {
    const any = policy === 'any' ? '' : `. It suffices (with rua) once ${ACCEPT_ANY}`;
    return `The policy that ${domain} inherits from ${where} is ${found.tag}=none. Publish a separate record at _dmarc.${domain}: ${expected}${any}`;
  }
  if (policy === 'any') {
    return `The policy is p=none, without an address for reports. Add rua=mailto:${reportTo} to it, or change the record to: ${expected}`;
  }
  return `The policy is p=none, which has no effect on delivery; at least p=quarantine is required. Change the record to: ${expected}. If other systems send for ${domain} and still need p=none, it suffices (with rua) once ${ACCEPT_ANY}.`;
}

function monitoringAdvice(found: DiscoveredPolicy, domain: string, reportTo: string): string {
  const raise = `The policy is ${found.tag}=none, which only requests reports. After two weeks of reports without failures of your own mail, change it to p=quarantine, then to p=reject.`;
  return [raise, advice(found, domain, reportTo)].filter((note) => note !== '').join(' ');
}

/** Recommendations for a policy that passes. */
function advice(found: DiscoveredPolicy, domain: string, reportTo: string): string {
  const { tags } = found.record;
  const notes = [
    found.at === domain
      ? ''
      : `The policy is inherited from _dmarc.${found.at} (${found.tag}=${found.policy}).`,
    tags.get('t')?.toLowerCase() === 'y'
      ? 'The record has t=y (testing), so receivers apply one step less than the policy.'
      : '',
    /^\d+$/.test(tags.get('pct') ?? '') && tags.get('pct') !== '100'
      ? 'The record has a pct tag, which older receivers apply to only a part of the mail.'
      : '',
    tags.get('aspf')?.toLowerCase() === 's'
      ? 'With aspf=s the SPF of the return path does not count for DMARC, so only DKIM does: remove that tag.'
      : '',
    tags.get('rua')?.toLowerCase().includes(reportTo)
      ? ''
      : `To see reports here, add mailto:${reportTo} to its rua.`,
  ];
  return notes.filter((note) => note !== '').join(' ');
}
