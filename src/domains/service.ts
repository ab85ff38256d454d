import { SECOND } from '../core/clock.ts';
import { createGate } from '../core/concurrency/gate.ts';
import { isRefusal, type Refusal, refuse } from '../core/refusal.ts';
import { createDnsView } from '../dns/dns-view.ts';
import { lookupsOf, type Resolver } from '../dns/resolver.ts';
import type { ZoneRecord } from '../dns/zone-record.ts';
import { generateDkimKey } from '../mail/dkim.ts';
import type { Context } from '../store/context.ts';
import type { DmarcReportHistory } from '../store/domains/dmarc-reports.ts';
import type { DkimKeyRow, DomainRow } from '../store/domains/domains.ts';
import type { MayAdd, Tables } from '../store/tables.ts';
import { type DmarcPath, dmarcPath } from './dmarc-path.ts';
import { createDomainGroups, findGroup } from './groups.ts';
import { createDomainJobs, createProvisionSecondary, type ProbeSecondary } from './jobs.ts';
import { createKeyQueue, type GenerateKey } from './key-queue.ts';
import { createManagedKeys, type KeyStepKind } from './key-rotation/managed-keys.ts';
import { createPlatformKeys } from './key-rotation/platform-keys.ts';
import { newSelector, sealKey } from './keys.ts';
import { reportAddress, trackingDomainUnder } from './names.ts';
import { createFileFetcher, type FetchFile } from './platform/brand-files.ts';
import { createHttpsProbe, type HttpsProbe } from './platform/https-probe.ts';
import { type PlatformOptions, platformOf } from './platform/platform.ts';
import { printedZone } from './platform/platform-zone.ts';
import { type PresentedKey, presentKeys } from './present.ts';
import { type DomainRecords, recordsOf } from './records.ts';
import { createRegistration, FIRST_CHECK_MS } from './registration.ts';
import { pendingKey } from './rotation.ts';
import { createSigningKeys } from './signing-keys.ts';
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

export type Domains = ReturnType<typeof createDomains>;

/** What the module uses of the daemon's or the command's context. */
export type DomainsContext = Pick<
  Context,
  'tables' | 'writer' | 'clock' | 'monotonic' | 'ids' | 'log' | 'seal'
> & { config: PlatformOptions & { regions: readonly RegionSetting[] } };

export interface DomainsParts {
  resolver: Resolver;
  recordDomainEvent: RecordDomainEvent;
  /** The limit on the number of an account's domains. */
  mayAdd: MayAdd;
  /** Drops the domain's queued mail, inside the unit of work that deletes the domain. */
  dropQueued: (tx: Tables, domainId: string) => void;
  /** Whether a host answers over HTTPS with a certificate that is valid for its name. Default: a request to it. */
  answersHttps?: HttpsProbe;
  /** Default: files of public addresses. */
  fetchFile?: FetchFile;
  /** Default: new RSA keys of the size that RFC 8301 requires. */
  generateKey?: GenerateKey | undefined;
  /** Called for each step of a key in the platform's zone. */
  onKeyStep?: (step: KeyStepKind) => void;
  /** Default: the secondary lane can be used. */
  probeSecondary?: ProbeSecondary | undefined;
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

/** Fields that are absent stay as they are. */
interface TrackingPatch {
  /** The host of tracked links; null restores the default. */
  trackingDomain?: string | null | undefined;
  /** Whether sends track opens, and clicks, that do not state it. */
  enableOpenTracking?: boolean | undefined;
  enableClickTracking?: boolean | undefined;
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
export function createDomains(
  context: DomainsContext,
  {
    resolver,
    recordDomainEvent,
    mayAdd,
    dropQueued,
    answersHttps = createHttpsProbe(context.config.public.url),
    fetchFile = createFileFetcher({ resolver: lookupsOf(resolver, 'files of BIMI records') }),
    generateKey = generateDkimKey,
    onKeyStep = () => {},
    probeSecondary = async () => null,
  }: DomainsParts,
) {
  const { config, tables, writer, clock, ids, log, seal } = context;
  const platform = platformOf(config);
  const keyQueue = createKeyQueue(generateKey);
  const managedKeys = createManagedKeys(context, { keyQueue, platform, onStep: onKeyStep });
  const advancePlatformKeys = createPlatformKeys(context, { resolver, keyQueue, platform });
  const verify = createVerifier(context, {
    resolver,
    platform,
    answersHttps,
    fetchFile,
    recordDomainEvent,
    managedKeys,
  });
  const provisionSecondary = createProvisionSecondary(context, { keyQueue, probeSecondary });
  const verifyLimit = createVerifyLimit(context.monotonic);
  const requestedVerifications = createGate(REQUESTED_VERIFICATIONS);

  /** Updates a domain of the account with the row that `edit` returns, in a unit of work. */
  function update(
    accountId: string,
    domainId: string,
    edit: (row: DomainRow, tx: Tables) => DomainRow | Refusal,
  ): Promise<DomainRow | Refusal> {
    return writer.run((tx): DomainRow | Refusal => {
      const row = findDomain(tx, accountId, domainId);
      const updated = isRefusal(row) ? row : edit(row, tx);
      if (!isRefusal(updated)) tx.domains.update(updated);
      return updated;
    }, accountId);
  }

  /** Makes the rotation of the keys in the platform's zone due: the next check takes the step. */
  async function rotateManaged(accountId: string, domainId: string): Promise<RotationStart | Refusal> {
    const now = clock.now();
    const domain = await update(accountId, domainId, (row, tx) => {
      for (const key of tx.dkimKeys.of(domainId))
        if (key.slot !== null && key.state === 'active') tx.dkimKeys.setState(key.key_id, 'active', 0);
      return { ...row, next_check_at: now, updated_at: now };
    });
    if (isRefusal(domain)) return domain;
    log.info({ domainId, domain: domain.name }, 'DKIM key rotation requested');
    return { domain, started: true, isManaged: true };
  }

  return {
    /** The use cases that domains can be registered for, and whether the account can send for each. */
    useCases: (accountId: string): (OfferedUseCase & { canSendEmail: boolean })[] => {
      const domains = tables.domains.list(accountId).filter(({ status }) => maySend(status));
      return offeredUseCases(config.regions).map((offered) => ({
        ...offered,
        canSendEmail: domains.some(
          (domain) => domain.use_case === offered.useCase && domain.region === offered.region.code,
        ),
      }));
    },

    /** Oldest first. */
    list: (accountId: string): DomainRow[] => tables.domains.list(accountId),

    get: (accountId: string, domainId: string): DomainRow | Refusal =>
      findDomain(tables, accountId, domainId),

    records: (domain: DomainRow): DomainRecords => recordsOf(tables, platform, domain),

    /** The records with what the last check found for each of them, and the DKIM keys. */
    lastCheck: (domain: DomainRow): LastCheck & { dkimKeys: PresentedKey[] } => ({
      ...lastCheckOf(domain, recordsOf(tables, platform, domain), storedResults(tables, domain.domain_id)),
      dkimKeys: presentKeys(tables.dkimKeys.of(domain.domain_id)),
    }),

    /** The DMARC policy in DNS now, and the next step to a stricter one. */
    dmarcPath: async (domain: DomainRow, history: DmarcReportHistory): Promise<DmarcPath> => {
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

    register: createRegistration(context, { platform, keyQueue, mayAdd }),

    /** Deletes the domain with its keys and its queued mail. */
    remove: async (accountId: string, domainId: string): Promise<DomainRow | Refusal> => {
      const removed = await writer.run((tx): DomainRow | Refusal => {
        const row = findDomain(tx, accountId, domainId);
        if (isRefusal(row)) return row;
        dropQueued(tx, domainId);
        const { status } = row;
        const fields = { status, previousStatus: status, failing: [] };
        recordDomainEvent(tx, { domain: row, kind: 'domain_deleted', fields });
        tx.domains.remove(domainId);
        return row;
      }, accountId);
      if (!isRefusal(removed)) log.info({ domainId, domain: removed.name, accountId }, 'domain deleted');
      return removed;
    },

    /** Verifies the domain now, bypassing our DNS caches. */
    verify: async (accountId: string, domainId: string): Promise<Verification | Refusal> => {
      const row = findDomain(tables, accountId, domainId);
      if (isRefusal(row)) return row;
      const refusal = verifyLimit(accountId, domainId);
      if (refusal !== null) return refusal;
      const work = () => verify(domainId, { fresh: true, automatic: false });
      return (await requestedVerifications.run(accountId, work)) ?? notFound(domainId);
    },

    assignGroup: (accountId: string, domainId: string, groupId: string): Promise<DomainRow | Refusal> =>
      update(accountId, domainId, (row, tx) => {
        const group = findGroup(tx, accountId, groupId);
        return isRefusal(group) ? group : { ...row, group_id: groupId, updated_at: clock.now() };
      }),

    setTracking: (accountId: string, domainId: string, patch: TrackingPatch): Promise<DomainRow | Refusal> =>
      update(accountId, domainId, (row) => {
        const { trackingDomain: host, enableOpenTracking: opens, enableClickTracking: clicks } = patch;
        const now = clock.now();
        const next = {
          ...row,
          track_opens: opens === undefined ? row.track_opens : flagOf(opens),
          track_clicks: clicks === undefined ? row.track_clicks : flagOf(clicks),
          updated_at: now,
        };
        if (host === undefined) return next;
        const trackingDomain = host === null ? null : trackingDomainUnder(row.name, host);
        if (isRefusal(trackingDomain)) return trackingDomain;
        return {
          ...next,
          tracking_domain: trackingDomain,
          // A replaced custom host is no longer used; the check that is due now determines the new one.
          tracking_host: row.tracking_host === row.tracking_domain ? null : row.tracking_host,
          next_check_at: now,
        };
      }),

    /** Resets link hosts that were checked for another scheme or port of `public.url`. Call before any mail is sent. */
    prepareLinkHosts: (): Promise<void> => resetUncheckedHosts(context, platform.publicUrl),

    rotateDkim: async (accountId: string, domainId: string): Promise<RotationStart | Refusal> => {
      const row = findDomain(tables, accountId, domainId);
      if (isRefusal(row)) return row;
      if (hasZoneKey(tables.dkimKeys.of(domainId))) return rotateManaged(accountId, domainId);
      if (pendingKey(tables.dkimKeys.of(domainId)) !== undefined)
        return { domain: row, started: false, isManaged: false };
      const generated = await keyQueue.generate(accountId);
      if (isRefusal(generated)) return generated;
      const attributes = { selector: newSelector(ids), lane: 'primary', state: 'pending' } as const;
      const key = sealKey(seal, generated, domainId, attributes, clock.now());
      const result = await writer.run((tx): RotationStart | Refusal => {
        const current = findDomain(tx, accountId, domainId);
        if (isRefusal(current)) return current;
        if (pendingKey(tx.dkimKeys.of(domainId)) !== undefined)
          return { domain: current, started: false, isManaged: false };
        tx.dkimKeys.insert(key);
        const now = clock.now();
        const updated = {
          ...current,
          next_check_at: Math.min(current.next_check_at, now + FIRST_CHECK_MS),
          updated_at: now,
        };
        tx.domains.update(updated);
        return { domain: updated, started: true, isManaged: false };
      }, accountId);
      if (!isRefusal(result) && result.started)
        log.info({ domainId, domain: row.name, selector: key.selector }, 'DKIM key rotation started');
      return result;
    },

    /** The platform's own records. */
    zone: (): Promise<ZoneRecord[]> => printedZone(createDnsView(resolver), platform, tables, clock.now()),
    groups: createDomainGroups(context),
    signingKeys: createSigningKeys(context, platform),
    /** Provisions a secondary lane without waiting for the background jobs. */
    provisionSecondary,
    jobs: createDomainJobs(context, { verify, provisionSecondary, advancePlatformKeys }),
  };
}

function flagOf(value: boolean): 0 | 1 {
  return value ? 1 : 0;
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
