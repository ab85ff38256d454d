import type { DnsRecord } from '../../domains/dns-record.ts';
import type { Platform } from '../../domains/platform/platform.ts';
import { IN_PROGRESS } from '../../domains/verification/checks/dkim.ts';
import { type Discovery, discoverPolicy } from '../../domains/verification/checks/dmarc-record.ts';
import { checkOf, REPORTED_CHECKS, type ReportedCheck } from '../../domains/verification/checks.ts';
import type { DoctorContext, ExaminedDomain } from '../context.ts';
import { FIX_TTL, failure, ok, type Result, unknown, warning, zoneLines } from '../finding.ts';

/**
 * The records of the sending domains, with the checks of their verification; nothing is written. A required check that
 * fails is a failure for a named domain and for one that was verified before, else a warning. Domains beyond those examined
 * are one unknown result; a domain whose checks all pass is one `ok`.
 */
export async function examineDomainRecords({
  state,
  domains,
  domain: named,
  platform,
}: DoctorContext): Promise<Result[]> {
  const { domainCount } = await state();
  const examined = await domains();
  if (named !== null && examined.length === 0)
    return [
      failure(
        named,
        'The domain is not registered.',
        `postrider domain add ${named} --account ID --use-case ID`,
      ),
    ];
  if (domainCount === 0) return [ok('domains', 'There are no domains.')];
  const results = examined.flatMap((domain) => judgeDomain(domain, platform, named !== null));
  const omitted = named === null ? domainCount - examined.length : 0;
  if (omitted > 0)
    results.push(
      unknown(
        'further domains',
        `${omitted} domains were not examined; the worst come first.`,
        'postrider doctor --domain NAME',
      ),
    );
  return results;
}

function judgeDomain(examined: ExaminedDomain, platform: Platform, isNamed: boolean): Result[] {
  const { row, results } = examined;
  // A domain that has never been verified is being set up by its owner.
  const isOperating = isNamed || row.status !== 'PENDING';
  const reported = REPORTED_CHECKS.filter((name) => results[name].isOmitted !== true);
  const findings = reported.flatMap((name): Result[] => {
    const { verdict, hint } = results[name];
    const subject = `${row.name}: ${checkOf(name).label}`;
    if (verdict === 'unknown') return [unknown(subject, hint)];
    const fix = fixOf(name, examined, platform);
    if (verdict === 'fail') {
      const isFatal = checkOf(name).isRequired && isOperating;
      return [(isFatal ? failure : warning)(subject, hint, fix)];
    }
    return [];
  });
  const passed = reported.filter((name) => results[name].verdict === 'pass').length;
  return findings.length > 0 ? findings : [ok(row.name, `All ${passed} records pass.`)];
}

/** The record to publish; `postrider zone` where it is published, and a record of the platform that it names is wrong. */
function fixOf(name: ReportedCheck, examined: ExaminedDomain, platform: Platform): string | undefined {
  const record = recordOf(name, examined, platform);
  if (record === null) return undefined;
  return record.type === 'TXT' && record.value === examined.results[name].found
    ? 'postrider zone'
    : zoneLines([record]);
}

/** The record that passes, merged with what is published; null: there is none to publish yet. */
function recordOf(name: ReportedCheck, { row, keys, results }: ExaminedDomain, platform: Platform) {
  const build = checkOf(name).record?.build;
  if (build === undefined) return null;
  const record: DnsRecord = build({ domain: row, keys, platform });
  if (record.value === IN_PROGRESS) return null;
  const { type, priority, ttl = FIX_TTL } = record;
  const value = type === 'TXT' ? results[name].expected : record.value;
  return { name: record.name, type, value, ttl, ...(priority === undefined ? {} : { priority }) };
}

/**
 * Whether mail of a domain passes DMARC: by DKIM, whose `d=` is the domain itself, and by SPF of the return path, which is
 * below the domain and therefore aligned only in relaxed mode (RFC 9989 §4.4). A failure if neither is aligned, a warning if
 * only one of them is, `ok` if both are or no DMARC policy applies. Unknown when DNS did not answer.
 */
export async function examineAlignment({ domains, view }: DoctorContext): Promise<Result[]> {
  const verified = (await domains()).filter(({ row }) => row.status !== 'PENDING');
  return Promise.all(
    verified.map(async (domain) => judgeAlignment(domain, await discoverPolicy(view, domain.row.name))),
  );
}

function judgeAlignment({ row, results }: ExaminedDomain, discovery: Discovery): Result {
  const { name: domain, return_path: returnPath } = row;
  const { verdict: dkim } = results.dkim;
  const { verdict: returnPathSpf } = results.returnPathSpf;
  if (discovery.unknown !== null || dkim === 'unknown')
    return unknown(domain, 'DNS gave no answer on the policy or the DKIM key.');
  const { found } = discovery;
  if (found === null) return ok(domain, 'No DMARC policy applies.');
  const strictSpf = found.record.tags.get('aspf')?.toLowerCase() === 's';
  const spfAligned = returnPath === 'customer' && returnPathSpf === 'pass' && !strictSpf;
  const effect =
    found.policy === 'none' ? 'the reports will show it as failed' : `receivers ${found.policy} it`;
  const verify = `postrider domain verify ${domain}`;
  if (dkim === 'fail' && !spfAligned)
    return failure(
      domain,
      `Mail has neither an aligned DKIM signature nor an aligned SPF pass: ${effect}.`,
      verify,
    );
  if (dkim === 'fail')
    return warning(
      domain,
      'Mail passes DMARC by SPF alone, so forwarded mail fails: the DKIM key is not in DNS.',
      verify,
    );
  if (spfAligned) return ok(domain, `DKIM and SPF are aligned (${found.tag}=${found.policy}).`);
  if (returnPathSpf === 'unknown')
    return unknown(domain, 'DNS gave no answer on the SPF of the return path.');
  return warning(
    domain,
    strictSpf
      ? 'Mail passes DMARC by DKIM alone: with aspf=s the return path does not count.'
      : 'Mail passes DMARC by DKIM alone: the SPF of the return path does not pass or belongs to the platform.',
    strictSpf
      ? zoneLines([
          {
            name: `_dmarc.${found.at}`,
            type: 'TXT',
            value: withoutStrictSpf(found.record.text),
            ttl: FIX_TTL,
          },
        ])
      : verify,
  );
}

function withoutStrictSpf(record: string): string {
  return record
    .split(';')
    .map((tag) => tag.trim())
    .filter((tag) => tag !== '' && !/^aspf\s*=/i.test(tag))
    .join('; ');
}
