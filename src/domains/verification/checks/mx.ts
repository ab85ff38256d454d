import type { MxRecord } from '../../../dns/resolver.ts';
import { addressesOf, type DnsView, type Seen } from '../dns-view.ts';
import { fail, type Judgement, listed, pass, unknown } from './check.ts';
import { doubledName } from './misplaced.ts';

export interface MxSubject {
  domain: string;
  /** The return path. */
  host: string;
  /** The platform's name. */
  hostname: string;
  /**
   * Whether the configuration names an address of the platform. Without one, as in a first trial, a host name
   * without address is only noted.
   */
  hasKnownAddress: boolean;
}

/** Whether bounces and complaints reach us: a mail host of the return path is our name, and that has an address. */
export async function checkMx(view: DnsView, subject: MxSubject): Promise<Judgement> {
  const { domain, host, hostname } = subject;
  const answer = await view.mx(host);
  const judgement = judgeMx(host, hostname, answer);
  if (judgement.verdict === 'pass') return withAddress(view, judgement, subject);
  if (answer.kind !== 'absent') return judgement;
  const doubled = `${host}.${domain}`;
  const [elsewhere, alias] = await Promise.all([view.mx(doubled), view.cname(host)]);
  if (elsewhere.kind === 'records') return fail(null, doubledName(doubled, host, domain));
  if (alias.kind === 'records') {
    return fail(
      null,
      `${host} is a CNAME to ${alias.records[0]}, which has no MX record. Replace the CNAME by: MX 10 ${hostname}`,
    );
  }
  return judgement;
}

async function withAddress(
  view: DnsView,
  judgement: Judgement,
  { hostname, hasKnownAddress }: MxSubject,
): Promise<Judgement> {
  const addresses = await addressesOf(view, hostname);
  if (addresses.kind === 'records') return judgement;
  if (addresses.kind === 'unknown') return unknown(addresses.why);
  const hint = `The MX record is right, but ${hostname} has no A or AAAA record, so bounces cannot reach it: the operator of this platform must publish the records of "postrider zone".`;
  return hasKnownAddress ? fail(judgement.found, hint) : { ...judgement, hint };
}

export function judgeMx(host: string, hostname: string, answer: Seen<MxRecord>): Judgement {
  if (answer.kind === 'unknown') return unknown(answer.why);
  if (answer.kind === 'absent')
    return fail(null, `There is no MX record at ${host}. Publish: MX 10 ${hostname}`);
  const records = answer.records.toSorted((one, two) => one.preference - two.preference);
  const found = records.map(({ preference, exchange }) => `${preference} ${exchange || '.'}`).join('\n');
  const ours = records.find(({ exchange }) => exchange === hostname);
  if (ours === undefined) {
    const others = listed(records.map(({ exchange }) => exchange || '. (no mail wanted)'));
    return fail(
      found,
      `The mail of ${host} goes to ${others}, so bounces and complaints do not reach us. Publish: MX 10 ${hostname}`,
    );
  }
  const before = records.filter(
    ({ preference, exchange }) => preference < ours.preference && exchange !== hostname,
  );
  return pass(
    found,
    before.length === 0
      ? ''
      : `${listed(before.map(({ exchange }) => exchange))} comes before ${hostname}: bounces that go there do not reach us.`,
  );
}
