import { describe, expect, it } from 'vitest';
import { DAY, HOUR } from '../../src/core/clock.ts';
import {
  type KeyStep,
  planKeySteps,
  type SlotObservation,
  type SlotObservations,
} from '../../src/domains/key-rotation/plan.ts';
import { SLOTS } from '../../src/domains/key-slots.ts';
import type { KeyPolicy } from '../../src/domains/platform/platform.ts';
import type { DkimKeyRow, DkimKeyState, KeySlot } from '../../src/store/domains/domains.ts';

const NOW = 1000 * DAY;
const PERIOD = 180 * DAY;
const GRACE = 7 * DAY;

const ROTATING: KeyPolicy = { rotationMs: PERIOD, ed25519: false };
const BOTH: KeyPolicy = { rotationMs: PERIOD, ed25519: true };
const NEVER: KeyPolicy = { rotationMs: null, ed25519: false };

const FOUND: SlotObservation = { delegated: true, found: 'pass' };
const DELEGATED: SlotObservation = { delegated: true, found: 'unknown' };
const UNPUBLISHED: SlotObservation = { delegated: true, found: 'fail' };
const GONE: SlotObservation = { delegated: false, found: 'fail' };
const SILENT: SlotObservation = { delegated: null, found: 'unknown' };
const ABSENT: SlotObservation = { delegated: false, found: 'unknown' };

/** A key in each named slot: `a active 10` has had its state for ten days, `a pending 2h` for two hours. */
function keysOf(...texts: string[]): DkimKeyRow[] {
  return texts.map((text, index) => {
    const [slot, state, age = '0'] = text.split(' ') as [KeySlot, DkimKeyState, string?];
    const ms = age.endsWith('h') ? Number.parseInt(age, 10) * HOUR : Number.parseInt(age, 10) * DAY;
    const { lane, prefix } = SLOTS[slot];
    const times = { created_at: NOW - ms, changed_at: NOW - ms };
    const row = { key_id: index + 1, domain_id: 'domain_1', private_key: Buffer.alloc(0), public_key: '' };
    return { ...row, ...times, lane, slot, selector: `${prefix}1`, state };
  });
}

const shown = (step: KeyStep) => `${step.kind} ${step.kind === 'create' ? step.slot : step.key.slot}`;

describe('the steps of keys in the zone of the platform', () => {
  it.each<[string, string[], SlotObservations, KeyPolicy, string[]]>([
    ['nothing without CNAME records', [], { a: ABSENT, b: ABSENT, t: ABSENT }, ROTATING, []],
    ['nothing with one of two CNAME records', [], { a: DELEGATED, b: ABSENT }, ROTATING, []],
    [
      'both keys with both CNAME records',
      [],
      { a: DELEGATED, b: DELEGATED },
      ROTATING,
      ['create a', 'create b'],
    ],
    ['no keys that the settings do not use', [], { a: DELEGATED, b: DELEGATED, e: DELEGATED }, NEVER, []],
    ['nothing while DNS does not answer', [], { a: SILENT, b: DELEGATED }, ROTATING, []],
    [
      'nothing until a key was published for an hour',
      ['a pending 0h', 'b pending 0h'],
      { a: FOUND, b: FOUND },
      ROTATING,
      [],
    ],
    [
      'nothing while the zone does not have the key',
      ['a pending 3', 'b pending 3'],
      { a: UNPUBLISHED, b: UNPUBLISHED },
      ROTATING,
      [],
    ],
    [
      'the first key signs',
      ['a pending 2h', 'b pending 2h'],
      { a: FOUND, b: FOUND },
      ROTATING,
      ['activate a'],
    ],
    [
      'nothing before the period ends',
      ['a active 179', 'b pending 179'],
      { a: FOUND, b: FOUND },
      ROTATING,
      [],
    ],
    [
      'the next key signs after the period',
      ['a active 180', 'b pending 180'],
      { a: FOUND, b: FOUND },
      ROTATING,
      ['retire a', 'activate b'],
    ],
    [
      'the old key continues to sign while the next one is not found',
      ['a active 400', 'b pending 400'],
      { a: FOUND, b: UNPUBLISHED },
      ROTATING,
      [],
    ],
    ['no rotation with "never"', ['a active 400', 'b pending 400'], { a: FOUND, b: FOUND }, NEVER, []],
    [
      'a retired key stays for the grace period',
      ['b active 6', 'a retiring 6'],
      { a: FOUND, b: FOUND },
      ROTATING,
      [],
    ],
    ['then it is revoked', ['b active 7', 'a retiring 7'], { a: FOUND, b: FOUND }, ROTATING, ['revoke a']],
    [
      'a revoked key stays for 30 days',
      ['b active 36', 'a revoked 29'],
      { a: DELEGATED, b: FOUND },
      ROTATING,
      [],
    ],
    [
      'then it is deleted',
      ['b active 37', 'a revoked 30'],
      { a: DELEGATED, b: FOUND },
      ROTATING,
      ['delete a'],
    ],
    ['its slot gets the next key', ['b active 38'], { a: DELEGATED, b: FOUND }, ROTATING, ['create a']],
    [
      'revocation needs no DNS',
      ['b active 7', 'a retiring 7'],
      { a: SILENT, b: SILENT },
      ROTATING,
      ['revoke a'],
    ],
    [
      'a key is deactivated when its CNAME is missing',
      ['a active 9', 'b pending 9'],
      { a: GONE, b: GONE },
      ROTATING,
      ['deactivate a'],
    ],
    [
      'its partner takes over if it is found',
      ['a active 9', 'b pending 9'],
      { a: GONE, b: FOUND },
      ROTATING,
      ['retire a', 'activate b'],
    ],
    ['a timeout changes nothing', ['a active 9', 'b pending 9'], { a: SILENT, b: SILENT }, ROTATING, []],
    [
      'the secondary lane gets its next key',
      ['s active 9'],
      { s: FOUND, t: DELEGATED },
      ROTATING,
      ['create t'],
    ],
    ['not without its second CNAME', ['s active 400'], { s: FOUND, t: ABSENT }, ROTATING, []],
    [
      'the secondary lane rotates',
      ['s active 200', 't pending 9'],
      { s: FOUND, t: FOUND },
      ROTATING,
      ['retire s', 'activate t'],
    ],
    [
      'the secondary lane gets its first slot back',
      ['t active 38'],
      { s: DELEGATED, t: FOUND },
      ROTATING,
      ['create s'],
    ],
    [
      'the secondary key continues to sign when its CNAME is missing',
      ['s active 9'],
      { s: GONE, t: ABSENT },
      ROTATING,
      [],
    ],
    ['an Ed25519 key with its CNAME alone', [], { e: DELEGATED, f: ABSENT }, BOTH, ['create e']],
    ['the Ed25519 key signs', ['e pending 2h'], { e: FOUND, f: ABSENT }, BOTH, ['activate e']],
    ['it is retired with the setting', ['e active 9'], { e: FOUND }, ROTATING, ['retire e']],
  ])('%s', (_, keys, observations, policy, steps) => {
    const planned = planKeySteps(keysOf(...keys), observations, policy, { graceMs: GRACE, now: NOW });
    expect(planned.map(shown)).toEqual(steps);
  });
});
