import type { DmarcRequirement } from '../../platform/platform.ts';
import type { DnsView } from '../dns-view.ts';
import { fail, type Judgement, pass, unknown } from './check.ts';
import { type Discovery, discoverPolicy, type FoundPolicy, isUsable, mergedDmarc } from './dmarc-record.ts';
import { whereabouts } from './misplaced.ts';

/**
 * Whether receivers find a DMARC policy for the domain, its own or inherited from the organizational domain
 * (RFC 9989), that fulfills the requirement.
 */
export interface DmarcJudgement extends Judgement {
  expected: string;
}

export interface DmarcSubject {
  domain: string;
  /** Our address for aggregate reports. */
  reportTo: string;
  policy: DmarcRequirement;
}

export async function checkDmarc(view: DnsView, subject: DmarcSubject): Promise<DmarcJudgement> {
  const { domain, reportTo } = subject;
  const discovery = await discoverPolicy(view, domain);
  const expected = mergedDmarc(discovery.own, reportTo);
  const judgement = judge(discovery, subject, expected);
  if (judgement.verdict !== 'fail' || discovery.own.length > 0 || discovery.found !== null)
    return { ...judgement, expected };
  const elsewhere = await whereabouts(view, `_dmarc.${domain}`, domain, (value) =>
    /^\W*v\s*=\s*DMARC1/i.test(value),
  );
  return { ...judgement, hint: elsewhere === '' ? judgement.hint : elsewhere, expected };
}

function judge(
  { found, own, fault, unknown: why }: Discovery,
  { domain, reportTo, policy }: DmarcSubject,
  expected: string,
): Judgement {
  if (why !== null) return unknown(why);
  if (own.length > 1) {
    return fail(
      own.join('\n'),
      `There are ${own.length} DMARC records at _dmarc.${domain}, so receivers ignore all of them. Merge them into one: ${expected}`,
    );
  }
  if (found === null) {
    const reason = fault ?? `There is no DMARC record at _dmarc.${domain}, nor at a domain above it.`;
    return fail(null, `${reason} Publish: ${expected}`);
  }
  if (found.policy === 'none') {
    if (policy === 'any' && isUsable(found.record) && found.record.tags.has('rua'))
      return pass(found.record.text, monitoringAdvice(found, domain, reportTo));
    return fail(found.record.text, weakHint(found, domain, expected));
  }
  return pass(found.record.text, advice(found, domain, reportTo));
}

function weakHint(found: FoundPolicy, domain: string, expected: string): string {
  const where = `_dmarc.${found.at}`;
  if (!isUsable(found.record)) {
    return `The record at ${where} has no valid policy (p, sp and np take none, quarantine or reject), so it asks receivers for nothing. Publish at _dmarc.${domain}: ${expected}`;
  }
  if (found.at !== domain) {
    return `The policy that ${domain} inherits from ${where} is ${found.tag}=none. Publish a record of its own at _dmarc.${domain}: ${expected}`;
  }
  return `The policy is p=none, which asks receivers for nothing; p=quarantine is the least that counts. Change the record to: ${expected}`;
}

function monitoringAdvice(found: FoundPolicy, domain: string, reportTo: string): string {
  const raise = `The policy is ${found.tag}=none, which asks receivers for reports only. After two weeks of reports without failures of your own mail, change it to p=quarantine, then to p=reject.`;
  return [raise, advice(found, domain, reportTo)].filter((note) => note !== '').join(' ');
}

/** What is worth saying although the check passes. */
function advice(found: FoundPolicy, domain: string, reportTo: string): string {
  const { tags } = found.record;
  const notes = [
    found.at === domain
      ? ''
      : `The policy is inherited from _dmarc.${found.at} (${found.tag}=${found.policy}).`,
    tags.get('t')?.toLowerCase() === 'y'
      ? 'The record says t=y (testing), so receivers apply one step less than the policy.'
      : '',
    /^\d+$/.test(tags.get('pct') ?? '') && tags.get('pct') !== '100'
      ? 'The record has a pct tag, which older receivers apply to a part of the mail only.'
      : '',
    tags.get('aspf')?.toLowerCase() === 's'
      ? 'With aspf=s the SPF of the return path does not count for DMARC, and everything rests on DKIM: remove that tag.'
      : '',
    tags.get('rua')?.toLowerCase().includes(reportTo)
      ? ''
      : `To see reports here, add mailto:${reportTo} to its rua.`,
  ];
  return notes.filter((note) => note !== '').join(' ');
}
