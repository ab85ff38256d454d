import type { Config } from '../config/schema.ts';
import { DAY } from '../core/clock.ts';
import type { DkimKeyRow } from '../store/domains/domains.ts';
import type { Tables } from '../store/tables.ts';

/*
 * Rotation of a primary DKIM key that the owner of the domain publishes: pending (created and announced) → active (a
 * check found its record; it signs) → retiring (its record stays published for mail in transit) → deleted. The old key
 * signs until the check that finds the new one.
 */

/** How long the record of a retired key stays published: mail that it signed may be in transit or be verified again. */
export const RETIREMENT_MS = 7 * DAY;

/** How long mail of each stream is retried, ms. */
export type RetryTimes = Pick<Config['delivery']['retry'], 'expireMarketing' | 'expireTransactional'>;

/** RETIREMENT_MS, or longer where mail is retried for longer, so that the last attempt can still be verified. */
export function retirementMs(retry: RetryTimes | undefined): number {
  return Math.max(
    RETIREMENT_MS,
    (retry?.expireMarketing ?? 0) + 2 * DAY,
    (retry?.expireTransactional ?? 0) + 2 * DAY,
  );
}

/**
 * The primary key that is announced to the owner of the domain and not found in DNS yet; undefined: there is no
 * rotation. Keys in the platform's zone (`slot`) do not count.
 */
export function pendingKey(keys: readonly DkimKeyRow[]): DkimKeyRow | undefined {
  return keys.find((key) => key.lane === 'primary' && key.slot === null && key.state === 'pending');
}

/** The active key of the lane: of the primary one, the key that the owner of the domain publishes. */
export function activeKey(
  keys: readonly DkimKeyRow[],
  lane: DkimKeyRow['lane'] = 'primary',
): DkimKeyRow | undefined {
  return keys.find(
    (key) => key.lane === lane && key.state === 'active' && (lane === 'secondary' || key.slot === null),
  );
}

/** The primary key whose record the owner of the domain publishes: during a rotation the pending one. */
export function announcedKey(keys: readonly DkimKeyRow[]): DkimKeyRow | undefined {
  return pendingKey(keys) ?? activeKey(keys);
}

/** Activates the pending key and retires the active one. False, without effect, when the key is no longer pending. */
export function promoteKey(tables: Tables, domainId: string, keyId: number, now: number): boolean {
  const keys = tables.dkimKeys.of(domainId);
  const next = pendingKey(keys);
  if (next?.key_id !== keyId) return false;
  const old = activeKey(keys);
  if (old !== undefined) tables.dkimKeys.setState(old.key_id, 'retiring', now);
  tables.dkimKeys.setState(keyId, 'active', now);
  return true;
}

/** Deletes the keys of the owner's records that were retired RETIREMENT_MS ago or earlier. */
export function deleteRetiredKeys(tables: Tables, domainId: string, now: number): void {
  for (const key of tables.dkimKeys.of(domainId)) {
    const isRetired = key.slot === null && key.state === 'retiring';
    if (isRetired && now - key.changed_at >= RETIREMENT_MS) tables.dkimKeys.remove(key.key_id);
  }
}
