import type { KeyObject } from 'node:crypto';
import { type Clock, MINUTE } from '../core/clock.ts';
import type { Ids } from '../core/ids.ts';
import type { Log } from '../core/log.ts';
import { isRefusal, type Refusal, refuse } from '../core/refusal.ts';
import type { Seal } from '../core/seal.ts';
import type { Resolver } from '../dns/resolver.ts';
import type { ZoneRecord } from '../dns/zone-record.ts';
import { generateDkimKey } from '../mail/dkim.ts';
import type { DomainRow, UseCase } from '../store/domains/domains.ts';
import type { MayAdd, Tables } from '../store/tables.ts';
import type { Writer } from '../store/writer.ts';
import { createDomainGroups, type DomainGroups, findGroup } from './groups.ts';
import { createKeyQueue } from './key-queue.ts';
import { createSigningKeys, type SigningKeys, sealKey } from './keys.ts';
import { registrableDomain, trackingDomainUnder } from './names.ts';
import { type Platform, type PlatformSettings, platformOf } from './platform/platform.ts';
import { platformZone } from './platform/platform-zone.ts';
import { type DnsRecord, recommendedRecords, requiredRecords } from './records.ts';
import { pendingKey } from './rotation.ts';
import { createProvision, type Provision } from './secondary.ts';
import {
  findUseCase,
  maySend,
  type OfferedUseCase,
  offeredUseCases,
  type RegionSetting,
} from './use-cases.ts';
import { createDnsView } from './verification/dns-view.ts';
import { createRecheck, type Recheck } from './verification/recheck.ts';
import { createVerifier, type RecordDomainEvent, type Verified } from './verification/verify.ts';
import { createVerifyLimit } from './verification/verify-limit.ts';

/**
 * Sending domains: registering them, telling what to publish, and knowing whether it is. Everything that is
 * asked for by account answers the same refusal for an unknown domain and for another account's.
 */
export interface DomainsHouse {
  config: PlatformSettings & { regions: readonly RegionSetting[] };
  tables: Tables;
  writer: Writer;
  clock: Clock;
  ids: Ids;
  log: Log;
  seal: Seal;
  resolver: Resolver;
  /** Whether a host answers over HTTPS with a certificate that is valid for its name. */
  answersHttps: (host: string) => Promise<boolean>;
  recordDomainEvent: RecordDomainEvent;
  /** The limit on the number of an account's domains. */
  mayAdd: MayAdd;
  /** Drops the domain's queued mail, inside the unit that deletes it. */
  dropQueued: (tables: Tables, domainId: string, at: number) => void;
  /** Default: RSA keys as RFC 8301 asks for. */
  generateKey?: () => Promise<KeyObject>;
}

export interface DomainRecords {
  dnsRecords: DnsRecord[];
  recommendedDnsRecords: DnsRecord[];
}

export interface Registration {
  domain: string;
  useCaseId: string;
  groupId?: string | undefined;
}

export interface Domains {
  /** What may be registered for, and whether the account can send for it. */
  useCases(accountId: string): (OfferedUseCase & { canSendEmail: boolean })[];
  /** Oldest first. */
  list(accountId: string): DomainRow[];
  get(accountId: string, domainId: string): DomainRow | Refusal;
  records(domain: DomainRow): DomainRecords;
  /** The existing domain, unchanged, when the account has registered that name for that use case. */
  register(accountId: string, wish: Registration): Promise<{ domain: DomainRow; created: boolean } | Refusal>;
  /** With its keys and its queued mail. */
  remove(accountId: string, domainId: string): Promise<DomainRow | Refusal>;
  /** Looks at DNS now, past our caches. */
  verify(accountId: string, domainId: string): Promise<Verified | Refusal>;
  assignGroup(accountId: string, domainId: string, groupId: string): Promise<DomainRow | Refusal>;
  /** Null goes back to the default. */
  setTrackingDomain(accountId: string, domainId: string, host: string | null): Promise<DomainRow | Refusal>;
  /** `started` is false when a rotation is under way already. */
  rotateDkim(accountId: string, domainId: string): Promise<{ domain: DomainRow; started: boolean } | Refusal>;
  /** The platform's own records. */
  zone(): Promise<ZoneRecord[]>;
  groups: DomainGroups;
  signingKeys: SigningKeys;
  /** Sets up the secondary lane now; the background does it by itself. */
  provision: Provision;
  background: Recheck;
}

/** Wait before the first automatic check of a new domain. */
const FIRST_CHECK = MINUTE;

export function createDomains(house: DomainsHouse): Domains {
  const { config, tables, writer, clock, ids, log, seal, resolver, dropQueued } = house;
  const platform = platformOf(config);
  const verify = createVerifier({ ...house, platform });
  const keyQueue = createKeyQueue(house.generateKey ?? generateDkimKey);
  const provision = createProvision({ ...house, keyQueue });
  const background = createRecheck({ ...house, verify, provision });
  const verifyLimit = createVerifyLimit(clock);
  const newSelector = () => `pr${ids.label(8)}`;

  /** A unit over a domain of the account; the row it returns is stored. */
  function change(
    accountId: string,
    domainId: string,
    edit: (row: DomainRow, tables: Tables) => DomainRow | Refusal,
  ): Promise<DomainRow | Refusal> {
    return writer.run((tables): DomainRow | Refusal => {
      const row = findDomain(tables, accountId, domainId);
      const changed = isRefusal(row) ? row : edit(row, tables);
      if (!isRefusal(changed)) tables.domains.update(changed);
      return changed;
    });
  }

  return {
    useCases: (accountId) => {
      const domains = tables.domains.list(accountId).filter(({ status }) => maySend(status));
      return offeredUseCases(config.regions).map((offered) => ({
        ...offered,
        canSendEmail: domains.some(
          (domain) => domain.use_case === offered.useCase && domain.region === offered.region.code,
        ),
      }));
    },
    list: (accountId) => tables.domains.list(accountId),
    get: (accountId, domainId) => findDomain(tables, accountId, domainId),
    records: (domain) => recordsOf(tables, platform, domain),

    register: async (accountId, wish) => {
      const name = registrableDomain(wish.domain);
      if (isRefusal(name)) return name;
      const useCase = findUseCase(config.regions, wish.useCaseId);
      if (isRefusal(useCase)) return useCase;
      const group = groupFor(tables, accountId, wish.groupId);
      if (isRefusal(group)) return group;
      const registered = (tables: Tables) => findRegistered(tables, accountId, name, useCase);
      const existing = registered(tables);
      if (existing !== undefined) return { domain: existing, created: false };
      // Before the expensive key, and again in the unit of work, where it is exact.
      const full = house.mayAdd(tables, accountId);
      if (full !== null) return full;

      const row = newRow({ accountId, groupId: group, name, useCase, platform, ids, now: clock.now() });
      // Outside the unit of work, which must not wait; unused when another request was faster.
      const generated = await keyQueue.generate(accountId);
      if (isRefusal(generated)) return generated;
      const attributes = { selector: newSelector(), lane: 'primary', state: 'active' } as const;
      const key = sealKey(seal, generated, row.domain_id, attributes, row.created_at);
      return writer.run((tables): { domain: DomainRow; created: boolean } | Refusal => {
        const meanwhile = registered(tables);
        if (meanwhile !== undefined) return { domain: meanwhile, created: false };
        const stillThere = groupFor(tables, accountId, wish.groupId);
        if (isRefusal(stillThere)) return stillThere;
        const full = house.mayAdd(tables, accountId);
        if (full !== null) return full;
        tables.domains.insert(row);
        tables.dkimKeys.insert(key);
        log.info(
          { domainId: row.domain_id, domain: name, accountId, useCase: useCase.id },
          'domain registered',
        );
        return { domain: row, created: true };
      });
    },

    remove: (accountId, domainId) =>
      writer.run((tables): DomainRow | Refusal => {
        const row = findDomain(tables, accountId, domainId);
        if (isRefusal(row)) return row;
        dropQueued(tables, domainId, clock.now());
        tables.domains.remove(domainId);
        log.info({ domainId, domain: row.name, accountId }, 'domain deleted');
        return row;
      }),

    verify: async (accountId, domainId) => {
      const row = findDomain(tables, accountId, domainId);
      if (isRefusal(row)) return row;
      const tooOften = verifyLimit(domainId);
      if (tooOften !== null) return tooOften;
      return (await verify(domainId, { fresh: true, automatic: false })) ?? notFound(domainId);
    },

    assignGroup: (accountId, domainId, groupId) =>
      change(accountId, domainId, (row, tables) => {
        const group = findGroup(tables, accountId, groupId);
        return isRefusal(group) ? group : { ...row, group_id: groupId, updated_at: clock.now() };
      }),

    setTrackingDomain: (accountId, domainId, host) =>
      change(accountId, domainId, (row) => {
        const wanted = host === null ? null : trackingDomainUnder(row.name, host);
        if (isRefusal(wanted)) return wanted;
        const now = clock.now();
        return {
          ...row,
          tracking_domain: wanted,
          // A custom host given up is not used any longer; what takes its place, the check due now says.
          tracking_host: row.tracking_host === row.tracking_domain ? null : row.tracking_host,
          next_check_at: now,
          updated_at: now,
        };
      }),

    rotateDkim: async (accountId, domainId) => {
      const row = findDomain(tables, accountId, domainId);
      if (isRefusal(row)) return row;
      if (pendingKey(tables.dkimKeys.of(domainId)) !== undefined) return { domain: row, started: false };
      const generated = await keyQueue.generate(accountId);
      if (isRefusal(generated)) return generated;
      const attributes = { selector: newSelector(), lane: 'primary', state: 'pending' } as const;
      const key = sealKey(seal, generated, domainId, attributes, clock.now());
      return writer.run((tables): { domain: DomainRow; started: boolean } | Refusal => {
        const row = findDomain(tables, accountId, domainId);
        if (isRefusal(row)) return row;
        if (pendingKey(tables.dkimKeys.of(domainId)) !== undefined) return { domain: row, started: false };
        tables.dkimKeys.insert(key);
        const now = clock.now();
        const changed = {
          ...row,
          next_check_at: Math.min(row.next_check_at, now + FIRST_CHECK),
          updated_at: now,
        };
        tables.domains.update(changed);
        log.info({ domainId, domain: row.name, selector: key.selector }, 'change of the DKIM key started');
        return { domain: changed, started: true };
      });
    },

    zone: () => platformZone(createDnsView(resolver), platform, tables.dkimKeys.secondaryPublicKeys()),
    groups: createDomainGroups(house),
    signingKeys: createSigningKeys(house),
    provision,
    background,
  };
}

function notFound(domainId: string): Refusal {
  return refuse('DOMAIN_NOT_FOUND', `there is no domain ${domainId}`);
}

function findDomain(tables: Tables, accountId: string, domainId: string): DomainRow | Refusal {
  return tables.domains.get(accountId, domainId) ?? notFound(domainId);
}

function findRegistered(
  tables: Tables,
  accountId: string,
  name: string,
  { useCase, region }: OfferedUseCase,
): DomainRow | undefined {
  return tables.domains
    .named(accountId, name)
    .find((domain) => domain.use_case === useCase && domain.region === region.code);
}

/** The group asked for, or the account's default one; its id. */
function groupFor(tables: Tables, accountId: string, groupId: string | undefined): string | Refusal {
  if (groupId !== undefined) {
    const group = findGroup(tables, accountId, groupId);
    return isRefusal(group) ? group : group.group_id;
  }
  const group = tables.domainGroups.defaultOf(accountId);
  if (group === null) throw new Error(`account ${accountId} has no default domain group`);
  return group.group_id;
}

function recordsOf(tables: Tables, platform: Platform, domain: DomainRow): DomainRecords {
  const keys = tables.dkimKeys.of(domain.domain_id);
  const logoUrl = tables.accounts.get(domain.account_id)?.logo_url ?? null;
  return {
    dnsRecords: requiredRecords(domain, keys, platform),
    recommendedDnsRecords: recommendedRecords(domain, keys, platform, logoUrl),
  };
}

interface NewDomain {
  accountId: string;
  groupId: string;
  name: string;
  useCase: { useCase: UseCase; region: RegionSetting };
  platform: Platform;
  ids: Ids;
  now: number;
}

function newRow({ accountId, groupId, name, useCase, platform, ids, now }: NewDomain): DomainRow {
  return {
    domain_id: ids.make('domain'),
    account_id: accountId,
    group_id: groupId,
    name,
    use_case: useCase.useCase,
    region: useCase.region.code,
    status: 'PENDING',
    dkim_enabled: 0,
    spf_configured: 0,
    dmarc_configured: 0,
    mx_configured: 0,
    return_path: platform.returnPath === 'platform' ? 'platform' : 'customer',
    tracking_domain: null,
    tracking_host: null,
    alt_domain_id: ids.make('alt'),
    alt_status: 'PENDING',
    alt_provisioned: 0,
    alt_dkim_enabled: 0,
    alt_spf_configured: 0,
    alt_dmarc_configured: 0,
    last_checked_at: null,
    next_check_at: now + FIRST_CHECK,
    check_count: 0,
    failing_since: null,
    created_at: now,
    updated_at: now,
  };
}
