import { type Clock, MINUTE, SECOND } from '../../core/clock.ts';
import { abortAfter } from '../../core/concurrency/abort.ts';
import { createLru } from '../../core/lru.ts';
import { type Refusal, refuse } from '../../core/refusal.ts';
import { createTokenBuckets, type Rate } from '../../core/token-bucket.ts';
import { createDnsView } from '../../dns/dns-view.ts';
import type { Resolver } from '../../dns/resolver.ts';
import type { DomainEventKind } from '../../events/event-types.ts';
import type { DomainEventFields } from '../../events/record.ts';
import type { Context } from '../../store/context.ts';
import type { DomainRow } from '../../store/domains/domains.ts';
import type { Tables } from '../../store/tables.ts';
import type { GeneratedKeys, ManagedKeys } from '../key-rotation/managed-keys.ts';
import type { SlotObservations } from '../key-rotation/plan.ts';
import type { FetchFile } from '../platform/brand-files.ts';
import type { HttpsProbe } from '../platform/https-probe.ts';
import type { Platform } from '../platform/platform.ts';
import { failingRequired } from '../present.ts';
import { recordsOf } from '../records.ts';
import { deleteRetiredKeys, pendingKey, promoteKey } from '../rotation.ts';
import { CHECK_NAMES, type CheckResults, runChecks } from './checks.ts';
import {
  checkedRecords,
  lookUpRecords,
  mergedResults,
  type RecordResult,
  storedResults,
  uncheckedRecords,
} from './record-results.ts';
import { applyResults, type CheckReport } from './status.ts';

/*
 * Verification of one domain: runs the checks without a transaction, then applies the results in one unit of work to
 * the row as it is then. Two verifications of one domain may run at the same time: each applies its own results.
 */

export interface DomainEvent {
  domain: DomainRow;
  kind: DomainEventKind;
  fields: DomainEventFields;
}

/** Records an event inside the unit of work that changes the status. */
export type RecordDomainEvent = (tables: Tables, event: DomainEvent) => void;

export interface Verification {
  domain: DomainRow;
  checks: CheckReport[];
}

export interface VerifyOptions {
  /** Bypasses our DNS caches. */
  fresh: boolean;
  /** Whether the check was scheduled. */
  automatic: boolean;
  /** Cancels the verification; nothing is written. */
  signal?: AbortSignal;
}

/** Limit for all checks of a domain; the caller waits for them. */
const VERIFICATION_TIMEOUT_MS = 20 * SECOND;

/** Resolves with null when the domain does not exist, was deleted meanwhile, or the verification was cancelled. */
export type Verifier = (domainId: string, options: VerifyOptions) => Promise<Verification | null>;

/**
 * A verification has 20 s for DNS; checks without an answer by then are `unknown`. Scheduled verifications generate
 * keys, requested ones look up the recommended records that no check covers.
 */
export function createVerifier(
  { tables, writer, clock, log }: Pick<Context, 'tables' | 'writer' | 'clock' | 'log'>,
  {
    resolver,
    platform,
    answersHttps,
    fetchFile,
    recordDomainEvent,
    managedKeys,
  }: {
    resolver: Resolver;
    platform: Platform;
    answersHttps: HttpsProbe;
    fetchFile: FetchFile;
    recordDomainEvent: RecordDomainEvent;
    managedKeys: ManagedKeys;
  },
): Verifier {
  /** `checked`: the domain when its verification began, at `checkedAt`. */
  async function apply(
    { checked, checkedAt }: { checked: DomainRow; checkedAt: number },
    results: CheckResults,
    slots: { observations: SlotObservations; generated: GeneratedKeys },
    { automatic, others }: { automatic: boolean; others: RecordResult[] | null },
  ): Promise<Verification | null> {
    const { domain_id: domainId, account_id: accountId } = checked;
    const applied = await writer.run((tables) => {
      const before = tables.domains.byId(domainId);
      if (before === null) return null;
      const now = clock.now();
      // A verification that began later has ended meanwhile: its results are newer, and stay.
      const isOutdated =
        before.last_checked_at !== checked.last_checked_at && (before.last_checked_at ?? 0) > checkedAt;
      if (isOutdated) {
        const options = { now, checkedAt, automatic, pendingKeySince: null };
        const { checks } = applyResults(before, results, options);
        return { before, row: before, checks, event: null, taken: [], isRotated: false };
      }
      const context = { domain: before, keys: tables.dkimKeys.of(domainId), platform };
      const promoted = CHECK_NAMES.filter((name) => {
        const { promotedKey } = results[name];
        return promotedKey !== undefined && promoteKey(tables, domainId, promotedKey, now);
      });
      deleteRetiredKeys(tables, domainId, now);
      const pendingKeySince = pendingKey(tables.dkimKeys.of(domainId))?.created_at ?? null;
      const { taken, dueAt } = managedKeys.apply(tables, before, slots.observations, slots.generated);
      const { row, checks, event } = applyResults(before, results, {
        now,
        checkedAt,
        automatic,
        pendingKeySince,
      });
      if (dueAt !== null) row.next_check_at = Math.min(row.next_check_at, dueAt);
      tables.domains.update(row);
      const found = mergedResults(checkedRecords(context, checks), others, {
        last: storedResults(tables, domainId),
        records: recordsOf(tables, platform, row).recommendedDnsRecords,
      });
      tables.domainChecks.put(domainId, JSON.stringify(found));
      if (event !== null) {
        const fields = {
          status: row.status,
          previousStatus: before.status,
          failing: failingRequired(checks),
        };
        recordDomainEvent(tables, { domain: row, kind: event, fields });
      }
      return { before, row, checks, event, taken, isRotated: promoted.length > 0 };
    }, accountId);
    if (applied === null) return null;
    const { before, row, checks, event, taken, isRotated } = applied;
    const fields = { domainId, domain: row.name };
    if (isRotated) log.info(fields, 'DKIM key rotated: the new key is in DNS and signs');
    managedKeys.report(row, taken);
    if (event !== null)
      log.info({ ...fields, before: before.status, status: row.status }, 'domain status changed');
    return { domain: row, checks };
  }

  /** Requested verifications in progress, by domain. */
  const requested = new Map<string, Promise<Verification | null>>();

  async function verify(
    domainId: string,
    { fresh, automatic, signal }: VerifyOptions,
  ): Promise<Verification | null> {
    const domain = tables.domains.byId(domainId);
    if (domain === null) return null;
    const checkedAt = clock.now();
    const limit = abortAfter(VERIFICATION_TIMEOUT_MS, signal ?? new AbortController().signal);
    const owner = `verification ${domain.account_id}`;
    const view = createDnsView(resolver, { fresh, signal: limit, owner });
    const keys = tables.dkimKeys.of(domainId);
    const files = automatic ? null : { fetch: (url: URL) => fetchFile(url, limit), now: checkedAt };
    const recommended = recordsOf(tables, platform, domain).recommendedDnsRecords;
    const [results, observations, others] = await Promise.all([
      runChecks({ view, platform, domain, keys, answersHttps, files }),
      managedKeys.observe(view, domain, keys),
      automatic ? null : lookUpRecords(view, uncheckedRecords({ domain, keys, platform }, recommended)),
    ]);
    // Only scheduled checks generate keys: key generation may be queued, and a caller waits for a requested check.
    const generated = automatic ? await managedKeys.generate(domain, observations) : NO_KEYS;
    return signal?.aborted === true
      ? null
      : apply({ checked: domain, checkedAt }, results, { observations, generated }, { automatic, others });
  }

  return async (domainId, options) => {
    if (options.automatic) {
      // It would use cached answers that are older than those of the requested one, and end before it.
      await requested.get(domainId)?.catch(() => {});
      return verify(domainId, options);
    }
    const verification = verify(domainId, options);
    requested.set(domainId, verification);
    try {
      return await verification;
    } finally {
      if (requested.get(domainId) === verification) requested.delete(domainId);
    }
  };
}

const NO_KEYS: GeneratedKeys = new Map();

/** A requested verification bypasses all caches and sends about twenty queries. */
const MAX_PER_WINDOW = 10;
const WINDOW_MS = MINUTE;
const MAX_LIMITED_DOMAINS = 10_000;
/** Requested verifications of all domains of an account: evaluating records takes time of the event loop. */
const ACCOUNT_RATE: Rate = { burst: 200, perSecond: 1 };
const MAX_LIMITED_ACCOUNTS = 10_000;

/** Counts a requested verification of the account's domain, or refuses it. `clock`: monotonic. */
export function createVerifyLimit(clock: Clock): (accountId: string, domainId: string) => Refusal | null {
  const recent = createLru<number[]>(MAX_LIMITED_DOMAINS);
  const ofAccounts = createTokenBuckets(clock, ACCOUNT_RATE, MAX_LIMITED_ACCOUNTS);
  return (accountId, domainId) => {
    const now = clock.now();
    const times = (recent.get(domainId) ?? []).filter((at) => at > now - WINDOW_MS);
    const [oldest] = times;
    if (oldest !== undefined && times.length >= MAX_PER_WINDOW) {
      const retryAfter = Math.max(1, Math.ceil((oldest + WINDOW_MS - now) / SECOND));
      return refuse(
        'RATE_LIMITED',
        `A domain may be verified ${MAX_PER_WINDOW} times a minute; try again in ${retryAfter} s`,
        {
          retryAfter,
          limit: { name: 'verification', calls: MAX_PER_WINDOW, seconds: WINDOW_MS / SECOND },
        },
      );
    }
    const { allowed, retryAfterSeconds: retryAfter } = ofAccounts.of(accountId).take();
    if (!allowed) {
      const { burst, perSecond } = ACCOUNT_RATE;
      const message = `An account may verify domains ${perSecond * 60} times a minute; try again in ${retryAfter} s`;
      const limit = { name: 'verification-account', calls: burst, seconds: burst / perSecond };
      return refuse('RATE_LIMITED', message, { retryAfter, limit });
    }
    recent.set(domainId, [...times, now]);
    return null;
  };
}
