import { describe, expect, it } from 'vitest';
import { createIds } from '../../../src/core/ids.ts';
import { systemRandom } from '../../../src/core/random.ts';
import { DOMAIN_EVENT_KINDS, MESSAGE_EVENT_KINDS } from '../../../src/events/event-types.ts';
import { emailIdentifier } from '../../../src/mail/identifier.ts';
import { MESSAGE_STATUSES } from '../../../src/store/messages/messages.ts';
import {
  codeOfKind,
  idOfEvent,
  idOfKey,
  keyOfEvent,
  keyOfId,
  keyOfRecipient,
  kindOfCode,
  recipientOfKey,
  STATUS_CODES,
} from '../../../src/store/rows/row-keys.ts';
import { heldClock } from '../../support/store.ts';

const AT = Date.UTC(2026, 0, 15, 12);

describe('the key of an id', () => {
  it('has 14 bytes for every id that the program creates', () => {
    const clock = heldClock(AT);
    const ids = createIds(clock, systemRandom);
    for (let made = 0; made < 200; made++) {
      clock.advance(made ** 3);
      const id = ids.make('msg');
      const key = keyOfId('msg', id);
      expect(key).toHaveLength(14);
      expect(idOfKey('msg', key)).toBe(id);
    }
  });

  it.each(['msg_0_000000000000', 'msg_281474976710655_zzzzzzzzzzzz', `msg_${AT}_00000z00000z`])(
    'round-trips %s',
    (id) => {
      const key = keyOfId('msg', id);
      expect(key).toBeInstanceOf(Buffer);
      expect(idOfKey('msg', key)).toBe(id);
    },
  );

  it.each([
    '',
    'msg_one',
    'msg_01_000000000000',
    'msg_281474976710656_000000000000',
    'msg_1_00000000000A',
    'msg_1_0000000000000',
    'job_1_000000000000',
    'msg_1_000000000000\n',
  ])('is the text itself for %j', (id) => {
    expect(keyOfId('msg', id)).toBe(id);
    expect(idOfKey('msg', id)).toBe(id);
  });

  it('sorts like the ids of a kind', () => {
    const ids = [
      'msg_999_zzzzzzzzzzzz',
      'msg_1000_00000000000z',
      'msg_1000_000001000000',
      'msg_1000_000001000001',
    ];
    const keys = ids.map((id) => Buffer.from(keyOfId('msg', id)));
    expect(keys.toSorted(Buffer.compare)).toEqual(keys);
  });
});

describe('the key of an event', () => {
  it.each([
    ['8 bytes when the id has the time of the event', `evt_${AT}_0123456789ab`, 8],
    ['14 bytes when it has another time', `evt_${AT + 1}_0123456789ab`, 14],
    ['the text of another shape', 'evt_one', 7],
    ['the text of another kind', `msg_${AT}_0123456789ab`, 30],
  ])('takes %s', (_, id, length) => {
    const key = keyOfEvent(id, AT);
    expect(key).toHaveLength(length);
    expect(idOfEvent(key, AT)).toBe(id);
  });
});

describe('the key of a recipient', () => {
  it('has 16 bytes for the hash of an address', () => {
    const identifier = emailIdentifier('ada@example.net');
    expect(keyOfRecipient(identifier)).toHaveLength(16);
    expect(recipientOfKey(keyOfRecipient(identifier))).toBe(identifier);
  });

  it.each([
    '',
    'ada@example.net',
    `phone_${'0'.repeat(32)}`,
    `email_${'0'.repeat(31)}`,
    `email_${'A'.repeat(32)}`,
  ])('is the text itself for %j', (identifier) => {
    expect(keyOfRecipient(identifier)).toBe(identifier);
    expect(recipientOfKey(identifier)).toBe(identifier);
  });
});

it('has a code for every kind of event', () => {
  for (const kind of [...MESSAGE_EVENT_KINDS, ...DOMAIN_EVENT_KINDS]) {
    expect(codeOfKind(kind)).toBeTypeOf('bigint');
    expect(kindOfCode(Number(codeOfKind(kind)))).toBe(kind);
  }
  expect(codeOfKind('other')).toBe('other');
  expect(kindOfCode('other')).toBe('other');
  expect(() => kindOfCode(99)).toThrow('there is no event kind 99');
});

it('has a code of one byte for every status', () => {
  for (const status of MESSAGE_STATUSES) {
    expect(STATUS_CODES.code(status)).toBeGreaterThan(1);
    expect(STATUS_CODES.code(status)).toBeLessThan(128);
    expect(STATUS_CODES.value(STATUS_CODES.code(status))).toBe(status);
  }
});
