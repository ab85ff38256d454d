import { type Clock, SECOND } from '../core/clock.ts';
import { createGate } from '../core/concurrency/gate.ts';
import type { Ids } from '../core/ids.ts';
import type { Log } from '../core/log.ts';
import { isRefusal, type Refusal, refuse } from '../core/refusal.ts';
import type { Seal } from '../core/seal.ts';
import { createDnsView } from '../dns/dns-view.ts';
import { lookupsOf, type Resolver } from '../dns/resolver.ts';
import type { ZoneRecord } from '../dns/zone-record.ts';
import { generateDkimKey } from '../mail/dkim.ts';
import type { Writer } from '../store/database/writer.ts';
import type { DmarcReportHistory } from '../store/domains/dmarc-reports.ts';
import type { DkimKeyRow, DomainRow } from '../store/domains/domains.ts';
import type { MayAdd, Tables } from '../store/tables.ts';
import { type DmarcPath, dmarcPath } from './dmarc-path.ts';
import { createDomainGroups, type DomainGroups, findGroup } from './groups.ts';
import { createDomainJobs, type DomainJobs } from './jobs.ts';
import { createKeyQueue, type GenerateKey } from './key-queue.ts';
import { createManagedKeys, type KeyStepKind } from './key-rotation/managed-keys.ts';
import { createPlatformKeys } from './key-rotation/platform-keys.ts';
import { newSelector, sealKey } from './keys.ts';
import { reportAddress, trackingDomainUnder } from './names.ts';
import { createFileFetcher, type FetchFile } from './platform/brand-files.ts';
import { createHttpsProbe, type HttpsProbe } from './platform/https-probe.ts';
import { type PlatformOptions, platformOf } from './platform/platform.ts';
import { printedZone } from './platform/printed-zone.ts';
import { type PresentedKey, presentKeys } from './present.ts';
import { type DomainRecords, recordsOf } from './records.ts';
import { createRegistration, FIRST_CHECK_MS, type RegisterDomain } from './registration.ts';
import { pendingKey, retirementMs } from './rotation.ts';
import { createProvisionSecondary, type ProvisionSecondary } from './secondary.ts';
import { createSigningKeys, type SigningKeys } from './signing-keys.ts';
import { type OfferedUseCase, offeredUseCases, type RegionSetting } from './use-cases.ts';
import { discoverPolicy } from './verification/checks/dmarc-record.ts';
import { resetUncheckedHosts } from './verification/checks/tracking.ts';
import { type LastCheck, lastCheckOf, storedResults } from './verification/record-results.ts';
import { maySend } from './verification/status.ts';
import {
  createVerifier,
  createVerifyLimit,
  type RecordDomainEvent,
  type Verification,
} from './verification/verify.ts';

/*
 * Sending domains: registration, the records to publish, and verification. Operations for an account return the same
 * refusal for an unknown domain and for another account's.
 */

export interface DomainsDeps {
  config: PlatformOptions & { regions: readonly RegionSetting[] };
  tables: Tables;
  writer: Writer;
  clock: Clock;
  /** For durations: setting the system clock does not change it. */
  monotonic: Clock;
  ids: Ids;
  log: Log;
  seal: Seal;
  resolver: Resolver;
  recordDomainEvent: RecordDomainEvent;
  /** The limit on the number of an account's domains. */
  mayAdd: MayAdd;
  /** Drops the domain's queued mail, inside the unit of work that deletes the domain. */
  dropQueued: (tables: Tables, domainId: string) => void;
  /** Whether a host answers over HTTPS with a certificate that is valid for its name. Default: a request to it. */
  answersHttps?: HttpsProbe;
  /** Default: files of public addresses. */
  fetchFile?: FetchFile;
  /** Default: new RSA keys of the size that RFC 8301 requires. */
  generateKey?: GenerateKey | undefined;
  /** Called for each step of a key in the platform's zone. */
  onKeyStep?: (step: KeyStepKind) => void;
  /** Resolves with the reason why the secondary lane cannot be used, a clause, or null. Default: it can. */
  probeSecondary?: (() => Promise<string | null>) | undefined;
}

export interface Domains {
  /** The use cases that domains can be registered for, and whether the account can send for each. */
  useCases(accountId: string): (OfferedUseCase & { canSendEmail: boolean })[];
  /** Oldest first. */
  list(accountId: string): DomainRow[];
  get(accountId: string, domainId: string): DomainRow | Refusal;
  records(domain: DomainRow): DomainRecords;
  /** The records with what the last check found for each of them, and the DKIM keys. */
  lastCheck(domain: DomainRow): LastCheck & { dkimKeys: PresentedKey[] };
  /** The DMARC policy in DNS now, and the next step to a stricter one. */
  dmarcPath(domain: DomainRow, history: DmarcReportHistory): Promise<DmarcPath>;
  register: RegisterDomain;
  /** Deletes the domain with its keys and its queued mail. */
  remove(accountId: string, domainId: string): Promise<DomainRow | Refusal>;
  /** Verifies the domain now, bypassing our DNS caches. */
  verify(accountId: string, domainId: string): Promise<Verification | Refusal>;
  assignGroup(accountId: string, domainId: string, groupId: string): Promise<DomainRow | Refusal>;
  /** Null restores the default. */
  setTrackingDomain(accountId: string, domainId: string, host: string | null): Promise<DomainRow | Refusal>;
  /** `started` is false when a rotation is already in progress. */
  rotateDkim(accountId: string, domainId: string): Promise<RotationStart | Refusal>;
  /** Resets link hosts that were checked for another scheme or port of `public.url`. Call before any mail is sent. */
  prepareLinkHosts(): Promise<void>;
  /** The platform's own records. */
  zone(): Promise<ZoneRecord[]>;
  groups: DomainGroups;
  signingKeys: SigningKeys;
  /** Provisions a secondary lane without waiting for the background jobs. */
  provisionSecondary: ProvisionSecondary;
  jobs: DomainJobs;
}

/** Limit for the lookup of the DMARC policy. */
const POLICY_TIMEOUT_MS = 5 * SECOND;

export interface RotationStart {
  domain: DomainRow;
  /** False: a rotation is already in progress. */
  started: boolean;
  /** Whether the keys are in the platform's zone, so that the owner of the domain publishes nothing. */
  isManaged: boolean;
}

/**
 * Verifications on request at the same time, and those of one account; others wait. Each sends about twenty queries, and name
 * servers that never answer hold them until their timeout: all together must leave queries for deliveries. Those that wait
 * are requests, which `limits.account.concurrentRequests` bounds.
 */
const REQUESTED_VERIFICATIONS = { concurrency: 6, perKey: 2, maxWaiting: Number.POSITIVE_INFINITY };

/**
 * Creates the module without starting work: call `jobs.start`. All keys of the process are generated in one queue, and
 * verifications on request are limited to 10 a minute for each domain, and to one a second for each account after a burst of
 * 200 (`RATE_LIMITED`).
 */
export function createDomains(deps: DomainsDeps): Domains {
  const { config, tables, writer, clock, ids, log, seal, resolver, dropQueued } = deps;
  const platform = platformOf(config);
  const answersHttps = deps.answersHttps ?? createHttpsProbe(config.public.url);
  const fetchFile =
    deps.fetchFile ?? createFileFetcher({ resolver: lookupsOf(resolver, 'files of BIMI records') });
  const keyQueue = createKeyQueue(deps.generateKey ?? generateDkimKey);
  const graceMs = () => retirementMs(config);
  const managedKeys = createManagedKeys({
    ...deps,
    keyQueue,
    platform,
    policy: () => platform.keyPolicy,
    graceMs,
    onStep: deps.onKeyStep ?? (() => {}),
  });
  const advancePlatformKeys = createPlatformKeys({ ...deps, keyQueue, platform, graceMs });
  const verify = createVerifier({ ...deps, platform, answersHttps, fetchFile, managedKeys });
  const provisionSecondary = createProvisionSecondary({ ...deps, keyQueue });
  const verifyLimit = createVerifyLimit(deps.monotonic);
  const requestedVerifications = createGate(REQUESTED_VERIFICATIONS);

  /** Updates a domain of the account with the row that `edit` returns, in a unit of work. */
  function update(
    accountId: string,
    domainId: string,
    edit: (row: DomainRow, tables: Tables) => DomainRow | Refusal,
  ): Promise<DomainRow | Refusal> {
    return writer.run((tables): DomainRow | Refusal => {
      const row = findDomain(tables, accountId, domainId);
      const updated = isRefusal(row) ? row : edit(row, tables);
      if (!isRefusal(updated)) tables.domains.update(updated);
      return updated;
    }, accountId);
  }

  /** Makes the rotation of the keys in the platform's zone due: the next check takes the step. */
  async function rotateManaged(accountId: string, domainId: string): Promise<RotationStart | Refusal> {
    const result = await writer.run((tables): RotationStart | Refusal => {
      const row = findDomain(tables, accountId, domainId);
      if (isRefusal(row)) return row;
      const now = clock.now();
      for (const key of tables.dkimKeys.of(domainId))
        if (key.slot !== null && key.state === 'active') tables.dkimKeys.setState(key.key_id, 'active', 0);
      const domain = { ...row, next_check_at: now, updated_at: now };
      tables.domains.update(domain);
      return { domain, started: true, isManaged: true };
    }, accountId);
    if (!isRefusal(result)) log.info({ domainId, domain: result.domain.name }, 'DKIM key rotation requested');
    return result;
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
    lastCheck: (domain) => ({
      ...lastCheckOf(domain, recordsOf(tables, platform, domain), storedResults(tables, domain.domain_id)),
      dkimKeys: presentKeys(tables.dkimKeys.of(domain.domain_id)),
    }),
    dmarcPath: async (domain, history) => {
      const signal = AbortSignal.timeout(POLICY_TIMEOUT_MS);
      const owner = `verification ${domain.account_id}`;
      const discovery = await discoverPolicy(createDnsView(resolver, { signal, owner }), domain.name);
      return dmarcPath(
        { domain: domain.name, reportTo: reportAddress(domain.name), policy: platform.dmarcPolicy },
        discovery,
        history,
        clock.now(),
      );
    },

    register: createRegistration({ ...deps, regions: () => config.regions, platform, keyQueue }),

    remove: async (accountId, domainId) => {
      const removed = await writer.run((tables): DomainRow | Refusal => {
        const row = findDomain(tables, accountId, domainId);
        if (isRefusal(row)) return row;
        dropQueued(tables, domainId);
        tables.domains.remove(domainId);
        return row;
      }, accountId);
      if (!isRefusal(removed)) log.info({ domainId, domain: removed.name, accountId }, 'domain deleted');
      return removed;
    },

    verify: async (accountId, domainId) => {
      const row = findDomain(tables, accountId, domainId);
      if (isRefusal(row)) return row;
      const refusal = verifyLimit(accountId, domainId);
      if (refusal !== null) return refusal;
      const work = () => verify(domainId, { fresh: true, automatic: false });
      return (await requestedVerifications.run(accountId, work)) ?? notFound(domainId);
    },

    assignGroup: (accountId, domainId, groupId) =>
      update(accountId, domainId, (row, tables) => {
        const group = findGroup(tables, accountId, groupId);
        return isRefusal(group) ? group : { ...row, group_id: groupId, updated_at: clock.now() };
      }),

    setTrackingDomain: (accountId, domainId, host) =>
      update(accountId, domainId, (row) => {
        const trackingDomain = host === null ? null : trackingDomainUnder(row.name, host);
        if (isRefusal(trackingDomain)) return trackingDomain;
        const now = clock.now();
        return {
          ...row,
          tracking_domain: trackingDomain,
          // A replaced custom host is no longer used; the check that is due now determines the new one.
          tracking_host: row.tracking_host === row.tracking_domain ? null : row.tracking_host,
          next_check_at: now,
          updated_at: now,
        };
      }),

    prepareLinkHosts: () => resetUncheckedHosts(deps, platform.publicUrl),

    rotateDkim: async (accountId, domainId) => {
      const row = findDomain(tables, accountId, domainId);
      if (isRefusal(row)) return row;
      if (hasZoneKey(tables.dkimKeys.of(domainId))) return rotateManaged(accountId, domainId);
      if (pendingKey(tables.dkimKeys.of(domainId)) !== undefined)
        return { domain: row, started: false, isManaged: false };
      const generated = await keyQueue.generate(accountId);
      if (isRefusal(generated)) return generated;
      const attributes = { selector: newSelector(ids), lane: 'primary', state: 'pending' } as const;
      const key = sealKey(seal, generated, domainId, attributes, clock.now());
      const result = await writer.run((all): RotationStart | Refusal => {
        const current = findDomain(all, accountId, domainId);
        if (isRefusal(current)) return current;
        if (pendingKey(all.dkimKeys.of(domainId)) !== undefined)
          return { domain: current, started: false, isManaged: false };
        all.dkimKeys.insert(key);
        const now = clock.now();
        const updated = {
          ...current,
          next_check_at: Math.min(current.next_check_at, now + FIRST_CHECK_MS),
          updated_at: now,
        };
        all.domains.update(updated);
        return { domain: updated, started: true, isManaged: false };
      }, accountId);
      if (!isRefusal(result) && result.started)
        log.info({ domainId, domain: row.name, selector: key.selector }, 'DKIM key rotation started');
      return result;
    },

    zone: () => printedZone(createDnsView(resolver), platform, tables, clock.now()),
    groups: createDomainGroups(deps),
    signingKeys: createSigningKeys({
      tables,
      seal,
      platformSigner: () => (platform.signs ? platform.hostname : null),
      ed25519: () => platform.keyPolicy.ed25519,
    }),
    provisionSecondary,
    jobs: createDomainJobs({ ...deps, verify, provisionSecondary, advancePlatformKeys }),
  };
}

/** Whether a primary key in the platform's zone signs. */
function hasZoneKey(keys: readonly DkimKeyRow[]): boolean {
  return keys.some(({ lane, slot, state }) => lane === 'primary' && slot !== null && state === 'active');
}

function notFound(domainId: string): Refusal {
  return refuse('DOMAIN_NOT_FOUND', `There is no domain ${domainId}`);
}

function findDomain(tables: Tables, accountId: string, domainId: string): DomainRow | Refusal {
  return tables.domains.get(accountId, domainId) ?? notFound(domainId);
}
