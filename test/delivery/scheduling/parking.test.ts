import { describe, expect, it } from 'vitest';
import { MINUTE } from '../../../src/core/clock.ts';
import { createLog } from '../../../src/core/log.ts';
import { createParking } from '../../../src/delivery/scheduling/parking.ts';
import { heldClock } from '../../support/store.ts';

function start() {
  const clock = heldClock();
  const lines: string[] = [];
  const log = createLog(
    { level: 'info', hashAddresses: true },
    { write: (line) => void lines.push(String(JSON.parse(line).msg)) },
  );
  const parking = createParking({ clock, monotonic: clock, log });
  const of = (domainId: string, accountId = 'acct_one') => ({ domainId, accountId });
  const fail = (times: number, sender = of('domain_one')) => {
    for (let n = 0; n < times; n++) parking.failed(sender, new Error('unreadable key'));
  };
  return { clock, lines, parking, of, fail };
}

describe('a domain whose mail cannot be prepared', () => {
  it('is parked at the third failure in a row, and listed with the reason', () => {
    const { parking, fail, lines, clock } = start();
    fail(2);
    expect(parking.domainWait('domain_one')).toBe(0);
    expect(parking.list()).toEqual([]);
    fail(1);
    expect(parking.domainWait('domain_one')).toBe(MINUTE);
    const since = new Date(clock.now()).toISOString();
    expect(parking.list()).toEqual([{ kind: 'domain', id: 'domain_one', since, reason: 'unreadable key' }]);
    expect(parking.count('domain')).toBe(1);
    expect(lines).toEqual(['domain parked: its mail cannot be prepared']);
    expect(parking.domainWait('domain_two')).toBe(0);
    expect(parking.accountWait('acct_one')).toBe(0);
  });

  it('is not parked when others of its messages succeed in between', () => {
    const { parking, fail, of } = start();
    for (let n = 0; n < 10; n++) {
      fail(2);
      parking.succeeded(of('domain_one'));
    }
    expect(parking.domainWait('domain_one')).toBe(0);
  });

  it('is tried again with one message, later each time; messages taken before count once', () => {
    const { parking, fail, clock } = start();
    const waits: number[] = [];
    fail(3);
    for (let n = 0; n < 7; n++) {
      waits.push(parking.domainWait('domain_one') / MINUTE);
      fail(10);
      clock.advance(parking.domainWait('domain_one'));
      expect(parking.domainWait('domain_one')).toBe(0);
      expect(parking.count('domain')).toBe(1);
      fail(1);
    }
    expect(waits).toEqual([1, 2, 4, 8, 16, 30, 30]);
  });

  it('is released by the first message that can be prepared', () => {
    const { parking, fail, of, lines } = start();
    fail(3);
    parking.succeeded(of('domain_one'));
    expect(parking.domainWait('domain_one')).toBe(0);
    expect(parking.list()).toEqual([]);
    expect(lines.at(-1)).toBe('domain released: its mail is sent again');
    fail(2);
    expect(parking.domainWait('domain_one')).toBe(0);
  });
});

describe('an account', () => {
  it('is parked when the mail of several of its domains fails and none succeeds', () => {
    const { parking, fail, of } = start();
    for (const domain of ['a', 'b', 'c']) fail(4, of(domain));
    expect(parking.accountWait('acct_one')).toBe(MINUTE);
    expect(parking.list()[0]).toMatchObject({ kind: 'account', id: 'acct_one' });
  });

  it('is not parked for one domain, with any number of failures', () => {
    const { parking, fail } = start();
    fail(100);
    expect(parking.accountWait('acct_one')).toBe(0);
  });
});

it('lists at most 100 domains and accounts', () => {
  const { parking, fail, of } = start();
  for (let n = 0; n < 150; n++) fail(3, of(`domain_${n}`, `acct_${n}`));
  expect(parking.list()).toHaveLength(100);
  expect(parking.count('domain')).toBe(150);
});
