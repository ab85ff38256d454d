import { DAY } from '../core/clock.ts';
import type { DkimKeyRow } from '../store/domains/domains.ts';
import type { Tables } from '../store/tables.ts';

/**
 * The change of a primary DKIM key: pending (made, announced, not seen) → active (seen by a check; signs) →
 * retiring (its record still stands, for mail that is under way) → gone. The old key signs until the very
 * check that has seen the new one.
 */

/** How long mail that a retired key has signed may still be under way or looked at again. */
export const GRACE = 7 * DAY;

export function pendingKey(keys: readonly DkimKeyRow[]): DkimKeyRow | undefined {
  return keys.find((key) => key.lane === 'primary' && key.state === 'pending');
}

export function activeKey(
  keys: readonly DkimKeyRow[],
  lane: DkimKeyRow['lane'] = 'primary',
): DkimKeyRow | undefined {
  return keys.find((key) => key.lane === lane && key.state === 'active');
}

/** Puts the pending key in the place of the active one; does nothing when it is not pending any more. */
export function promote(tables: Tables, domainId: string, keyId: number, now: number): boolean {
  const keys = tables.dkimKeys.of(domainId);
  const next = pendingKey(keys);
  if (next?.key_id !== keyId) return false;
  const old = activeKey(keys);
  if (old !== undefined) tables.dkimKeys.retire(old.key_id, now);
  tables.dkimKeys.activate(keyId);
  return true;
}

/** Forgets keys that were retired long enough ago. */
export function dropRetired(tables: Tables, domainId: string, now: number): void {
  for (const key of tables.dkimKeys.of(domainId)) {
    if (key.state === 'retiring' && now - key.created_at >= GRACE) tables.dkimKeys.remove(key.key_id);
  }
}
