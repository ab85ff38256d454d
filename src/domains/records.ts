import { txtStrings } from '../dns/zone-record.ts';
import type { DkimKeyRow, DomainRow } from '../store/domains/domains.ts';
import { keyRecordName, keyRecordValue } from './key-record.ts';
import { linkHost, returnPathHost } from './names.ts';
import { altDkimHost, type Platform, spfHost, trackHost } from './platform/platform.ts';
import { ownDmarc } from './verification/checks/dmarc-record.ts';
import { ownSpf } from './verification/checks/spf-record.ts';

/**
 * The records that a customer publishes for a domain: six that count, in the order of the interface, and some
 * that are merely good to have. Values are whole; what is already in their zone is the checks' business.
 */
export interface DnsRecord {
  type: 'TXT' | 'CNAME' | 'MX';
  name: string;
  value: string;
  description: string;
  purpose?: string;
  priority?: number;
  ttl?: number;
  /** A TXT value of more than 255 bytes, in the strings that make up its one record (RFC 1035 §3.3). */
  chunks?: string[];
}

/** The value of the secondary record until the lane is set up. */
export const IN_PROGRESS = 'Creation in progress';
const SECONDARY_TTL = 300;
const TXT_STRING = 255;

export type RecordPlatform = Pick<Platform, 'hostname'>;

/** Where receivers send aggregate reports on mail in the domain's name. */
export function reportAddress(domain: string): string {
  return `dmarc@${returnPathHost(domain)}`;
}

/** The selector of the secondary lane: it stands in record 6 before there is a key, so it follows from the id. */
export function secondarySelector(domain: Pick<DomainRow, 'alt_domain_id'>): string {
  return `ps${domain.alt_domain_id.slice(-8)}`;
}

/** The primary key that the customer is to publish: the coming one while a rotation runs. */
export function announcedKey(keys: readonly DkimKeyRow[]): DkimKeyRow | undefined {
  const primary = keys.filter((key) => key.lane === 'primary');
  return primary.find((key) => key.state === 'pending') ?? primary.find((key) => key.state === 'active');
}

/** The six, in order. Throws when the domain has no primary key, which cannot be. */
export function requiredRecords(
  domain: DomainRow,
  keys: readonly DkimKeyRow[],
  platform: RecordPlatform,
): DnsRecord[] {
  const { name } = domain;
  const key = announcedKey(keys);
  if (key === undefined) throw new Error(`domain ${domain.domain_id} has no DKIM key`);
  return [
    txt({
      name: keyRecordName({ domain: name, selector: key.selector }),
      value: keyRecordValue(key.public_key),
      description: 'DKIM public key: receivers verify the signature of your mail with it.',
    }),
    txt({
      name,
      value: ownSpf(spfHost(platform)),
      description:
        'SPF: allows this platform, both its lanes, to send for your domain. A name has one SPF record: if there is one already, add the include to it.',
      purpose: 'SPF',
    }),
    {
      type: 'CNAME',
      name: linkHost(name),
      value: trackHost(platform),
      description: 'Open and click tracking under your own name.',
      purpose: 'Tracking',
    },
    txt({
      name: `_dmarc.${name}`,
      value: ownDmarc(reportAddress(name)),
      description:
        'DMARC, strict policy (supports BIMI): receivers reject mail in your name that is not authenticated. If other systems send for this domain, start with p=none and raise the policy after two weeks of clean reports.',
      purpose: 'DMARC',
    }),
    {
      type: 'MX',
      name: returnPathHost(name),
      value: platform.hostname,
      description:
        'Return path: bounces and complaints come back here. It does not touch the mail you receive.',
      priority: 10,
    },
    {
      type: 'CNAME',
      name: keyRecordName({ domain: name, selector: secondarySelector(domain) }),
      value: domain.alt_provisioned === 1 ? altDkimHost(platform, domain.alt_domain_id) : IN_PROGRESS,
      description: 'DKIM of the secondary lane, which takes over when the primary one is blocked.',
      purpose: 'Secondary DKIM',
      ttl: SECONDARY_TTL,
    },
  ];
}

/** Never needed for SUCCESS. `logoUrl` is the account's, null when it has none. */
export function recommendedRecords(
  domain: DomainRow,
  keys: readonly DkimKeyRow[],
  platform: RecordPlatform,
  logoUrl: string | null,
): DnsRecord[] {
  const { name } = domain;
  const host = returnPathHost(name);
  const logo = logoUrl !== null && /^https:.*\.svg$/i.test(logoUrl) ? logoUrl : `https://${name}/logo.svg`;
  return [
    ...keysToKeep(domain, keys),
    txt({
      name: host,
      value: ownSpf(spfHost(platform)),
      description: 'SPF of the return path: the name that receivers evaluate SPF for.',
      purpose: 'Return path SPF',
    }),
    txt({
      name: `_smtp._tls.${host}`,
      value: `v=TLSRPTv1; rua=mailto:tlsrpt@${host}`,
      description:
        'TLS reports (RFC 8460): other servers tell us when encryption towards the return path fails.',
      purpose: 'TLS-RPT',
    }),
    txt({
      name: `_mta-sts.${host}`,
      value: `v=STSv1; id=${domain.created_at}`,
      description: `MTA-STS (RFC 8461): only together with a policy that names ${platform.hostname} at https://mta-sts.${host}/.well-known/mta-sts.txt; change the id with every change of the policy.`,
      purpose: 'MTA-STS',
    }),
    txt({
      name: `default._bimi.${name}`,
      value: `v=BIMI1; l=${logo}`,
      description:
        'BIMI: your logo beside your mail. Put in the address of a square SVG (Tiny PS); some receivers also ask for a certificate (a=).',
      purpose: 'BIMI',
    }),
  ];
}

/** Keys whose records still have to stand: the one that signs during a rotation, and those that signed lately. */
function keysToKeep(domain: DomainRow, keys: readonly DkimKeyRow[]): DnsRecord[] {
  const announced = announcedKey(keys);
  return keys
    .filter((key) => key.lane === 'primary' && key !== announced)
    .map((key) =>
      txt({
        name: keyRecordName({ domain: domain.name, selector: key.selector }),
        value: keyRecordValue(key.public_key),
        description:
          key.state === 'active'
            ? 'DKIM key that signs until the new one is seen in DNS: keep it until the change is done.'
            : 'Former DKIM key: keep it some days more, mail signed with it is still under way.',
        purpose: 'Previous DKIM key',
      }),
    );
}

function txt(record: Omit<DnsRecord, 'type' | 'chunks'>): DnsRecord {
  const whole: DnsRecord = { type: 'TXT', ...record };
  if (Buffer.byteLength(record.value) <= TXT_STRING) return whole;
  return { ...whole, chunks: txtStrings(record.value).map((string) => string.toString()) };
}
