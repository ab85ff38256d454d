import type { DnsView } from '../../../dns/dns-view.ts';
import type { DomainRow } from '../../../store/domains/domains.ts';
import { type DnsRecord, type RecordContext, txtRecord } from '../../dns-record.ts';
import { returnPathHost } from '../../names.ts';
import { egressSet } from '../../platform/egress-addresses.ts';
import { type Platform, spfHost } from '../../platform/platform.ts';
import type { CheckContext, CheckResult, Verdict } from './check.ts';
import { checkSpf, type SpfSubject } from './spf.ts';
import { newSpf } from './spf-record.ts';

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
