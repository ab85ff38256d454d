import { addressesOf, type DnsView, type LookupResult } from '../../../dns/dns-view.ts';
import type { MxRecord } from '../../../dns/resolver.ts';
import type { DnsRecord, RecordContext } from '../../dns-record.ts';
import { returnPathHost } from '../../names.ts';
import { configuredAddresses } from '../../platform/egress-addresses.ts';
import type { Platform } from '../../platform/platform.ts';
import { type CheckResult, type CheckSubject, fail, type Judgment, listed, pass, unknown } from './check.ts';
import { doubledNameHint } from './misplaced.ts';

/** The MX record of the return path. */
export function mxRecord({ domain, platform }: RecordContext): DnsRecord {
  return {
    type: 'MX',
    name: returnPathHost(domain.name),
    value: platform.hostname,
    description:
      'Return path: bounces and complaints are sent to it. It does not affect the mail that you receive.',
    priority: 10,
  };
}

/**
 * Whether bounces and complaints for the return path of the domain reach us: one of its MX hosts is our name, which has an
 * address.
 */
export async function checkMx({
  view,
  platform,
  domain,
}: CheckSubject<'hostname' | 'egress', 'name'>): Promise<CheckResult> {
  const expected = `MX 10 ${platform.hostname}`;
  const host = returnPathHost(domain.name);
  const answer = await view.mx(host);
  const judgment = judgeMx(host, platform.hostname, answer);
  if (judgment.verdict === 'pass') return { ...(await requireAddress(view, judgment, platform)), expected };
  if (answer.kind !== 'absent') return { ...judgment, expected };
  const doubled = `${host}.${domain.name}`;
  const [elsewhere, alias] = await Promise.all([view.mx(doubled), view.cname(host)]);
  const hint =
    elsewhere.kind === 'records'
      ? doubledNameHint(doubled, host, domain.name)
      : alias.kind === 'records'
        ? `${host} is a CNAME to ${alias.records[0]}, which has no MX record. Replace the CNAME with: ${expected}`
        : judgment.hint;
  return { ...fail(null, hint), expected };
}

/** Where the configuration names no address of the platform, as in a first trial, a host name without one is only a hint. */
async function requireAddress(
  view: DnsView,
  judgment: Judgment,
  { hostname, egress }: Pick<Platform, 'hostname' | 'egress'>,
): Promise<Judgment> {
  const addresses = await addressesOf(view, hostname);
  if (addresses.kind === 'records') return judgment;
  if (addresses.kind === 'unknown') return unknown(addresses.reason);
  const hint = `The MX record is correct, but ${hostname} has no A or AAAA record, so bounces cannot reach it: the operator of this platform must publish the records of "postrider zone".`;
  const hasKnownAddress = egress.some((entry) => configuredAddresses(entry).length > 0);
  return hasKnownAddress ? fail(judgment.found, hint) : { ...judgment, hint };
}

function judgeMx(host: string, hostname: string, answer: LookupResult<MxRecord>): Judgment {
  if (answer.kind === 'unknown') return unknown(answer.reason);
  if (answer.kind === 'absent')
    return fail(null, `There is no MX record at ${host}. Publish: MX 10 ${hostname}`);
  const records = answer.records.toSorted((one, two) => one.preference - two.preference);
  const found = records.map(({ preference, exchange }) => `${preference} ${exchange || '.'}`).join('\n');
  const ours = records.find(({ exchange }) => exchange === hostname);
  if (ours === undefined) {
    const others = listed(records.map(({ exchange }) => exchange || '. (no mail accepted)'));
    return fail(
      found,
      `The mail of ${host} goes to ${others}, so bounces and complaints do not reach us. Publish: MX 10 ${hostname}`,
    );
  }
  const preferred = records.filter(
    ({ preference, exchange }) => preference < ours.preference && exchange !== hostname,
  );
  return pass(
    found,
    preferred.length === 0
      ? ''
      : `${listed(preferred.map(({ exchange }) => exchange))} is preferred to ${hostname}: bounces that go there do not reach us.`,
  );
}
