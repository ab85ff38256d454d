import { DAY, HOUR } from '../../core/clock.ts';
import type { DkimKeyRow, KeySlot } from '../../store/domains/domains.ts';
import { optionalSlots, SLOTS } from '../key-slots.ts';
import type { KeyPolicy } from '../platform/platform.ts';
import type { Verdict } from '../verification/checks/check.ts';

/*
 * Rotation of the keys in the platform's zone, as a pure function of the rows and of what DNS has. A key is pending
 * (published) → active (signs) → retiring (published, because mail that it signed is still in transit) → revoked (its
 * record is empty, RFC 6376 §3.6.1) → deleted. A key becomes active only when it was created MIN_PUBLISHED_MS ago and is
 * found in DNS, so that a zone that is published late or not at all delays a rotation and breaks nothing. A step that was
 * not recorded is planned again.
 */

/** A change of one key. */
export type KeyStep =
  | { kind: 'create'; slot: KeySlot }
  | { kind: 'activate' | 'deactivate' | 'retire' | 'revoke' | 'delete'; key: DkimKeyRow };

/** The state of a slot's record in DNS. */
export interface SlotObservation {
  /** Whether the domain has the CNAME to the platform's zone; null: DNS gave no answer. */
  delegated: boolean | null;
  /** Whether verifiers find the key of the slot; 'unknown' also without a key. */
  found: Verdict;
}

export type SlotObservations = Partial<Record<KeySlot, SlotObservation>>;

export interface RotationTimes {
  /** Time for which a retired key stays published, ms: longer than any message is retried. */
  graceMs: number;
  now: number;
}

/** Until this age of a key, resolvers may have an earlier answer for its selector in their caches. */
export const MIN_PUBLISHED_MS = HOUR;
/** Time for which the empty record of a revoked key stays published. */
export const REVOKED_MS = 30 * DAY;

/** The first slot of each purpose. */
const PURPOSES: readonly KeySlot[] = ['a', 'e', 's'];

/** Returns the steps that are due for the keys of one domain. */
export function planKeySteps(
  keys: readonly DkimKeyRow[],
  observations: SlotObservations,
  policy: KeyPolicy,
  times: RotationTimes,
): KeyStep[] {
  return PURPOSES.flatMap((first) => planPurpose(first, keys, observations, policy, times));
}

function planPurpose(
  first: KeySlot,
  keys: readonly DkimKeyRow[],
  observations: SlotObservations,
  policy: KeyPolicy,
  { graceMs, now }: RotationTimes,
): KeyStep[] {
  const slots: KeySlot[] = [first, SLOTS[first].partner];
  const own = keys.filter(({ slot }) => slot !== null && slots.includes(slot));
  const age = (key: DkimKeyRow) => now - key.changed_at;
  const observationOf = (slot: KeySlot | null) => (slot === null ? undefined : observations[slot]);
  const steps: KeyStep[] = own.flatMap((key): KeyStep[] => {
    if (key.state === 'retiring' && age(key) >= graceMs) return [{ kind: 'revoke', key }];
    return key.state === 'revoked' && age(key) >= REVOKED_MS ? [{ kind: 'delete', key }] : [];
  });

  const wanted = optionalSlots(policy);
  const isEd25519 = SLOTS[first].algorithm === 'ed25519';
  const active = own.find(({ state }) => state === 'active');
  const ready = own.find(
    (key) =>
      key.state === 'pending' && observationOf(key.slot)?.found === 'pass' && age(key) >= MIN_PUBLISHED_MS,
  );
  if (active !== undefined && isEd25519 && !policy.ed25519)
    return [...steps, { kind: 'retire', key: active }];
  if (active === undefined) {
    // The required key of the secondary lane is created active.
    if (first !== 's' && ready !== undefined && (wanted.includes(first) || !isEd25519)) {
      steps.push({ kind: 'activate', key: ready });
    }
  } else if (isLost(observationOf(active.slot)) && first !== 's') {
    // The owner removed the CNAME: another key of the domain signs.
    if (ready === undefined) steps.push({ kind: 'deactivate', key: active });
    else steps.push({ kind: 'retire', key: active }, { kind: 'activate', key: ready });
  } else if (policy.rotationMs !== null && age(active) >= policy.rotationMs && ready !== undefined) {
    steps.push({ kind: 'retire', key: active }, { kind: 'activate', key: ready });
  }

  // Without both CNAMEs of the primary lane a rotation would end with its first step. The secondary lane has its first key.
  const rotates = slots.every((slot) => observationOf(slot)?.delegated === true);
  for (const slot of slots) {
    const isEmpty = !own.some((key) => key.slot === slot);
    const isWanted = wanted.includes(slot) || (slot === 's' && active?.slot === 't');
    const isUsable = isEd25519 ? observationOf(slot)?.delegated === true : rotates;
    if (isEmpty && isWanted && isUsable) steps.push({ kind: 'create', slot });
  }
  return steps;
}

function isLost(observation: SlotObservation | undefined): boolean {
  return observation?.delegated === false && observation.found === 'fail';
}
