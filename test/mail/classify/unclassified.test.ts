import { describe, expect, it } from 'vitest';
import { createUnclassifiedReplies, withoutDetails } from '../../../src/mail/classify/unclassified.ts';
import { heldClock } from '../../support/store.ts';

const reply = (text: string, code = 451) => ({ code, enhanced: null, text });

describe('the text of an unclassified reply', () => {
  it.each([
    ['451 4.7.1 Mumble a1b2-9 for <ada@example.net> at 192.0.2.1', 'mumble # for <@> at #'],
    [
      'Queue id 4F2A9C1 (S77719), see https://example.net/why?ip=192.0.2.1&id=7',
      'queue id # (#), see https://example.net/why',
    ],
    ['The mailbox "Ada Lovelace" is strange', 'the mailbox "…" is strange'],
    ['ada.lovelace@example.net...nope', '@..nope'],
  ])('has no addresses, numbers and identifiers: %s', (text, expected) => {
    expect(withoutDetails(text)).toBe(expected);
  });

  it('is bounded', () => {
    expect(withoutDetails('mumble '.repeat(1000)).length).toBeLessThanOrEqual(300);
  });
});

describe('unclassified replies', () => {
  it('are counted by their text until they are taken', () => {
    const clock = heldClock();
    const replies = createUnclassifiedReplies(clock.now);
    const first = clock.now();
    replies.add('rcpt', reply('Mumble 1'), 'mx1.test');
    clock.advance(1000);
    replies.add('rcpt', reply('mumble 2'), 'mx2.test');
    replies.add('dot', reply('mumble 3'), null);
    const taken = replies.take(10);
    expect(taken).toEqual([
      {
        code: 451,
        enhanced: '',
        phase: 'rcpt',
        text: 'mumble #',
        host: 'mx2.test',
        replies: 2,
        firstAt: first,
        lastAt: clock.now(),
      },
      expect.objectContaining({ phase: 'dot', host: '', replies: 1 }),
    ]);
    expect(replies.take(10)).toEqual([]);
    replies.giveBack(taken);
    replies.add('rcpt', reply('mumble 4'), 'mx3.test');
    expect(replies.take(1)).toEqual([
      expect.objectContaining({ replies: 3, firstAt: first, host: 'mx3.test' }),
    ]);
  });

  it('are bounded in number', () => {
    const replies = createUnclassifiedReplies(() => 0);
    for (let n = 0; n < 1000; n++)
      replies.add('rcpt', reply(`mumble${'x'.repeat(n % 250)}${n > 500 ? 'y' : ''}`), null);
    for (let n = 0; n < 5000; n++) replies.add('rcpt', reply('word '.repeat(n % 60), 400 + (n % 90)), null);
    expect(replies.take(10_000)).toHaveLength(500);
  });
});
