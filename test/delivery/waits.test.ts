import { describe, expect, it } from 'vitest';
import { MINUTE } from '../../src/core/clock.ts';
import { createLog } from '../../src/core/log.ts';
import { createWaits } from '../../src/delivery/waits.ts';
import { heldClock } from '../support/store.ts';

function start() {
  const clock = heldClock();
  const lines: string[] = [];
  const log = createLog(
    { level: 'info', hashAddresses: true },
    { write: (line) => void lines.push(String(JSON.parse(line).msg)) },
  );
  const waits = createWaits({ clock, monotonic: clock, log });
  const of = (domainId: string, accountId = 'acct_one') => ({ domain_id: domainId, account_id: accountId });
  const fail = (times: number, sender = of('domain_one')) => {
    for (let n = 0; n < times; n++) waits.prepareFailed(sender, new Error('unreadable key'));
  };
  const domainMs = (id: string) => waits.msOf('domain_parked', id);
  const accountMs = (id: string) => waits.msOf('account_parked', id);
  return { clock, lines, waits, domainMs, accountMs, of, fail };
}

describe('a domain whose mail cannot be prepared', () => {
  it('is parked at the third failure in a row, and listed with the reason', () => {
    const { accountMs, domainMs, waits, fail, lines, clock } = start();
    fail(2);
    expect(domainMs('domain_one')).toBe(0);
    expect(waits.parked()).toEqual([]);
    fail(1);
    expect(domainMs('domain_one')).toBe(MINUTE);
    const since = new Date(clock.now()).toISOString();
    expect(waits.parked()).toEqual([{ kind: 'domain', id: 'domain_one', since, reason: 'unreadable key' }]);
    expect(waits.count('domain_parked')).toBe(1);
    expect(lines).toEqual(['domain parked: its mail cannot be prepared']);
    expect(domainMs('domain_two')).toBe(0);
    expect(accountMs('acct_one')).toBe(0);
  });

  it('is not parked when others of its messages succeed in between', () => {
    const { domainMs, waits, fail, of } = start();
    for (let n = 0; n < 10; n++) {
      fail(2);
      waits.prepared(of('domain_one'));
    }
    expect(domainMs('domain_one')).toBe(0);
  });

  it('is tried again with one message, later each time; messages taken before count once', () => {
    const { domainMs, waits, fail, clock } = start();
    const waited: number[] = [];
    fail(3);
    for (let n = 0; n < 7; n++) {
      waited.push(domainMs('domain_one') / MINUTE);
      fail(10);
      clock.advance(domainMs('domain_one'));
      expect(domainMs('domain_one')).toBe(0);
      expect(waits.count('domain_parked')).toBe(1);
      fail(1);
    }
    expect(waited).toEqual([1, 2, 4, 8, 16, 30, 30]);
  });

  it('is released by the first message that can be prepared', () => {
    const { domainMs, waits, fail, of, lines } = start();
    fail(3);
    waits.prepared(of('domain_one'));
    expect(domainMs('domain_one')).toBe(0);
    expect(waits.parked()).toEqual([]);
    expect(lines.at(-1)).toBe('domain released: its mail is sent again');
    fail(2);
    expect(domainMs('domain_one')).toBe(0);
  });
});

describe('an account', () => {
  it('is parked when the mail of several of its domains fails and none succeeds', () => {
    const { accountMs, waits, fail, of } = start();
    for (const domain of ['a', 'b', 'c']) fail(4, of(domain));
    expect(accountMs('acct_one')).toBe(MINUTE);
    expect(waits.parked()[0]).toMatchObject({ kind: 'account', id: 'acct_one' });
  });

  it('is not parked for one domain, with any number of failures', () => {
    const { accountMs, fail } = start();
    fail(100);
    expect(accountMs('acct_one')).toBe(0);
  });
});

it('lists at most 100 domains and accounts', () => {
  const { waits, fail, of } = start();
  for (let n = 0; n < 150; n++) fail(3, of(`domain_${n}`, `acct_${n}`));
  expect(waits.parked()).toHaveLength(100);
  expect(waits.count('domain_parked')).toBe(150);
});

describe('more rows than are kept', () => {
  const many = Array.from({ length: 10_001 }, (_, n) => n);

  it('are refused for keys: those that are visited in turn keep their waits', () => {
    const { waits } = start();
    for (const n of many) waits.begin('key_unreadable', `key ${n}`, null);
    expect(waits.msOf('key_unreadable', 'key 0')).toBeGreaterThan(0);
    expect(waits.msOf('key_unreadable', 'key 10000')).toBe(0);
  });

  it('replace the oldest message that failed', () => {
    const { waits } = start();
    for (const n of many) waits.begin('message_failed', n, { queueKey: 'key' });
    expect(waits.msOf('message_failed', 0)).toBe(0);
    expect(waits.msOf('message_failed', 10_000)).toBeGreaterThan(0);
  });
});

it('names the longer wait of a message whose domain and account are parked', () => {
  const { waits, of, fail, clock } = start();
  for (const id of ['domain_one', 'domain_two', 'domain_three']) fail(4, of(id));
  // The next wait of the account is longer than the first one of a domain.
  clock.advance(waits.msOf('account_parked', 'acct_one'));
  fail(3, of('domain_four'));
  const ms = waits.msOf('account_parked', 'acct_one');
  expect(waits.msOf('domain_parked', 'domain_four')).toBeLessThan(ms);
  expect(waits.parkedOf(of('domain_four'))).toEqual({ kind: 'domain', ms });
});
