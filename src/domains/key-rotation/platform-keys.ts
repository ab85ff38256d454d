import { createDnsView } from '../../dns/dns-view.ts';
import type { Resolver } from '../../dns/resolver.ts';
import type { Context } from '../../store/context.ts';
import { type PlatformKeyRow, platformSealContext } from '../../store/domains/platform-keys.ts';
import type { KeyQueue } from '../key-queue.ts';
import { publicKeyOf } from '../keys.ts';
import type { Platform } from '../platform/platform.ts';
import { checkKey } from '../verification/checks/dkim.ts';
import { REVOKED_MS } from './plan.ts';

/*
 * The keys of the platform's own signature (`d=` is the host name). Each key has a new selector, signs once DNS has its
 * record, and is retired, revoked and deleted like the keys of domains (plan.ts).
 */

/** Takes the steps that are due. All state is in the database, so it can be interrupted at any time. */
export type AdvancePlatformKeys = (signal: AbortSignal) => Promise<void>;

/**
 * The function is called once a minute (`createDomainJobs`). A call either creates a key, or writes the steps of all
 * keys in one unit of work; it looks a record up only while a pending key waits for it.
 */
export function createPlatformKeys(
  {
    tables,
    writer,
    clock,
    ids,
    log,
    seal,
  }: Pick<Context, 'tables' | 'writer' | 'clock' | 'ids' | 'log' | 'seal'>,
  { resolver, keyQueue, platform }: { resolver: Resolver; keyQueue: KeyQueue; platform: Platform },
): AdvancePlatformKeys {
  function isDue(key: PlatformKeyRow, now: number): boolean {
    const { rotationMs } = platform.keyPolicy;
    return key.state === 'active' && rotationMs !== null && now - key.changed_at >= rotationMs;
  }

  async function create(): Promise<void> {
    const key = await keyQueue.generateInBackground();
    const selector = `pf${ids.label(8)}`;
    const now = clock.now();
    const secret = key.export({ type: 'pkcs8', format: 'der' });
    const row = {
      selector,
      state: 'pending',
      private_key: seal.seal(secret, platformSealContext(selector)),
      public_key: publicKeyOf(key),
      created_at: now,
      changed_at: now,
    } as const;
    await writer.run(({ platformKeys }) => platformKeys.insert(row));
    log.info({ selector }, 'DKIM key of the platform created; it signs once its record is in DNS');
  }

  /** The pending key if its record is in DNS. */
  async function findPublished(
    keys: readonly PlatformKeyRow[],
    signal: AbortSignal,
  ): Promise<PlatformKeyRow | null> {
    const pending = keys.find(({ state }) => state === 'pending');
    if (pending === undefined) return null;
    const view = createDnsView(resolver, { fresh: true, signal });
    const { hostname: domain } = platform;
    const { verdict } = await checkKey(view, {
      domain,
      selector: pending.selector,
      publicKey: pending.public_key,
    });
    return verdict === 'pass' ? pending : null;
  }

  return async (signal) => {
    const now = clock.now();
    const keys = tables.platformKeys.list();
    const { signs } = platform;
    const current = keys.find(({ state }) => state === 'active');
    const needsKey = signs && (current === undefined || isDue(current, now));
    if (needsKey && !keys.some(({ state }) => state === 'pending')) return create();
    const published = needsKey ? await findPublished(keys, signal) : null;
    const changes = keys.flatMap((key): [PlatformKeyRow, 'active' | 'retiring' | 'revoked' | 'deleted'][] => {
      if (key === published) return [[key, 'active']];
      const age = now - key.changed_at;
      if (key.state === 'active' && (published !== null || !signs)) return [[key, 'retiring']];
      if (key.state === 'retiring' && age >= platform.retirementMs) return [[key, 'revoked']];
      return key.state === 'revoked' && age >= REVOKED_MS ? [[key, 'deleted']] : [];
    });
    if (changes.length === 0) return;
    await writer.run(({ platformKeys }) => {
      for (const [{ key_id: keyId }, next] of changes) {
        if (next === 'deleted') platformKeys.remove(keyId);
        else platformKeys.setState(keyId, next, now);
      }
    });
    for (const [{ selector, state }, next] of changes)
      log.info({ selector, before: state, state: next }, 'DKIM key of the platform changed');
  };
}
