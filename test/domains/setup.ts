import { randomBytes } from 'node:crypto';
import { onTestFinished } from 'vitest';
import type { AccountLimitDefaults } from '../../src/accounts/limits.ts';
import { createLog } from '../../src/core/log.ts';
import { systemRandom } from '../../src/core/random.ts';
import { isRefusal, type Refusal } from '../../src/core/refusal.ts';
import { createSeal } from '../../src/core/seal.ts';
import { createResolver } from '../../src/dns/resolver.ts';
import type { PlatformSettings } from '../../src/domains/platform/platform.ts';
import type { DnsRecord } from '../../src/domains/records.ts';
import { createDomains, type DomainsHouse } from '../../src/domains/service.ts';
import type { DomainRow } from '../../src/store/domains/domains.ts';
import { startDnsServer } from '../support/dns-server.ts';
import { heldClock, insertAccount, startStore } from '../support/store.ts';

/**
 * The domains room as the daemon has it: a real database, a real resolver, and a DNS server on a socket that
 * says what the test wants. Two accounts, acct_one and acct_two; the platform is mail.example.net and sends
 * from 192.0.2.25.
 */
export async function startHouse(
  wish: Partial<DomainsHouse> & {
    settings?: Partial<PlatformSettings>;
    timeoutMs?: number;
    limits?: AccountLimitDefaults;
  } = {},
) {
  const { settings, timeoutMs = 1000, limits = {}, ...parts } = wish;
  const clock = heldClock();
  const store = startStore(clock, limits);
  const { tables, writer, ids } = store;
  tables.domains.remove('domain_one');
  insertAccount(tables, 'acct_two', clock.now());
  const dns = await startDnsServer();
  const resolver = createResolver({ resolvers: [dns.address], timeoutMs, clock, random: systemRandom });
  const events: { kind: string; domain: string; data: Record<string, unknown> }[] = [];
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
    ...settings,
  };
  const domains = createDomains({
    config,
    tables,
    writer,
    clock,
    ids,
    log: createLog({ level: 'silent', hashAddresses: false }),
    seal: createSeal(randomBytes(32), systemRandom),
    resolver,
    answersHttps: () => Promise.resolve(true),
    recordDomainEvent: (_, { kind, domain, data }) => events.push({ kind, domain: domain.name, data }),
    dropQueued: () => {},
    mayAdd: store.limits.mayAdd.domains,
    ...parts,
  });
  onTestFinished(async () => {
    await domains.background.stop();
    resolver.close();
    await dns.close();
  });

  return {
    ...store,
    domains,
    dns,
    resolver,
    events,
    /** The platform's own records as they are now, in place of those before. */
    publishPlatform: async () => {
      const records = await domains.zone();
      for (const { name } of records) dns.remove(name);
      dns.publish(records);
    },
    /** A new domain with its secondary lane set up. */
    register: async (domain: string, accountId = 'acct_one', useCaseId = 'tx-local'): Promise<DomainRow> => {
      const result = accepted(await domains.register(accountId, { domain, useCaseId }));
      await domains.provision(result.domain.domain_id);
      return accepted(domains.get(accountId, result.domain.domain_id));
    },
    /** Puts the domain's records into DNS, as a customer does who follows the list. */
    publish: (domain: DomainRow, wanted: (record: DnsRecord) => boolean = () => true) => {
      dns.publish(domains.records(domain).dnsRecords.filter(wanted));
    },
    verify: async (domain: DomainRow) => accepted(await domains.verify(domain.account_id, domain.domain_id)),
    row: (domain: DomainRow): DomainRow => accepted(domains.get(domain.account_id, domain.domain_id)),
  };
}

export type House = Awaited<ReturnType<typeof startHouse>>;

/** The value, or the test fails with what was refused. */
export function accepted<T>(value: T | Refusal): T {
  if (isRefusal(value)) throw new Error(`refused: ${value.code} ${value.message}`);
  return value;
}

/** The four flags, as letters: `D` DKIM, `S` SPF, `M` DMARC, `X` MX; `-` where one does not pass. */
export function flagsOf(row: DomainRow): string {
  const flags = [row.dkim_enabled, row.spf_configured, row.dmarc_configured, row.mx_configured];
  return flags.map((flag, at) => (flag === 1 ? 'DSMX'.charAt(at) : '-')).join('');
}
