import { describe, expect, it } from 'vitest';
import { HOUR, iso, MINUTE, SECOND } from '../../src/core/clock.ts';
import { createLog } from '../../src/core/log.ts';
import { createControlIndex } from '../../src/delivery/control.ts';
import type { Shares } from '../../src/delivery/scheduling/shares.ts';
import type { EgressObstacle } from '../../src/delivery/source-address.ts';
import {
  createInspection,
  createWaits,
  type MessageFacts,
  reasonsOf,
  type SiteFacts,
} from '../../src/delivery/waits.ts';
import { queueKeyText } from '../../src/store/messages/queue.ts';
import type { ListedInQueue } from '../../src/store/messages/queue-list.ts';
import { heldClock } from '../support/store.ts';
import { readyMessage } from './messages.ts';
import { createTestScheduling, KEY } from './scheduling/setup.ts';

function start() {
  const clock = heldClock();
  const lines: string[] = [];
  const log = createLog(
    { level: 'info', hashAddresses: true },
    { write: (line) => void lines.push(String(JSON.parse(line).msg)) },
  );
  const waits = createWaits({ clock, monotonic: clock, log });
  const of = (domainId: string, accountId = 'acct_one') => ({
    seq: 1,
    domain_id: domainId,
    account_id: accountId,
  });
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

describe('the reasons of a message', () => {
  const NOW = heldClock().now();
  const FACTS: MessageFacts = {
    path: { pool: 'default', lane: 'primary', via: null },
    route: { kind: 'hosts', hosts: [], route: null, ttl: 60 },
    site: null,
    accountLimitedMs: 0,
    slowedTo: null,
    obstacle: null,
    parked: null,
    isWithoutSite: false,
    isAccountBusy: false,
    unreadable: null,
    isUnrecorded: false,
    exhausted: null,
    stopped: null,
    sessions: { used: 0, limit: 2 },
  };
  const SITE: SiteFacts = {
    site: 'mx.one.test via default',
    pool: 'default',
    suspendedMs: 0,
    limitedMs: 0,
    pause: null,
    rateWaitMs: 0,
    connections: { used: 9, allowed: 10, limit: 10 },
    forMarketing: 9,
    readAhead: { transactional: 0, marketing: 0 },
    waitingKeys: 0,
  };
  const quota = (until: number): EgressObstacle => ({
    kind: 'warmup',
    until,
    text: "waits for tomorrow's warm-up quota",
  });
  const of = (facts: Partial<MessageFacts>, columns: Partial<ListedInQueue> = {}) => {
    const queued = { ...readyMessage(1), ready: 1, paused: 0, hold_reason: null, ...columns } as const;
    return reasonsOf(queued, createControlIndex([]), { ...FACTS, ...facts }, NOW);
  };
  const codesOf = (...args: Parameters<typeof of>) => of(...args).map(({ code }) => code);
  const later = (ms: number) => ({ ready: 0, due_at: NOW + ms }) as const;

  it('name the possible repetition of an attempt that no daemon continues', () => {
    const queued = { ...readyMessage(1), ready: 1, paused: 0, hold_reason: null, lease: 1 } as const;
    const [reason] = reasonsOf(queued, createControlIndex([]), null, NOW);
    expect(reason).toMatchObject({ code: 'sending', remedy: 'Start the daemon, unless it runs.' });
    expect(reason?.text).toContain('may arrive twice');
  });

  it('name the busy site to marketing mail for which it keeps no connection', () => {
    expect(codesOf({ site: SITE }, { priority: 0 })).toEqual(['in_line']);
    expect(of({ site: SITE }, { priority: 1 })).toMatchObject([
      {
        code: 'site_busy',
        text: 'All 9 connections that the site mx.one.test via default may have for marketing mail are in use. It keeps 1 for transactional mail.',
      },
    ]);
    const full = { ...SITE, connections: { used: 10, allowed: 10, limit: 10 } };
    expect(codesOf({ site: full }, { priority: 0 })).toEqual(['site_busy']);
  });

  it('name the source address that a message was postponed for, and not its due time', () => {
    expect(codesOf({ obstacle: quota(NOW + HOUR) }, later(HOUR))).toEqual(['warmup']);
    // A deferred message waits for it, too.
    expect(
      codesOf({ obstacle: quota(NOW + HOUR) }, { ...later(MINUTE), attempts: 1, status: 'deferred' }),
    ).toEqual(['warmup']);
    // It can be sent before the message is due.
    expect(codesOf({ obstacle: quota(NOW + MINUTE) }, later(HOUR))).toEqual(['deferred']);
    expect(codesOf({}, { ...later(HOUR), attempts: 1, status: 'deferred' })).toEqual(['deferred']);
  });

  it('begin with the parked domain, and have the due time where that is later', () => {
    const parked = { kind: 'domain', ms: MINUTE } as const;
    expect(codesOf({ parked }, later(MINUTE))).toEqual(['parked']);
    expect(codesOf({ parked }, later(HOUR))).toEqual(['parked', 'deferred']);
    expect(codesOf({ parked })).toEqual(['parked']);
  });

  it('call only mail scheduled that its sender has scheduled', () => {
    const scheduled = { ...later(HOUR), scheduled_at: NOW + HOUR };
    expect(codesOf({}, scheduled)).toEqual(['scheduled']);
    const parked = { kind: 'message', ms: HOUR } as const;
    expect(of({ parked }, later(HOUR))).toMatchObject([
      { code: 'parked', text: 'It cannot be prepared.', until: iso(NOW + HOUR) },
    ]);
    // After a restart nothing else is known.
    expect(of({}, later(HOUR))).toMatchObject([{ code: 'deferred', remedy: null }]);
    expect(of({}, { ...scheduled, due_at: NOW + HOUR + 1 })).toMatchObject([{ code: 'deferred' }]);
  });

  it('do not mention the route of simulated mail', () => {
    expect(codesOf({ route: null })).toEqual(['route_unknown']);
    expect(codesOf({ route: null }, { simulated: 1 })).toEqual(['in_line']);
  });
});

describe('the facts of a message', () => {
  /** Of a message that was read once, so that its site is in memory. */
  function startInspection(shares: Pick<Shares, 'exhausted' | 'sessions'>) {
    const env = createTestScheduling({ connections: 1 });
    const controls = { ...createControlIndex([]), list: () => [] };
    const { clock, tables, waits, sites, targets } = env;
    const inspection = createInspection(
      { clock, tables },
      {
        waits,
        rates: { perMinuteOf: () => null },
        sites,
        targets,
        controls,
        shares,
        connections: 2,
        shaping: { limits: () => [], slow: () => [] },
        egress: { problems: () => [], blocks: () => [] },
        recording: { isUnrecorded: () => false, unrecorded: () => null },
        stalled: () => null,
      },
    );
    const [{ seq } = expect.fail('no message')] = env.put(['a@one.test']);
    const facts = () => inspection.message(tables.queue.listed(seq) ?? expect.fail('no message'));
    return { ...env, facts, seq };
  }

  it('have what could not be read', () => {
    const { facts, waits, seq } = startInspection({ exhausted: () => null, sessions: () => 0 });
    expect(facts().unreadable).toBeNull();
    waits.begin('key_unreadable', queueKeyText(KEY), null);
    expect(facts().unreadable?.what).toBe('key');
    waits.begin('message_failed', seq, { queueKey: queueKeyText(KEY) });
    expect(facts().unreadable?.what).toBe('message');
  });

  it('have whether another site can be created for it', () => {
    const { facts, sites, announce } = startInspection({ exhausted: () => null, sessions: () => 0 });
    expect(facts().isWithoutSite).toBe(false);
    sites.mayCreate = () => false;
    expect(facts().isWithoutSite).toBe(true);
    sites.mayCreate = () => true;
    announce();
    sites.mayCreate = () => false;
    expect(facts().isWithoutSite).toBe(false);
  });

  it('have whether what the site takes of its account is used up', () => {
    const { facts, announce, started, onlySite, clock, put } = startInspection({
      exhausted: () => null,
      sessions: () => 0,
    });
    announce();
    const [first] = started;
    if (first !== undefined) onlySite().senderThrottled(first.reservation, SECOND);
    put(['b@one.test']);
    clock.advance(SECOND);
    expect(facts()).toMatchObject({ accountLimitedMs: 0, isAccountBusy: true });
  });

  it('have the budget that is used up, for the size of its content', () => {
    const sizes: number[] = [];
    const { facts, announce } = startInspection({
      exhausted: (_, { content_bytes }) => {
        sizes.push(content_bytes);
        return 'bytes';
      },
      sessions: () => 0,
    });
    announce();
    expect(facts().exhausted).toBe('bytes');
    expect(sizes).toHaveLength(1);
  });
});
