import { describe, expect, it } from 'vitest';
import { configSchema } from '../../src/config/schema.ts';
import { DAY, MINUTE } from '../../src/core/clock.ts';
import { createLog } from '../../src/core/log.ts';
import { isRefusal } from '../../src/core/refusal.ts';
import { createSendingMonitor, endedByItself, listLimits } from '../../src/reputation/monitor.ts';
import { createSendingRates } from '../../src/reputation/sending-rates.ts';
import { sendingObstacle } from '../../src/sending/checks.ts';
import type { ReputationCounter } from '../../src/store/reputation/reputation-counts.ts';
import { granted } from '../support/refusal.ts';
import { enqueue, insertAccount, insertDomain, startStore } from '../support/store.ts';

const BY = { by: 'key_one', reason: 'The list was cleaned' };

function start() {
  const store = startStore();
  const { tables, writer, clock, recorder } = store;
  for (const [domain_id, use_case] of [
    ['domain_mk', 'mk'],
    ['domain_second', 'mk'],
  ] as const)
    insertDomain(
      tables,
      { account_id: 'acct_one', domain_id, name: `${domain_id.slice(7)}.example`, use_case },
      clock.now(),
    );
  const config = configSchema.parse({ hostname: 'mail.example.com' });
  const log = createLog({ level: 'silent', hashAddresses: true });
  const rates = createSendingRates({ tables, monotonic: clock });
  const createMonitor = () =>
    createSendingMonitor({ ...store, monotonic: clock, config, log }, { recorder, onChange: rates.refresh });
  const monitor = createMonitor();
  /** Counts messages of a domain, and judges the account. */
  const count = async (
    domainId: string,
    numbers: Partial<Record<ReputationCounter, number>>,
    provider = 'other',
  ) => {
    const day = clock.now() - (clock.now() % DAY);
    await writer.run((tx) => {
      for (const [counter, number] of Object.entries(numbers))
        for (let n = 0; n < number; n++)
          tx.reputationCounts.add(
            { day, accountId: 'acct_one', domainId, source: '', provider },
            // Sound: the keys of `numbers` are counters.
            counter as ReputationCounter,
          );
    });
    await judge(monitor);
  };
  const judge = async (one: typeof monitor) => {
    one.counted([
      {
        hour: 0,
        accountId: 'acct_one',
        domainId: '',
        provider: '',
        stream: 'mk',
        outcome: 'bounced',
        outcomeClass: '',
        messages: 1,
      },
    ]);
    await one.run();
  };
  return {
    ...store,
    config,
    rates,
    monitor,
    createMonitor,
    judge,
    count,
    limits: () =>
      listLimits(tables, 'acct_one').map(({ level, useCase, domain, provider, reason }) =>
        [level, useCase, domain ?? '-', provider ?? '-', reason].join(' '),
      ),
    first: () => listLimits(tables, null)[0] ?? expect.unreachable('there is no limit'),
    events: () =>
      tables.events
        .feed({ accountId: 'acct_one', afterSeq: 0, limit: 100 })
        .rows.map(({ kind, data }) => ({ kind, ...JSON.parse(data) })),
    /** Whether a message of a domain would be held now. */
    isHeld: (domain_id: string, priority: 0 | 1) =>
      sendingObstacle(tables, enqueue(tables, clock.now(), { domain_id, priority, essential: 1 }))?.kind ===
      'hold_until_expiry',
  };
}

describe('a stream', () => {
  it('with many dead addresses is stopped until a person resumes it', async () => {
    const { count, limits, first, events, isHeld, monitor, clock, judge } = start();
    await count('domain_mk', { delivered: 930, hardBounced: 60 });
    // A campaign stops earlier: fewer messages decide nothing here.
    expect(limits()).toEqual([]);
    await count('domain_mk', { delivered: 60, hardBounced: 10 });
    expect(limits()).toEqual(['pause mk mk.example - hard_bounces']);
    expect(first()).toMatchObject({
      figures: { messages: 1060, events: 70, limit: 5 },
      text: expect.stringMatching(
        /^Marketing mail of mk\.example is stopped: 6\.6\d+ % of 1060 messages bounced/,
      ),
    });
    expect([isHeld('domain_mk', 1), isHeld('domain_second', 1), isHeld('domain_one', 0)]).toEqual([
      true,
      false,
      false,
    ]);

    const { limitId } = first();
    for (const reason of [' ', 'x'.repeat(201), 'two\nlines'])
      expect(await monitor.resume('acct_one', limitId, { by: 'key_one', reason })).toMatchObject({
        code: 'VALIDATION_ERROR',
      });
    expect(isRefusal(await monitor.resume('acct_two', limitId, BY))).toBe(true);
    granted(await monitor.resume('acct_one', limitId, BY));
    expect([limits(), isHeld('domain_mk', 1)]).toEqual([[], false]);
    expect(await monitor.resume('acct_one', limitId, BY)).toMatchObject({ code: 'NOT_FOUND' });

    // What was seen does not count; what follows does, after the same number of messages.
    await judge(monitor);
    await count('domain_mk', { delivered: 900, hardBounced: 70 });
    expect(limits()).toEqual([]);
    await count('domain_mk', { delivered: 100 });
    expect(limits()).toEqual(['pause mk mk.example - hard_bounces']);
    expect(first()).toMatchObject({ limitId, figures: { messages: 1070, events: 70 } });
    expect(events()).toMatchObject([
      {
        kind: 'sending_limited',
        level: 'pause',
        useCase: 'mk',
        domain: 'mk.example',
        reason: 'hard_bounces',
      },
      { kind: 'sending_resumed', limitId, by: 'key_one', reason: BY.reason, domain: 'mk.example' },
      { kind: 'sending_limited', limitId },
    ]);
    // It does not end by itself.
    clock.advance(30 * DAY);
    await monitor.run();
    expect(limits()).toHaveLength(1);
  });

  it('of several domains together is that of the account', async () => {
    const { count, limits, isHeld } = start();
    await count('domain_mk', { delivered: 700, complained: 4 });
    await count('domain_second', { delivered: 700, complained: 6 });
    expect(limits()).toEqual(['pause mk - - complaints']);
    expect([isHeld('domain_mk', 1), isHeld('domain_second', 1), isHeld('domain_one', 0)]).toEqual([
      true,
      true,
      false,
    ]);
  });

  it('of transactional mail is slowed, and stopped only if the operator chooses so', async () => {
    const { count, limits, isHeld, config, rates, clock } = start();
    await count('domain_one', { delivered: 1000, hardBounced: 100 });
    expect(limits()).toEqual(['slow tx example.com - hard_bounces']);
    expect(isHeld('domain_one', 0)).toBe(false);
    const mail = {
      account_id: 'acct_one',
      domain_id: 'domain_one',
      use_case: 'tx',
      destination: 'example.net',
    } as const;
    expect([rates.perMinuteOf(mail), rates.mayLimit(mail), rates.waitMs(mail)]).toEqual([60, true, 0]);
    rates.take(mail);
    expect(rates.waitMs(mail)).toBeGreaterThan(0);
    clock.advance(MINUTE / 60);
    expect(rates.waitMs(mail)).toBe(0);
    expect(rates.mayLimit({ ...mail, use_case: 'mk' })).toBe(false);

    config.reputation.transactional = 'pause';
    await count('domain_one', { hardBounced: 1 });
    expect(limits()).toEqual(['pause tx example.com - hard_bounces']);
    expect(isHeld('domain_one', 0)).toBe(true);
  });

  it('that a provider blocks is slowed at this provider, until it blocks little of it', async () => {
    const { count, limits, rates, events, tables, clock } = start();
    await count('domain_mk', { delivered: 700, blocked: 300 }, 'Google');
    await count('domain_mk', { delivered: 100 }, 'Microsoft');
    expect(limits()).toEqual(['slow mk mk.example Google blocks']);
    const to = (destination: string) =>
      rates.perMinuteOf({ account_id: 'acct_one', domain_id: 'domain_mk', use_case: 'mk', destination });
    expect([to('gmail.com'), to('outlook.com'), to('example.net')]).toEqual([60, null, null]);
    // Still near the limit, then clearly below.
    await count('domain_mk', { delivered: 800 }, 'Google');
    expect(limits()).toHaveLength(1);
    await count('domain_mk', { delivered: 1000 }, 'Google');
    expect([limits(), to('gmail.com')]).toEqual([[], null]);
    // The row stays until owners could be notified of the end, and its counts are over.
    const rows = () => tables.sendingLimits.ofAccount('acct_one').map(endedByItself);
    expect(rows()).toEqual([true]);
    clock.advance(3 * DAY);
    await count('domain_mk', { delivered: 1 }, 'Google');
    expect(rows()).toEqual([]);
    expect(events().map(({ kind }) => kind)).toEqual(['sending_limited', 'sending_resumed']);
  });

  it('is only reported below the level of a stop', async () => {
    const { count, limits, events } = start();
    await count('domain_mk', { delivered: 2000, hardBounced: 95 });
    await count('domain_mk', { unsubscribed: 90 });
    expect(limits()).toEqual(['notice mk mk.example - hard_bounces']);
    expect(events()).toEqual([]);
  });

  it('stays limited over a restart, and is released when limits are switched off', async () => {
    const { count, limits, createMonitor, config, clock, isHeld } = start();
    await count('domain_mk', { delivered: 1000, hardBounced: 100 });
    const next = createMonitor();
    await next.run();
    expect(limits()).toEqual(['pause mk mk.example - hard_bounces']);
    config.reputation.limits = 'report';
    clock.advance(MINUTE);
    await next.run();
    expect([limits(), isHeld('domain_mk', 1)]).toEqual([['notice mk mk.example - hard_bounces'], false]);
    config.reputation.limits = 'off';
    clock.advance(MINUTE);
    await next.run();
    expect(limits()).toEqual([]);
  });

  it('is released whatever number of newer limits other accounts have', async () => {
    const { count, limits, config, clock, monitor, tables, first } = start();
    await count('domain_mk', { delivered: 1000, hardBounced: 100 });
    insertAccount(tables, 'acct_two', clock.now());
    const [row = expect.unreachable()] = tables.sendingLimits.ofAccount('acct_one');
    for (let n = 0; n < 500; n++)
      tables.sendingLimits.put({
        ...row,
        limit_id: `limit_${n}`,
        account_id: 'acct_two',
        domain_id: '',
        provider: `Provider ${n}`,
        since: clock.now() + 1,
      });
    expect(first().accountId).toBe('acct_two');
    config.reputation.limits = 'off';
    clock.advance(MINUTE);
    await monitor.run();
    expect(limits()).toEqual([]);
  });

  it('is forgotten with its domain', async () => {
    const { count, limits, writer, tables } = start();
    await count('domain_mk', { delivered: 1000, hardBounced: 100 });
    await writer.run((tx) => tx.domains.remove('domain_mk'));
    expect([limits(), tables.sendingLimits.ofAccount('acct_one')]).toEqual([[], []]);
  });
});
