import { DAY } from '../core/clock.ts';
import type { DkimKeyRow } from '../store/domains/domains.ts';
import type { Tables } from '../store/tables.ts';

/**
 * Rotation of a primary DKIM key: pending (created and announced) → active (a check found its record; it signs) →
 * retiring (its record stays published for mail in transit) → deleted. The old key signs until the check that finds
 * the new one.
 */

/** How long mail signed with a retired key may still be in transit or be verified again. */
export const RETIREMENT_MS = 7 * DAY;

export function pendingKey(keys: readonly DkimKeyRow[]): DkimKeyRow | undefined {
  return keys.find((key) => key.lane === 'primary' && key.state === 'pending');
}

export function activeKey(
  keys: readonly DkimKeyRow[],
  lane: DkimKeyRow['lane'] = 'primary',
): DkimKeyRow | undefined {
  return keys.find((key) => key.lane === lane && key.state === 'active');
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
  if (old !== undefined) tables.dkimKeys.retire(old.key_id, now);
  tables.dkimKeys.activate(keyId);
  return true;
}

/** Deletes the keys that were retired RETIREMENT_MS ago or earlier. */
export function deleteRetiredKeys(tables: Tables, domainId: string, now: number): void {
  for (const key of tables.dkimKeys.of(domainId)) {
    if (key.state === 'retiring' && now - key.created_at >= RETIREMENT_MS) tables.dkimKeys.remove(key.key_id);
  }
}
