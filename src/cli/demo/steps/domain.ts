import type { ZoneRecord } from '../../../dns/zone-record.ts';
import type { Domains } from '../../../domains/service.ts';
import { assertStep, type DemoEnv } from '../client.ts';
import type { DnsRecordOutput } from '../output.ts';
import type { PrivateDns } from '../servers/dns.ts';
import { NAMES } from '../servers/names.ts';

/** Registers a domain for both streams, publishes its records and verifies them. */
export async function verifyDomain(
  { call, output, webhooks }: DemoEnv,
  { domains, dns }: { domains: Domains; dns: PrivateDns },
): Promise<void> {
  const register = (useCaseId: string) =>
    call('PUT', '/web-setup/domains', 201, { domain: NAMES.sender, useCaseId });
  const verify = (domainId: string) => call('POST', `/web-setup/domains/${domainId}/verify`, 200);

  output.step(`Add the domain ${NAMES.sender} for transactional and marketing mail`);
  const both = [await register('tx-local'), await register('mk-local')] as const;
  const records = distinct(both.flatMap(({ dnsRecords }) => dnsRecords));
  output.line('Records to publish; each stream has its own keys:');
  output.records(records);
  const before = await verify(both[0].domainId);
  output.line(
    `verified before publication: status ${before.status}, DKIM ${before.dkimEnabled}, SPF ${before.spfConfigured}`,
  );

  output.step('Publish and verify the records');
  dns.publish([
    ...(await domains.zone()),
    ...publishable(records),
    ...publishable(both.flatMap(({ recommendedDnsRecords }) => recommendedDnsRecords)),
  ]);
  for (const { domainId } of both) {
    const { status, checks } = await verify(domainId);
    output.line(`status ${status}`);
    assertStep(status === 'SUCCESS', `the domain is ${status}: ${JSON.stringify(checks)}`);
  }
  output.webhook(await webhooks.received('domain_verified', 'domain_verified'));
}

function distinct(records: readonly DnsRecordOutput[]): DnsRecordOutput[] {
  return [...new Map(records.map((record) => [`${record.type} ${record.name}`, record])).values()];
}

function publishable(records: readonly DnsRecordOutput[]): ZoneRecord[] {
  return records
    .filter(({ value }) => value !== 'Creation in progress')
    .map((record) => ({ ...record, type: record.type as ZoneRecord['type'], ttl: record.ttl ?? 60 }));
}
