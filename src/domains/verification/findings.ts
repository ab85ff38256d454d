import type { DkimKeyRow, DomainRow } from '../../store/domains/domains.ts';
import { keyRecordValue } from '../key-record.ts';
import { linkHost, returnPathHost } from '../names.ts';
import { configuredAddresses, egressSet } from '../platform/egress-addresses.ts';
import { altDkimHost, type Platform, spfHost, trackHost } from '../platform/platform.ts';
import { reportAddress } from '../records.ts';
import { activeKey, pendingKey } from '../rotation.ts';
import { checkAltDkim } from './checks/alt-dkim.ts';
import type { Finding, Judgement, Verdict } from './checks/check.ts';
import { checkKey } from './checks/dkim.ts';
import { checkDmarc } from './checks/dmarc.ts';
import { checkMx } from './checks/mx.ts';
import { checkSpf, type SpfJudgement, type SpfSubject } from './checks/spf.ts';
import { checkTracking } from './checks/tracking.ts';
import type { DnsView } from './dns-view.ts';

/**
 * All checks of one domain over one view of DNS. What is found here is only found: what follows from it is
 * decided in outcome.ts.
 */
export interface Findings {
  /** In the order in which they are shown. */
  checks: Finding[];
  /** The pending DKIM key, when its record was seen. */
  seenKey: number | null;
  /** The host for tracked links, null for the platform's; undefined: not known. */
  trackingHost: string | null | undefined;
  /** Whose envelope sender passes SPF; undefined: not known. */
  returnPath: DomainRow['return_path'] | undefined;
  /** Whether SPF lets the secondary lane's mail pass. */
  altSpf: Verdict;
}

export interface CheckSurroundings {
  view: DnsView;
  platform: Platform;
  /** Whether a host answers over HTTPS with a valid certificate for its name. */
  answersHttps: (host: string) => Promise<boolean>;
}

export async function examine(
  surroundings: CheckSurroundings,
  domain: DomainRow,
  keys: readonly DkimKeyRow[],
): Promise<Findings> {
  const { view, platform, answersHttps } = surroundings;
  const { name } = domain;
  const { hostname } = platform;
  const target = altDkimHost(platform, domain.alt_domain_id);
  const secondary = activeKey(keys, 'secondary');

  const [dkim, spf, dmarc, mx, tracking, altDkim] = await Promise.all([
    examineDkim(view, name, keys),
    examineSpf(view, platform, name),
    checkDmarc(view, { domain: name, reportTo: reportAddress(name), policy: platform.dmarcPolicy }),
    checkMx(view, {
      domain: name,
      host: returnPathHost(name),
      hostname,
      hasKnownAddress: platform.egress.some((entry) => configuredAddresses(entry).length > 0),
    }),
    checkTracking(view, {
      custom: domain.tracking_domain,
      usual: linkHost(name),
      target: trackHost(platform),
      answersHttps: platform.publicUrl.startsWith('https:') ? answersHttps : null,
    }),
    checkAltDkim(
      view,
      secondary === undefined
        ? null
        : { domain: name, selector: secondary.selector, publicKey: secondary.public_key },
      target,
    ),
  ]);
  const { host, ...trackingJudgement } = tracking;
  return {
    checks: [
      dkim.finding,
      { check: 'spf', ...spf.primary },
      { check: 'dmarc', ...dmarc },
      { check: 'mx', ...mx, expected: `MX 10 ${hostname}` },
      { check: 'tracking', ...trackingJudgement, expected: `CNAME ${trackHost(platform)}` },
      { check: 'altDkim', ...altDkim, expected: `CNAME ${target}` },
      { check: 'returnPathSpf', ...spf.returnPath },
    ],
    seenKey: dkim.seenKey,
    trackingHost: host,
    returnPath: spf.choice,
    altSpf: spf.secondary,
  };
}

/** During a rotation either key will do, and the record to publish is the new one's. */
async function examineDkim(
  view: DnsView,
  domain: string,
  keys: readonly DkimKeyRow[],
): Promise<{ finding: Finding; seenKey: number | null }> {
  const judge = (key: DkimKeyRow) =>
    checkKey(view, { domain, selector: key.selector, publicKey: key.public_key });
  const active = activeKey(keys);
  if (active === undefined) throw new Error(`${domain} has no key that signs`);
  const pending = pendingKey(keys);
  const finding = (judgement: Judgement): Finding => ({
    check: 'dkim',
    expected: keyRecordValue((pending ?? active).public_key),
    ...judgement,
  });
  if (pending === undefined) return { finding: finding(await judge(active)), seenKey: null };
  const [fresh, present] = await Promise.all([judge(pending), judge(active)]);
  if (fresh.verdict === 'pass') return { finding: finding(fresh), seenKey: pending.key_id };
  const hint = `The key is being changed and the new one is not seen yet: ${fresh.hint}`;
  return {
    finding: finding({ ...present, hint: present.verdict === 'pass' ? hint : `${hint} ${present.hint}` }),
    seenKey: null,
  };
}

interface SpfFindings {
  primary: SpfJudgement;
  returnPath: SpfJudgement;
  choice: Findings['returnPath'];
  secondary: Verdict;
}

async function examineSpf(view: DnsView, platform: Platform, name: string): Promise<SpfFindings> {
  const egress = await egressSet(view, platform, null);
  const ours = { zone: name, include: spfHost(platform), egress, helo: platform.hostname };
  const [primary, returnPath, secondary] = await Promise.all([
    checkSpf(view, { ...ours, domain: name }),
    checkSpf(view, { ...ours, domain: returnPathHost(name) }),
    examineAltSpf(view, platform, { ...ours, domain: name }),
  ]);
  const platformsOwn = { ...ours, domain: platform.hostname, zone: platform.hostname };
  return {
    primary,
    returnPath,
    secondary,
    choice: await chooseReturnPath(view, platform, returnPath, platformsOwn),
  };
}

/** The secondary lane's mail: by its addresses; through a relay, by the record that lists the relay's. */
async function examineAltSpf(view: DnsView, platform: Platform, subject: SpfSubject): Promise<Verdict> {
  const { secondary } = platform;
  const lane =
    secondary.type === 'builtin'
      ? { ...subject, egress: await egressSet(view, platform, secondary.pool) }
      : {
          ...subject,
          include: secondary.spfInclude ?? subject.include,
          egress: { addresses: [], unknown: null },
        };
  return (await checkSpf(view, lane)).verdict;
}

/** Contract §9: the platform's own only where the customer's does not pass SPF and the platform's does. */
async function chooseReturnPath(
  view: DnsView,
  platform: Platform,
  customer: Judgement,
  platformsOwn: SpfSubject,
): Promise<Findings['returnPath']> {
  if (platform.returnPath !== 'auto') return platform.returnPath;
  if (customer.verdict === 'pass') return 'customer';
  if (customer.verdict === 'unknown') return undefined;
  const { verdict } = await checkSpf(view, platformsOwn);
  if (verdict === 'unknown') return undefined;
  return verdict === 'pass' ? 'platform' : 'customer';
}
