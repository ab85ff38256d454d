import type { MxRecord } from '../../dns/resolver.ts';
import type { DnsView, Seen } from '../dns-view.ts';
import { fail, type Judgement, listed, pass, unknown } from './check.ts';
import { doubledName } from './misplaced.ts';

/** Whether bounces and complaints come to us: one of the mail hosts of the return path is our own name. */
export async function checkMx(
  view: DnsView,
  subject: { domain: string; host: string; hostname: string },
): Promise<Judgement> {
  const { domain, host, hostname } = subject;
  const answer = await view.mx(host);
  const judgement = judgeMx(host, hostname, answer);
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
