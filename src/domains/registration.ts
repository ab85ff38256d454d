import { MINUTE } from '../core/clock.ts';
import { isRefusal, type Refusal } from '../core/refusal.ts';
import type { Context } from '../store/context.ts';
import { checkColumns, type DomainRow } from '../store/domains/domains.ts';
import type { MayAdd, Tables } from '../store/tables.ts';
import { findGroup } from './groups.ts';
import type { KeyQueue } from './key-queue.ts';
import { newSelector, sealKey } from './keys.ts';
import { registrableDomain } from './names.ts';
import type { Platform } from './platform/platform.ts';
import { findUseCase, type OfferedUseCase, type RegionSetting } from './use-cases.ts';

export interface DomainInput {
  domain: string;
  useCaseId: string;
  groupId?: string | undefined;
}

/** `created` is false when the account had already registered the name for the use case; that domain is unchanged. */
export type RegisterDomain = (
  accountId: string,
  input: DomainInput,
) => Promise<{ domain: DomainRow; created: boolean } | Refusal>;

/** Pause before the first scheduled check of a new domain or key. */
export const FIRST_CHECK_MS = MINUTE;

/**
 * Refuses invalid names, unknown use cases and groups, and what `mayAdd` or the key queue refuses. The RSA key is
 * generated before the unit of work, which checks group and limit again. Throws for an account without a default group.
 */
export function createRegistration(
  {
    config,
    tables,
    writer,
    clock,
    ids,
    log,
    seal,
  }: Pick<Context, 'tables' | 'writer' | 'clock' | 'ids' | 'log' | 'seal'> & {
    config: { regions: readonly RegionSetting[] };
  },
  { platform, keyQueue, mayAdd }: { platform: Platform; keyQueue: KeyQueue; mayAdd: MayAdd },
): RegisterDomain {
  return async (accountId, input) => {
    const name = registrableDomain(input.domain);
    if (isRefusal(name)) return name;
    const useCase = findUseCase(config.regions, input.useCaseId);
    if (isRefusal(useCase)) return useCase;
    const groupId = groupFor(tables, accountId, input.groupId);
    if (isRefusal(groupId)) return groupId;
    const existing = findRegistered(tables, accountId, name, useCase);
    if (existing !== undefined) return { domain: existing, created: false };
    // Before the expensive key; the unit of work checks it again, with exact numbers.
    const refusal = mayAdd(tables, accountId);
    if (refusal !== null) return refusal;

    const now = clock.now();
    const row: DomainRow = {
      domain_id: ids.make('domain'),
      account_id: accountId,
      group_id: groupId,
      name,
      use_case: useCase.useCase,
      region: useCase.region.code,
      status: 'PENDING',
      ...checkColumns(0 as const),
      return_path: platform.returnPath === 'platform' ? 'platform' : 'customer',
      tracking_domain: null,
      tracking_host: null,
      track_opens: 0,
      track_clicks: 0,
      alt_domain_id: ids.make('alt'),
      alt_status: 'PENDING',
      alt_provisioned: 0,
      last_checked_at: null,
      next_check_at: now + FIRST_CHECK_MS,
      check_count: 0,
      failing_since: null,
      created_at: now,
      updated_at: now,
    };
    // Before the unit of work, which is synchronous; the key is discarded when another request has registered the name.
    const generated = await keyQueue.generate(accountId);
    if (isRefusal(generated)) return generated;
    const attributes = { selector: newSelector(ids), lane: 'primary', state: 'active' } as const;
    const key = sealKey(seal, generated, row.domain_id, attributes, now);
    const result = await writer.run((tx): { domain: DomainRow; created: boolean } | Refusal => {
      const registered = findRegistered(tx, accountId, name, useCase);
      if (registered !== undefined) return { domain: registered, created: false };
      const currentGroup = groupFor(tx, accountId, input.groupId);
      if (isRefusal(currentGroup)) return currentGroup;
      const limit = mayAdd(tx, accountId);
      if (limit !== null) return limit;
      tx.domains.insert(row);
      tx.dkimKeys.insert(key);
      return { domain: row, created: true };
    }, accountId);
    if (!isRefusal(result) && result.created)
      log.info(
        { domainId: row.domain_id, domain: name, accountId, useCase: useCase.id },
        'domain registered',
      );
    return result;
  };
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

/** The id of the requested group, or of the account's default group. */
function groupFor(tables: Tables, accountId: string, groupId: string | undefined): string | Refusal {
  if (groupId !== undefined) {
    const group = findGroup(tables, accountId, groupId);
    return isRefusal(group) ? group : group.group_id;
  }
  const group = tables.domainGroups.defaultOf(accountId);
  if (group === null) throw new Error(`account ${accountId} has no default domain group`);
  return group.group_id;
}
