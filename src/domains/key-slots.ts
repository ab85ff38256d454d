import type { DomainRow, KeySlot, Lane } from '../store/domains/domains.ts';
import { keyRecordName } from './keys.ts';
import { altDkimHost, type KeyPolicy, type Platform } from './platform/platform.ts';

/**
 * A slot for one of a domain's keys in the platform's zone. The owner of the domain publishes a CNAME for each slot once;
 * its selector and target derive from ids, so that the CNAME can exist before the key. Two slots of a purpose alternate:
 * while the key in one signs, the other contains the former key or the next one.
 */
export interface KeySlotDefinition {
  lane: Lane;
  algorithm: 'rsa' | 'ed25519';
  prefix: string;
  /** The slot of the same purpose whose key signs after a rotation. */
  partner: KeySlot;
}

export const SLOTS: Readonly<Record<KeySlot, KeySlotDefinition>> = {
  a: { lane: 'primary', algorithm: 'rsa', prefix: 'pa', partner: 'b' },
  b: { lane: 'primary', algorithm: 'rsa', prefix: 'pb', partner: 'a' },
  e: { lane: 'primary', algorithm: 'ed25519', prefix: 'pe', partner: 'f' },
  f: { lane: 'primary', algorithm: 'ed25519', prefix: 'pf', partner: 'e' },
  // The required record of the secondary lane.
  s: { lane: 'secondary', algorithm: 'rsa', prefix: 'ps', partner: 't' },
  t: { lane: 'secondary', algorithm: 'rsa', prefix: 'pt', partner: 's' },
};

export const SLOT_NAMES = Object.keys(SLOTS) as KeySlot[]; // the table has no other keys

/** The slots that the policy uses, in addition to the required one of the secondary lane. */
export function optionalSlots({ rotationMs, ed25519 }: KeyPolicy): KeySlot[] {
  return [
    ...(rotationMs === null ? [] : (['a', 'b', 't'] as const)),
    ...(ed25519 ? (['e'] as const) : []),
    ...(ed25519 && rotationMs !== null ? (['f'] as const) : []),
  ];
}

type SlotOwner = Pick<DomainRow, 'alt_domain_id'>;

/** The prefix of the slot and the end of `alt_domain_id`: it never changes, also when another key takes the slot. */
export function slotSelector(domain: SlotOwner, slot: KeySlot): string {
  return `${SLOTS[slot].prefix}${domain.alt_domain_id.slice(-8)}`;
}

/** The name of the CNAME that the owner of the domain publishes. */
export function slotRecordName(domain: SlotOwner & Pick<DomainRow, 'name'>, slot: KeySlot): string {
  return keyRecordName({ domain: domain.name, selector: slotSelector(domain, slot) });
}

/** The target of the CNAME: a name of the platform's zone. */
export function slotHost(platform: Pick<Platform, 'hostname'>, altDomainId: string, slot: KeySlot): string {
  const host = altDkimHost(platform, altDomainId);
  return slot === 's' ? host : `${slot}.${host}`;
}
