import { describe, expect, it } from 'vitest';
import { SECOND } from '../../src/core/clock.ts';
import {
  createReceiveBudget,
  FREE_BYTES,
  type MailUploadOptions,
  MIN_RATE_WINDOW_MS,
  MIN_WINDOW_BYTES,
} from '../../src/smtp/receive-budget.ts';
import { heldClock } from '../support/store.ts';

const MB = 1_000_000;

/** A budget of 80 MB: 20 MB for an address, 40 MB for a network, 20 MB reserved. */
function setUp() {
  const clock = heldClock();
  const budget = createReceiveBudget(clock, {
    bytes: 80 * MB,
    holderShare: 1 / 4,
    networkShare: 1 / 2,
    reserve: 1 / 4,
  });
  const ended: string[] = [];
  const open = (name: string, wanted: Partial<MailUploadOptions> = {}) =>
    budget.open({
      holder: name,
      network: `network of ${name}`,
      isProven: false,
      evict: (reason) => void ended.push(`${name}: ${reason}`),
      ...wanted,
    });
  /** An upload that has received this much beyond its free amount. */
  const held = (name: string, bytes: number, wanted: Partial<MailUploadOptions> = {}) => {
    const upload = open(name, wanted);
    const fits = upload.reserve(FREE_BYTES + bytes);
    if (fits) upload.progress(FREE_BYTES + bytes);
    return { ...upload, fits };
  };
  return { clock, budget, ended, open, held };
}

describe('memory for mail that is being received', () => {
  it('is released', () => {
    const { budget, held } = setUp();
    const one = held('a', 10 * MB);
    expect(budget.used()).toBe(10 * MB);
    one.release();
    one.release();
    expect(budget.used()).toBe(0);
    expect(one.reserve(1)).toBe(false);
  });

  it('is free for small mails, even when all of it is in use', () => {
    const { held, open } = setUp();
    for (const name of ['a', 'b', 'c', 'd']) held(name, 20 * MB, { isProven: true });
    expect(open('a').reserve(FREE_BYTES)).toBe(true);
    expect(open('e').reserve(FREE_BYTES)).toBe(true);
  });

  it('has a share for each address', () => {
    const { held, ended } = setUp();
    expect(held('a', 15 * MB).fits).toBe(true);
    expect(held('a', 6 * MB).fits).toBe(false);
    expect(held('b', 15 * MB).fits).toBe(true);
    expect(ended).toEqual([]);
  });

  it('has a share for each network', () => {
    const { held } = setUp();
    for (const name of ['a', 'b']) expect(held(name, 20 * MB, { network: 'n' }).fits).toBe(true);
    expect(held('c', MB, { network: 'n' }).fits).toBe(false);
    expect(held('d', MB).fits).toBe(true);
  });

  it('has a reserve for mail with a valid token', () => {
    const { held } = setUp();
    for (const name of ['a', 'b', 'c']) expect(held(name, 20 * MB).fits).toBe(true);
    expect(held('d', MB).fits).toBe(false);
    expect(held('d', 20 * MB, { isProven: true }).fits).toBe(true);
  });

  it('is taken from the slowest upload of the largest holder', () => {
    const { clock, held, ended } = setUp();
    held('slow', 8 * MB);
    const fast = held('fast', 20 * MB);
    const other = held('fast-too', 20 * MB);
    held('stopped', 10 * MB, { holder: 'fast-too-2' });
    held('stopped-2', 2 * MB, { holder: 'fast-too-2' });
    clock.advance(20 * SECOND);
    fast.progress(MB);
    expect(held('new', 5 * MB).fits).toBe(true);
    expect(ended).toEqual(['fast-too: memory-needed']);
    expect(other.reserve(1)).toBe(false);
  });

  it('is taken from the slowest upload of the same address first', () => {
    const { clock, held, ended } = setUp();
    held('one', 10 * MB, { holder: 'a' });
    const two = held('two', 10 * MB, { holder: 'a' });
    clock.advance(10 * SECOND);
    two.progress(1000);
    expect(held('three', 5 * MB, { holder: 'a' }).fits).toBe(true);
    expect(ended).toEqual(['one: memory-needed']);
  });

  it('is never taken from a smaller holder', () => {
    const { clock, held, ended } = setUp();
    for (const name of ['a', 'b', 'c']) held(name, 18 * MB);
    held('small', 6 * MB);
    clock.advance(10 * SECOND);
    expect(held('large', 19 * MB).fits).toBe(false);
    expect(ended).toEqual([]);
  });

  it('is not taken from a mail that has arrived, nor from one that has just begun', () => {
    const { clock, held, ended } = setUp();
    const arrived = ['a', 'b'].map((name) => held(name, 20 * MB));
    for (const upload of arrived) upload.finish();
    clock.advance(10 * SECOND);
    held('c', 20 * MB);
    expect(held('d', MB).fits).toBe(false);
    clock.advance(2 * SECOND);
    expect(held('d', MB).fits).toBe(true);
    expect(ended).toEqual(['c: memory-needed']);
  });
});

describe('the minimum rate', () => {
  it('ends an upload that stays below it, however much it sent before', () => {
    const { clock, budget, open, ended } = setUp();
    const slow = open('slow');
    const steady = open('steady');
    slow.progress(10 * MB);
    for (let n = 0; n < 3; n++) {
      slow.progress(MIN_WINDOW_BYTES / 3);
      steady.progress(MIN_WINDOW_BYTES);
      clock.advance(MIN_RATE_WINDOW_MS);
      budget.sweep();
    }
    expect(ended).toEqual(['slow: too-slow']);
  });

  it('does not apply to a mail that has arrived', () => {
    const { clock, budget, open, ended } = setUp();
    open('a').finish();
    clock.advance(10 * MIN_RATE_WINDOW_MS);
    budget.sweep();
    expect(ended).toEqual([]);
  });
});
