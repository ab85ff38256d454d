import { addressesOf, type DnsView, type LookupResult } from '../../../dns/dns-view.ts';
import type { MxRecord } from '../../../dns/resolver.ts';
import type { DnsRecord, RecordContext } from '../../dns-record.ts';
import { returnPathHost } from '../../names.ts';
import { configuredAddresses } from '../../platform/egress-addresses.ts';
import { type CheckContext, type CheckResult, fail, type Judgment, listed, pass, unknown } from './check.ts';
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

/** Whether bounces and complaints for the return path of the domain reach us. */
export async function checkMx({ view, platform, domain }: CheckContext): Promise<CheckResult> {
  const { hostname, egress } = platform;
  const judgment = await checkReturnPath(view, {
    domain: domain.name,
    host: returnPathHost(domain.name),
    hostname,
    hasKnownAddress: egress.some((entry) => configuredAddresses(entry).length > 0),
  });
  return { ...judgment, expected: `MX 10 ${hostname}` };
}

export interface ReturnPath {
  domain: string;
  /** The name that the MX record is at. */
  host: string;
  /** The platform's name. */
  hostname: string;
  /**
   * Whether the configuration names an address of the platform. Without one, as in a first trial, a host name
   * without an address is only a hint.
   */
  hasKnownAddress: boolean;
}

/** Whether bounces and complaints reach us: an MX host of the return path is our name, which has an address. */
export async function checkReturnPath(view: DnsView, returnPath: ReturnPath): Promise<Judgment> {
  const { domain, host, hostname } = returnPath;
  const answer = await view.mx(host);
  const judgment = judgeMx(host, hostname, answer);
  if (judgment.verdict === 'pass') return requireAddress(view, judgment, returnPath);
  if (answer.kind !== 'absent') return judgment;
  const doubled = `${host}.${domain}`;
  const [elsewhere, alias] = await Promise.all([view.mx(doubled), view.cname(host)]);
  if (elsewhere.kind === 'records') return fail(null, doubledNameHint(doubled, host, domain));
  if (alias.kind === 'records') {
    return fail(
      null,
      `${host} is a CNAME to ${alias.records[0]}, which has no MX record. Replace the CNAME with: MX 10 ${hostname}`,
    );
  }
  return judgment;
}

async function requireAddress(
  view: DnsView,
  judgment: Judgment,
  { hostname, hasKnownAddress }: ReturnPath,
): Promise<Judgment> {
  const addresses = await addressesOf(view, hostname);
  if (addresses.kind === 'records') return judgment;
  if (addresses.kind === 'unknown') return unknown(addresses.reason);
  const hint = `The MX record is correct, but ${hostname} has no A or AAAA record, so bounces cannot reach it: the operator of this platform must publish the records of "postrider zone".`;
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
