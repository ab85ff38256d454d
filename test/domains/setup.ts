import { randomBytes } from 'node:crypto';
import { onTestFinished } from 'vitest';
import type { AccountLimitDefaults } from '../../src/accounts/limits.ts';
import { createLog } from '../../src/core/log.ts';
import { systemRandom } from '../../src/core/random.ts';
import { isRefusal, type Refusal } from '../../src/core/refusal.ts';
import { createSeal } from '../../src/core/seal.ts';
import { createResolver } from '../../src/dns/resolver.ts';
import type { DnsRecord } from '../../src/domains/dns-record.ts';
import type { PlatformOptions } from '../../src/domains/platform/platform.ts';
import { createDomains, type DomainsContext, type DomainsParts } from '../../src/domains/service.ts';
import type { DomainRow } from '../../src/store/domains/domains.ts';
import { startDnsServer } from '../support/dns-server.ts';
import { PATIENCE_MS } from '../support/patience.ts';
import { fixedKeys } from '../support/rsa-keys.ts';
import { heldClock, insertAccount, startStore } from '../support/store.ts';

/**
 * Domains as in the daemon: a real database, a real resolver, and a DNS server with the records that the test
 * publishes. Two accounts, acct_one and acct_two; the platform is mail.example.net and sends from 192.0.2.25.
 */
export async function startDomains(
  options: Partial<DomainsContext & DomainsParts> & {
    platform?: Partial<PlatformOptions>;
    timeoutMs?: number;
    limits?: AccountLimitDefaults;
  } = {},
) {
  const { platform, timeoutMs = PATIENCE_MS, limits = {}, ...deps } = options;
  const clock = heldClock();
  const store = startStore(clock, limits);
  const { tables, writer, ids } = store;
  tables.domains.remove('domain_one');
  insertAccount(tables, 'acct_two', clock.now());
  const dns = await startDnsServer();
  const resolver = createResolver({
    resolvers: [dns.address],
    timeoutMs,
    monotonic: clock,
    random: systemRandom,
  });
  const events: { kind: string; domain: string; fields: Record<string, unknown> }[] = [];
  const config = {
    hostname: 'mail.example.net',
    delivery: { egress: [{ address: '192.0.2.25', pools: ['default'] }], returnPath: 'auto' as const },
    secondary: { type: 'builtin' as const, pool: 'secondary' },
    public: { url: 'http://127.0.0.1:8081' },
    verification: { dmarcPolicy: 'enforced' as const },
    regions: [
      { code: 'local', name: 'This server' },
      { code: 'eu', name: 'Europe' },
    ],
    ...platform,
  };
  const context = {
    config,
    tables,
    writer,
    clock,
    monotonic: clock,
    ids,
    log: createLog({ level: 'silent', hashAddresses: false }),
    seal: createSeal(randomBytes(32), systemRandom),
    ...deps,
  };
  const domains = createDomains(context, {
    resolver,
    answersHttps: () => Promise.resolve(true),
    recordDomainEvent: (_, { kind, domain, fields }) => events.push({ kind, domain: domain.name, fields }),
    dropQueued: () => {},
    mayAdd: store.limits.mayAdd.domains,
    generateKey: fixedKeys(),
    ...deps,
  });
  onTestFinished(async () => {
    await domains.jobs.stop();
    resolver.close();
    await dns.close();
  });

  return {
    ...store,
    domains,
    dns,
    resolver,
    events,
    /** Publishes the platform's own records in place of the previous ones. */
    publishPlatform: async () => {
      const records = await domains.zone();
      for (const { name } of records) dns.remove(name);
      dns.publish(records);
    },
    /** Registers a domain and provisions its secondary lane. */
    register: async (domain: string, accountId = 'acct_one', useCaseId = 'tx-local'): Promise<DomainRow> => {
      const result = accepted(await domains.register(accountId, { domain, useCaseId }));
      await domains.provisionSecondary(result.domain.domain_id);
      return accepted(domains.get(accountId, result.domain.domain_id));
    },
    /** Publishes the domain's required records. */
    publish: (domain: DomainRow, filter: (record: DnsRecord) => boolean = () => true) => {
      dns.publish(domains.records(domain).dnsRecords.filter(filter));
    },
    verify: async (domain: DomainRow) => accepted(await domains.verify(domain.account_id, domain.domain_id)),
    row: (domain: DomainRow): DomainRow => accepted(domains.get(domain.account_id, domain.domain_id)),
  };
}

export type DomainsSetup = Awaited<ReturnType<typeof startDomains>>;

/** The value; throws for a refusal. */
export function accepted<T>(value: T | Refusal): T {
  if (isRefusal(value)) throw new Error(`refused: ${value.code} ${value.message}`);
  return value;
}

/** The four required flags as letters: `D` DKIM, `S` SPF, `M` DMARC, `X` MX; `-` for a check that does not pass. */
export function flagsOf(row: DomainRow): string {
  const flags = [row.dkim_enabled, row.spf_configured, row.dmarc_configured, row.mx_configured];
  return flags.map((flag, at) => (flag === 1 ? 'DSMX'.charAt(at) : '-')).join('');
}
