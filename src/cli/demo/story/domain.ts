import type { ZoneRecord } from '../../../dns/zone-record.ts';
import type { Domains } from '../../../domains/service.ts';
import type { PrivateDns } from '../world/dns.ts';
import { NAMES } from '../world/names.ts';
import { expectThat, type Scene } from './scene.ts';
import type { Published } from './teller.ts';

/** A domain is registered for both kinds of mail; its records are published, by hand as it were, and verified. */
export async function verifyDomain(
  { call, tell, shop }: Scene,
  { domains, dns }: { domains: Domains; dns: PrivateDns },
): Promise<void> {
  const register = (useCaseId: string) =>
    call('PUT', '/web-setup/domains', 201, { domain: NAMES.sender, useCaseId });
  const verify = (domainId: string) => call('POST', `/web-setup/domains/${domainId}/verify`, 200);

  tell.step(`The domain ${NAMES.sender} is registered, for orders and for newsletters`);
  const both = [await register('tx-local'), await register('mk-local')] as const;
  const records = distinct(both.flatMap(({ dnsRecords }) => dnsRecords));
  tell.line('These records are to be published; each kind of mail has keys of its own:');
  tell.records(records);
  const before = await verify(both[0].domainId);
  tell.line(
    `looked for too early: status ${before.status}, DKIM ${before.dkimEnabled}, SPF ${before.spfConfigured}`,
  );

  tell.step('The records are published, and verified over DNS');
  dns.publish([
    ...(await domains.zone()),
    ...publishable(records),
    ...publishable(both.flatMap(({ recommendedDnsRecords }) => recommendedDnsRecords)),
  ]);
  for (const { domainId } of both) {
    const { status, checks } = await verify(domainId);
    tell.line(`status ${status}`);
    expectThat(status === 'SUCCESS', `the domain is ${status}: ${JSON.stringify(checks)}`);
  }
  tell.webhook(await shop.told('domain_verified', 'domain_verified'));
}

function distinct(records: readonly Published[]): Published[] {
  return [...new Map(records.map((record) => [`${record.type} ${record.name}`, record])).values()];
}

function publishable(records: readonly Published[]): ZoneRecord[] {
  return records
    .filter(({ value }) => value !== 'Creation in progress')
    .map((record) => ({ ...record, type: record.type as ZoneRecord['type'], ttl: record.ttl ?? 60 }));
}
