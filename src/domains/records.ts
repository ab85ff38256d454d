import type { DomainRow } from '../store/domains/domains.ts';
import type { Tables } from '../store/tables.ts';
import { type DnsRecord, type RecordContext, txtRecord } from './dns-record.ts';
import { optionalSlots, SLOTS, slotHost, slotRecordName } from './key-slots.ts';
import { keyRecordName, keyRecordValue } from './keys.ts';
import { returnPathHost, stsPolicyHost } from './names.ts';
import { type Platform, stsRecordHost, trackHost } from './platform/platform.ts';
import { announcedKey } from './rotation.ts';
import { CHECKS, requiredRecordBuilders } from './verification/checks.ts';

/**
 * The records that the owner of a domain publishes: the required ones belong to the checks of
 * verification/checks.ts, the recommended ones are optional. Values do not depend on what the zone contains; the
 * checks merge them with existing records.
 */
export interface DomainRecords {
  dnsRecords: DnsRecord[];
  recommendedDnsRecords: DnsRecord[];
}

/** Hosts of inbound routes whose records are listed. */
const MAX_INBOUND_HOSTS = 20;

/** `inboundHosts`: those of the inbound routes of the domain. Throws when the domain has no primary DKIM key. */
export function domainRecords(context: RecordContext, inboundHosts: readonly string[] = []): DomainRecords {
  return {
    dnsRecords: requiredRecordBuilders().map((build) => build(context)),
    recommendedDnsRecords: [...recommendedRecords(context), ...inboundRecords(context, inboundHosts)],
  };
}

/** The records of a stored domain. */
export function recordsOf(tables: Tables, platform: Platform, domain: DomainRow): DomainRecords {
  const keys = tables.dkimKeys.of(domain.domain_id);
  const inboundHosts = tables.inboundRoutes.hostsOf(domain.domain_id, MAX_INBOUND_HOSTS);
  return domainRecords({ domain, keys, platform }, inboundHosts);
}

/** Never needed for SUCCESS. */
function recommendedRecords(context: RecordContext): DnsRecord[] {
  const host = returnPathHost(context.domain.name);
  return [
    ...previousKeyRecords(context),
    ...slotRecords(context),
    CHECKS.returnPathSpf.record.build(context),
    txtRecord({
      name: `_smtp._tls.${host}`,
      value: `v=TLSRPTv1; rua=mailto:tlsrpt@${host}`,
      description: 'TLS reports (RFC 8460): other servers report failed encryption to the return path.',
      purpose: 'TLS-RPT',
    }),
    ...stsRecords(context),
  ];
}

function inboundRecords({ platform }: RecordContext, hosts: readonly string[]): DnsRecord[] {
  return hosts.map((name) => ({
    type: 'MX',
    name,
    value: platform.hostname,
    description: `Inbound mail: the mail of the inbound routes at ${name} is sent to this server.`,
    purpose: 'Inbound mail',
    priority: 10,
  }));
}

/** Aliases of the platform's names, which has the policy and its id: nothing changes here when the policy does. */
function stsRecords({ domain, platform }: RecordContext): DnsRecord[] {
  if (platform.stsPolicy === null) return [];
  const common = { type: 'CNAME', purpose: 'MTA-STS', ttl: SLOT_TTL } as const;
  return [
    {
      ...common,
      name: stsPolicyHost(domain.name),
      value: trackHost(platform),
      description: 'MTA-STS (RFC 8461): the host of the policy of the return path. Publish it first.',
    },
    {
      ...common,
      name: `_mta-sts.${returnPathHost(domain.name)}`,
      value: stsRecordHost(platform),
      description: 'MTA-STS (RFC 8461): the id of the policy, with which senders begin to apply it.',
    },
  ];
}

/** Keys whose records must stay published: the active key during a rotation, and retiring keys. */
function previousKeyRecords({ domain, keys }: RecordContext): DnsRecord[] {
  const announced = announcedKey(keys);
  return keys
    .filter((key) => key.lane === 'primary' && key.slot === null && key !== announced)
    .map((key) =>
      txtRecord({
        name: keyRecordName({ domain: domain.name, selector: key.selector }),
        value: keyRecordValue(key.public_key),
        description:
          key.state === 'active'
            ? 'DKIM key that signs until the new one is found in DNS: keep it until the rotation is complete.'
            : 'Former DKIM key: keep it for some more days, because mail signed with it is still in transit.',
        purpose: 'Previous DKIM key',
      }),
    );
}

/** CNAME records into the platform's zone: published once, they let keys be replaced and added there. */
function slotRecords({ domain, platform }: RecordContext): DnsRecord[] {
  return optionalSlots(platform.keyPolicy).map((slot) => ({
    type: 'CNAME',
    name: slotRecordName(domain, slot),
    value: slotHost(platform, domain.alt_domain_id, slot),
    description: SLOTS[slot].algorithm === 'ed25519' ? ED25519 : ROTATION,
    purpose: SLOTS[slot].algorithm === 'ed25519' ? 'Ed25519 DKIM' : 'DKIM rotation',
    ttl: SLOT_TTL,
  }));
}

const SLOT_TTL = 3600;
const ROTATION =
  'Lets the platform replace the DKIM key regularly without another change of your zone: publish all records of this purpose.';
const ED25519 = 'A second DKIM signature with an Ed25519 key (RFC 8463), in addition to the first one.';
