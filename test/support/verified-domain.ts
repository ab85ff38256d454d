import type { ApiClient, CreatedDomain, VerifiedDomain } from './api-client.ts';
import type { RunningDaemon } from './daemon.ts';
import type { DnsServer } from './dns-server.ts';
import type { PrintedRecord } from './knot.ts';

/** The platform's own zone, from `postrider zone`. */
async function platformZone(daemon: Pick<RunningDaemon, 'cli'>): Promise<PrintedRecord[]> {
  return JSON.parse(await daemon.cli('zone', '--json'));
}

/** Publishes the platform's zone in place of the former records of its names. */
export async function publishPlatform(daemon: Pick<RunningDaemon, 'cli'>, dns: DnsServer): Promise<void> {
  const records = await platformZone(daemon);
  for (const { name } of records) dns.remove(name);
  dns.publish(records);
}

/** Registers a domain, publishes the records that the API returns, and verifies it. */
export async function verifiedDomain(
  daemon: Pick<RunningDaemon, 'api' | 'cli'>,
  dns: DnsServer,
  name: string,
  options: { api?: ApiClient; useCaseId?: string } = {},
): Promise<CreatedDomain> {
  const { api = daemon.api, useCaseId = 'tx-local' } = options;
  const { data } = await api.put<CreatedDomain>('/web-setup/domains', { domain: name, useCaseId });
  dns.publish(data.dnsRecords.filter(({ value }) => value !== 'Creation in progress'));
  await publishPlatform(daemon, dns);
  const { data: verified } = await api.post<VerifiedDomain>(`/web-setup/domains/${data.domainId}/verify`);
  if (verified.status !== 'SUCCESS')
    throw new Error(`${name} is not verified: ${JSON.stringify(verified.checks)}`);
  return data;
}
