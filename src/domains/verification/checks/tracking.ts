import type { Clock } from '../../../core/clock.ts';
import { addressesOf, type DnsView } from '../../../dns/dns-view.ts';
import type { Writer } from '../../../store/database/writer.ts';
import type { Tables } from '../../../store/tables.ts';
import type { DnsRecord, RecordContext } from '../../dns-record.ts';
import { linkHost } from '../../names.ts';
import type { HttpsProbe } from '../../platform/https-probe.ts';
import { trackHost } from '../../platform/platform.ts';
import {
  type CheckContext,
  type CheckResult,
  type CheckSubject,
  fail,
  type Judgment,
  pass,
  unknown,
} from './check.ts';

/* The host of tracked links: the domain's own host only while it leads here, so that no link is ever broken. */

/**
 * The CNAME from `link.<domain>` to `track.<hostname>`. It is listed with the required records, but a domain is
 * verified without it, too.
 */
export function trackingRecord({ domain, platform }: RecordContext): DnsRecord {
  return {
    type: 'CNAME',
    name: linkHost(domain.name),
    value: trackHost(platform),
    description: 'Open and click tracking under your own name.',
    purpose: 'Tracking',
  };
}

/**
 * The verdict is that of the preferred host: the custom one, if there is one. `changes.tracking_host` is the host for links,
 * the first one that passes: null for the platform's own, absent while it is not known. With an https `publicUrl` the host
 * must answer over HTTPS.
 */
export async function checkTracking({
  view,
  platform,
  domain,
  answersHttps,
}: CheckSubject<'hostname' | 'publicUrl', 'name' | 'tracking_domain'> &
  Pick<CheckContext, 'answersHttps'>): Promise<CheckResult> {
  const target = trackHost(platform);
  const probe = platform.publicUrl.startsWith('https:') ? answersHttps : null;
  const standard = linkHost(domain.name);
  const custom = domain.tracking_domain;
  const hosts = custom === null ? [standard] : [custom, standard];
  const judged = await Promise.all(
    hosts.map(async (host) => ({ host, ...(await checkHost(view, host, target, probe)) })),
  );
  const host = firstPassing(judged);
  const [{ verdict, found, hint } = unknown('')] = judged;
  const until = custom !== null && verdict === 'fail' ? ` Until then links use ${currentHost(host)}.` : '';
  return {
    verdict,
    found,
    hint: `${hint}${until}`,
    expected: `CNAME ${target}`,
    changes: host === undefined ? {} : { tracking_host: host },
  };
}

/** The setting with the scheme and the port for which the stored link hosts were checked. */
const CHECKED_FOR = 'link-hosts-checked-for';

/**
 * Resets stored link hosts that were checked for links of another scheme or port than those of `publicUrl`, if these use
 * https: the hosts may not answer there. Without the setting, `public.url` is taken to be the one that they were checked for.
 */
export async function resetUncheckedHosts(
  { tables, writer, clock }: { tables: Tables; writer: Writer; clock: Clock },
  publicUrl: string,
): Promise<void> {
  const { protocol, port } = new URL(publicUrl);
  const current = `${protocol}${port}`;
  const before = tables.settings.get(CHECKED_FOR);
  if (before === current) return;
  await writer.run((tx) => {
    if (before !== null && protocol === 'https:') tx.domains.resetLinkHosts(clock.now());
    tx.settings.put(CHECKED_FOR, current);
  });
}

function currentHost(host: string | null | undefined): string {
  if (host === undefined) return 'the same host as before';
  return host ?? "the platform's own address";
}

/** The first host that passes, null: none; undefined when the result of one before it is unknown. */
function firstPassing(hosts: (Judgment & { host: string })[]): string | null | undefined {
  for (const { host, verdict } of hosts) {
    if (verdict === 'unknown') return undefined;
    if (verdict === 'pass') return host;
  }
  return null;
}

async function checkHost(
  view: DnsView,
  host: string,
  target: string,
  answersHttps: HttpsProbe | null,
): Promise<Judgment> {
  const [alias, addresses, ours] = await Promise.all([
    view.cname(host),
    addressesOf(view, host),
    addressesOf(view, target),
  ]);
  const failed = [alias, addresses, ours].find((answer) => answer.kind === 'unknown');
  if (failed) return unknown(failed.reason);
  const found =
    alias.kind === 'records'
      ? `CNAME ${alias.records[0]}`
      : addresses.kind === 'records'
        ? addresses.records.join('\n')
        : null;
  if (found === null) return fail(null, `There is no record at ${host}. Publish: CNAME ${target}`);
  const pointsHere = alias.kind === 'records' && alias.records.includes(target);
  if (ours.kind !== 'records') {
    return pointsHere
      ? fail(
          found,
          `The CNAME is correct, but ${target} has no address yet: the operator of this platform must publish the records of "postrider zone".`,
        )
      : fail(found, `${host} does not lead to this platform. Publish: CNAME ${target}`);
  }
  // By address, so that a longer chain of CNAMEs, or a zone that cannot have one, may lead here too.
  const reached =
    addresses.kind === 'records' && addresses.records.some((address) => ours.records.includes(address));
  if (!pointsHere && !reached)
    return fail(found, `${host} does not lead to this platform. Publish: CNAME ${target}`);
  const [address = ''] = ours.records;
  if (answersHttps !== null && !(await answersHttps(host, address))) {
    return fail(
      found,
      `${host} leads here, but does not answer over HTTPS with a valid certificate for that name: let the reverse proxy obtain one, or verify again in a minute if this platform obtains certificates itself.`,
    );
  }
  return pass(found);
}
