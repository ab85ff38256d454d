import { X509Certificate } from 'node:crypto';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type IssuedCertificate, RateLimitedError } from '../../src/certificates/authority.ts';
import {
  createKeeper,
  type KeeperOptions,
  MAX_NEW_NAMES_OF_ACCOUNT,
  MAX_NEW_NAMES_PER_HOUR,
  MAX_ORDERS_PER_HOUR,
  RESERVED_ORDERS,
  renewalTime,
  retryDelay,
} from '../../src/certificates/keeper.ts';
import { DAY, HOUR, MINUTE } from '../../src/core/clock.ts';
import { createLog } from '../../src/core/log.ts';
import { systemRandom } from '../../src/core/random.ts';
import { createSeal } from '../../src/core/seal.ts';
import { createAuthority } from '../support/certificates.ts';
import { heldClock, startStore } from '../support/store.ts';

const OWN = 'track.mail.example';
const CUSTOM = 't.kunde.example';
const OURS = [OWN, CUSTOM];

/** A keeper with a real database, and an authority that answers as the test determines. */
function start(options: Partial<KeeperOptions> = {}) {
  const clock = heldClock(Date.now());
  const store = startStore(clock);
  const authority = createAuthority();
  const orders: string[] = [];
  const lines: { msg: string; [field: string]: unknown }[] = [];
  let answer = async (host: string): Promise<IssuedCertificate> => issue(host);

  const issue = (host: string, days = 90): IssuedCertificate => {
    const { key, cert } = authority.issue([host], new Date(clock.now() + days * DAY));
    return { key, chain: cert };
  };
  const seal = createSeal(Buffer.alloc(32, 7), systemRandom);
  /** Another keeper over the same database, as after a restart. */
  const keeper = () => {
    let cancel: (error: Error) => void = () => {};
    const canceled = new Promise<never>((_, reject) => {
      cancel = reject;
    });
    canceled.catch(() => {});
    const log = createLog(
      { level: 'info', hashAddresses: false },
      { write: (line: string) => void lines.push(JSON.parse(line)) },
    );
    const created = createKeeper(
      { ...store, clock, seal, log },
      {
        authority: {
          obtain: (host) => {
            orders.push(host);
            return Promise.race([answer(host), canceled]);
          },
          close: () => cancel(new Error('canceled')),
        },
        ownHost: OWN,
        isOurs: (host) => OURS.includes(host) || /\.many\d*\.example$/.test(host),
        ownerOf: (host) => (host === OWN ? null : host),
        leadsHere: async () => true,
        ...options,
      },
    );
    onTestFinished(() => created.stop());
    return created;
  };
  return {
    ...store,
    clock,
    orders,
    lines,
    issue,
    keeper,
    certificates: keeper(),
    row: (host: string) => store.tables.certificates.get(host),
    /** Sets the authority's next answers. */
    answer: (next: typeof answer) => {
      answer = next;
    },
  };
}

const rejected = async (): Promise<IssuedCertificate> => {
  throw new Error('not today');
};

describe('a certificate', () => {
  it('is obtained for the first client that names the host, and used afterwards', async () => {
    const { certificates, orders, keeper } = start();
    const context = await certificates.contextFor(CUSTOM);
    expect(context).not.toBeNull();
    expect(await certificates.contextFor(CUSTOM.toUpperCase())).toBe(context);
    expect(await keeper().contextFor(CUSTOM)).not.toBeNull();
    expect(orders).toEqual([CUSTOM]);
  });

  it('is ordered once for clients at the same time', async () => {
    const { certificates, orders } = start();
    const contexts = await Promise.all(Array.from({ length: 20 }, () => certificates.contextFor(CUSTOM)));
    expect(new Set(contexts).size).toBe(1);
    expect(orders).toEqual([CUSTOM]);
  });

  it('is obtained for the own host without a client', async () => {
    const { certificates, orders } = start();
    await certificates.runDue();
    await certificates.runDue();
    expect(orders).toEqual([OWN]);
  });

  it('is not ordered without a host of the platform', async () => {
    const { certificates, orders } = start({ ownHost: null });
    await certificates.runDue();
    expect(orders).toEqual([]);
  });

  it.each([
    ['is not ours', 'shop.other.example'],
    ['is below one of ours', `x.${CUSTOM}`],
    ['is empty', ''],
  ])('is not ordered when the name %s', async (_, host) => {
    const { certificates, orders, row } = start();
    expect(await certificates.contextFor(host)).toBeNull();
    expect(orders).toEqual([]);
    expect(row(host)).toBeNull();
  });

  it('is not ordered while the name does not lead here', async () => {
    let leads = false;
    const { certificates, orders, row, lines } = start({ leadsHere: async () => leads });
    for (let times = 0; times < 3; times++) expect(await certificates.contextFor(CUSTOM)).toBeNull();
    expect([orders, row(CUSTOM)]).toEqual([[], null]);
    // Logged once, because anyone can request it.
    expect(lines).toHaveLength(1);
    leads = true;
    expect(await certificates.contextFor(CUSTOM)).not.toBeNull();
  });

  it('is obtained while the name servers of many other names never answer', async () => {
    let finish: (leads: boolean) => void = () => {};
    const never = new Promise<boolean>((resolve) => {
      finish = resolve;
    });
    const leadsHere = async (host: string) => (host.endsWith('.many0.example') ? never : true);
    const { certificates, orders, clock } = start({ leadsHere });
    await certificates.contextFor(CUSTOM);
    clock.advance(61 * DAY);
    for (let n = 0; n < 20; n++) void certificates.contextFor(`t${n}.many0.example`);
    expect(await certificates.contextFor('t.many1.example')).not.toBeNull();
    await certificates.runDue();
    expect(orders.toSorted()).toEqual([CUSTOM, CUSTOM, 't.many1.example', OWN].toSorted());
    finish(false);
  });

  it('is ordered for the own host wherever its DNS leads', async () => {
    const { certificates } = start({ leadsHere: async () => false });
    expect(await certificates.contextFor(OWN)).not.toBeNull();
  });

  it('is rejected for another name, for another key, or after its expiry', async () => {
    const { certificates, answer, issue, row, clock } = start();
    for (const invalid of [
      async () => issue('other.example'),
      async (host: string) => ({ ...issue(host), key: issue(host).key }),
      async (host: string) => issue(host, -1),
      async () => ({ key: 'no key', chain: 'no certificate' }),
    ]) {
      answer(invalid);
      expect(await certificates.contextFor(CUSTOM)).toBeNull();
      expect(row(CUSTOM)).toMatchObject({ chain: null, private_key: null });
      clock.advance(DAY);
    }
  });

  it('is sealed, bound to its host', async () => {
    const { certificates, row } = start();
    await certificates.contextFor(CUSTOM);
    const stored = row(CUSTOM);
    expect(stored?.private_key?.includes('PRIVATE KEY')).toBe(false);
    const seal = createSeal(Buffer.alloc(32, 7), systemRandom);
    const sealed = stored?.private_key ?? Buffer.alloc(0);
    expect(seal.open(sealed, `certificate:${CUSTOM}`).toString()).toContain('PRIVATE KEY');
    expect(() => seal.open(sealed, `certificate:${OWN}`)).toThrow();
  });
});

describe('a renewal', () => {
  it('happens 30 days before the expiry and replaces the certificate', async () => {
    const { certificates, orders, clock } = start();
    const first = await certificates.contextFor(CUSTOM);
    await certificates.runDue();
    clock.advance(59 * DAY);
    await certificates.runDue();
    expect(orders.filter((host) => host === CUSTOM)).toHaveLength(1);
    expect(await certificates.contextFor(CUSTOM)).toBe(first);
    clock.advance(2 * DAY);
    await certificates.runDue();
    expect(orders.filter((host) => host === CUSTOM)).toHaveLength(2);
    expect(await certificates.contextFor(CUSTOM)).not.toBe(first);
  });

  it('that fails leaves the old certificate in use until its expiry', async () => {
    const { certificates, answer, clock, row, lines } = start({ ownHost: null });
    const old = await certificates.contextFor(CUSTOM);
    clock.advance(61 * DAY);
    answer(rejected);
    await certificates.runDue();
    expect(await certificates.contextFor(CUSTOM)).toBe(old);
    expect(row(CUSTOM)).toMatchObject({ failures: 1, last_error: 'not today' });
    expect(lines.at(-1)).toMatchObject({
      msg: 'certificate order failed',
      reason: 'not today',
      host: CUSTOM,
      failures: 1,
      nextTry: new Date(clock.now() + 10 * MINUTE).toISOString(),
      inUseUntil: expect.stringMatching(/Z$/),
    });
    clock.advance(30 * DAY);
    expect(await certificates.contextFor(CUSTOM)).toBeNull();
  });

  it('deletes the certificate of a name that is no longer ours', async () => {
    const ours = new Set([CUSTOM]);
    const { certificates, orders, clock, row } = start({ ownHost: null, isOurs: (host) => ours.has(host) });
    await certificates.contextFor(CUSTOM);
    ours.clear();
    clock.advance(61 * DAY);
    await certificates.runDue();
    expect(orders).toEqual([CUSTOM]);
    expect(row(CUSTOM)).toBeNull();
    expect(await certificates.contextFor(CUSTOM)).toBeNull();
  });
});

describe('orders', () => {
  it('of new names do not delay renewals and the own host', async () => {
    const { certificates, orders, answer, issue, clock, row } = start();
    await certificates.contextFor(CUSTOM);
    clock.advance(61 * DAY);
    answer((host) => (host.includes('many') ? new Promise(() => {}) : Promise.resolve(issue(host))));
    for (let n = 0; n < 10; n++) void certificates.contextFor(`t.many${n}.example`);
    await expect.poll(() => orders.filter((host) => host.includes('many'))).toHaveLength(2);
    await certificates.runDue();
    expect(row(OWN)?.chain).not.toBeNull();
    expect(row(CUSTOM)?.not_after).toBeGreaterThan(clock.now() + 80 * DAY);
    expect(orders.filter((host) => host.includes('many'))).toHaveLength(2);
  });

  it('of one domain do not delay those of another', async () => {
    const { certificates, orders, answer, issue } = start();
    answer((host) => (host.includes('many') ? new Promise(() => {}) : Promise.resolve(issue(host))));
    for (let n = 0; n < 5; n++) void certificates.contextFor(`t${n}.many.example`);
    await expect.poll(() => orders).toEqual(['t0.many.example']);
    expect(await certificates.contextFor(CUSTOM)).not.toBeNull();
  });

  it('for renewals of names that no longer lead here do not delay other renewals', async () => {
    const names = Array.from({ length: 60 }, (_, n) => `t.many${n}.example`);
    const gone = new Set<string>();
    const { certificates, orders, clock, row, writer, issue, tables } = start({
      ownHost: null,
      leadsHere: async (host) => !gone.has(host),
    });
    await certificates.contextFor(CUSTOM);
    const existing = row(CUSTOM);
    if (existing === null) throw new Error('there is no certificate');
    // All of them are due before the custom one.
    await writer.run(({ certificates }) => {
      for (const host of names) certificates.put({ ...existing, host, chain: issue(host).chain, due_at: 1 });
    });
    for (const host of names) gone.add(host);
    clock.advance(61 * DAY);
    await certificates.runDue();
    expect(orders).toEqual([CUSTOM]);
    await certificates.runDue();
    expect(orders).toEqual([CUSTOM, CUSTOM]);
    expect(tables.certificates.get('t.many0.example')).toMatchObject({
      due_at: clock.now() + 10 * MINUTE,
      failures: 0,
      tried_at: existing.tried_at,
    });
  });
});

describe('an authority that rejects orders', () => {
  it('receives retries at growing intervals, also after a restart', async () => {
    const { certificates, orders, answer, clock, keeper } = start();
    answer(rejected);
    const tries: number[] = [];
    const from = clock.now();
    for (let minutes = 0; minutes <= 5 * 60; minutes += 5) {
      const before = orders.length;
      await (minutes % 2 === 0 ? certificates : keeper()).contextFor(CUSTOM);
      if (orders.length > before) tries.push((clock.now() - from) / MINUTE);
      clock.advance(5 * MINUTE);
    }
    // Ten minutes, an hour, two hours; the four hours are not over.
    expect(tries).toEqual([0, 10, 70, 190]);
  });

  it('receives no second order when the process restarts during the first', async () => {
    const { certificates, orders, answer, keeper } = start();
    answer(() => new Promise(() => {}));
    void certificates.contextFor(CUSTOM);
    await expect.poll(() => orders).toEqual([CUSTOM]);
    expect(await keeper().contextFor(CUSTOM)).toBeNull();
    expect(orders).toEqual([CUSTOM]);
  });

  it('receives no orders before its Retry-After has passed', async () => {
    const { certificates, orders, answer, issue, clock, keeper } = start();
    answer(async () => {
      throw new RateLimitedError(3 * HOUR, 'all');
    });
    await certificates.contextFor(CUSTOM);
    answer(async (host) => issue(host));
    clock.advance(3 * HOUR - MINUTE);
    expect(await certificates.contextFor(OWN)).toBeNull();
    expect(await keeper().contextFor(CUSTOM)).toBeNull();
    expect(orders).toEqual([CUSTOM]);
    clock.advance(MINUTE);
    expect(await certificates.contextFor(OWN)).not.toBeNull();
    expect(await certificates.contextFor(CUSTOM)).not.toBeNull();
  });

  it('receives a limited number of orders for new names of one account', async () => {
    const ownerOf = (host: string) => (host === OWN ? null : host === CUSTOM ? 'acct_two' : 'acct_one');
    const { certificates, orders, clock, lines } = start({ ownerOf });
    for (let n = 0; n <= MAX_NEW_NAMES_OF_ACCOUNT; n++) await certificates.contextFor(`t.many${n}.example`);
    expect(orders).toHaveLength(MAX_NEW_NAMES_OF_ACCOUNT);
    expect(lines.at(-1)?.msg).toBe('certificate order delayed: hourly limit of the account reached');
    expect(await certificates.contextFor(CUSTOM)).not.toBeNull();
    clock.advance(HOUR);
    await certificates.contextFor(`t.many${MAX_NEW_NAMES_OF_ACCOUNT}.example`);
    expect(orders).toHaveLength(MAX_NEW_NAMES_OF_ACCOUNT + 2);
  });

  it('receives orders for other names after a rate limit of one name', async () => {
    const { certificates, orders, answer, issue, clock } = start();
    answer(async () => {
      throw new RateLimitedError(3 * HOUR, 'name');
    });
    await certificates.contextFor(CUSTOM);
    answer(async (host) => issue(host));
    expect(await certificates.contextFor(OWN)).not.toBeNull();
    clock.advance(3 * HOUR - MINUTE);
    expect(await certificates.contextFor(CUSTOM)).toBeNull();
    clock.advance(MINUTE);
    expect(await certificates.contextFor(CUSTOM)).not.toBeNull();
    expect(orders).toEqual([CUSTOM, OWN, CUSTOM]);
  });

  it('receives orders again after seven days, however long its Retry-After is', async () => {
    const { certificates, orders, answer, issue, clock, lines } = start();
    answer(async () => {
      throw new RateLimitedError(Number.MAX_SAFE_INTEGER, 'all');
    });
    await certificates.contextFor(CUSTOM);
    expect(lines.at(-1)).toMatchObject({ msg: 'certificate order failed' });
    answer(async (host) => issue(host));
    clock.advance(7 * DAY);
    expect(await certificates.contextFor(CUSTOM)).not.toBeNull();
    expect(orders).toEqual([CUSTOM, CUSTOM]);
  });

  it('receives no orders for an hour after a rate limit without Retry-After', async () => {
    const { certificates, orders, answer, clock } = start();
    answer(async () => {
      throw new RateLimitedError(null, 'all');
    });
    await certificates.contextFor(CUSTOM);
    clock.advance(HOUR - 1);
    await certificates.contextFor(OWN);
    expect(orders).toEqual([CUSTOM]);
    clock.advance(1);
    await certificates.contextFor(OWN);
    expect(orders).toEqual([CUSTOM, OWN]);
  });

  it('receives a limited number of orders per hour, also after a restart; the log states it once', async () => {
    const { certificates, orders, clock, keeper, lines } = start();
    const names = Array.from({ length: MAX_ORDERS_PER_HOUR + 5 }, (_, n) => `t.many${n}.example`);
    for (const name of names) await certificates.contextFor(name);
    await keeper().contextFor(CUSTOM);
    expect(orders).toEqual(names.slice(0, MAX_ORDERS_PER_HOUR - RESERVED_ORDERS));
    expect(lines.filter(({ msg }) => msg.startsWith('certificate orders delayed'))).toHaveLength(2);
    clock.advance(HOUR);
    expect(await certificates.contextFor(CUSTOM)).not.toBeNull();
  });
});

describe('many new names', () => {
  it('are limited per domain and hour; each spelling of a name counts once', async () => {
    const { certificates, orders, clock } = start();
    const names = Array.from({ length: MAX_NEW_NAMES_PER_HOUR + 3 }, (_, n) => `t${n}.many.example`);
    for (const name of names)
      for (const spelling of [name, `${name}.`, name.toUpperCase()]) await certificates.contextFor(spelling);
    expect(orders).toEqual(names.slice(0, MAX_NEW_NAMES_PER_HOUR));
    expect(await certificates.contextFor(CUSTOM)).not.toBeNull();
    clock.advance(HOUR);
    expect(await certificates.contextFor(names.at(-1) ?? '')).not.toBeNull();
  });

  it('leave orders for renewals and for the own host', async () => {
    const { certificates, orders, clock, row } = start();
    await certificates.contextFor(CUSTOM);
    clock.advance(61 * DAY);
    for (let n = 0; n < MAX_ORDERS_PER_HOUR; n++) await certificates.contextFor(`t.many${n}.example`);
    const before = orders.length;
    const until = row(CUSTOM)?.not_after ?? 0;
    await certificates.runDue();
    expect(orders.slice(before).toSorted()).toEqual([CUSTOM, OWN]);
    expect(row(CUSTOM)?.not_after).toBeGreaterThan(until);
  });

  it.each(['', '.', 'localhost', '127.0.0.1', 'a..example', 'x'.repeat(300)])(
    'are ignored when invalid: %j',
    async (name) => {
      const { certificates, orders } = start({ isOurs: () => true });
      expect(await certificates.contextFor(name)).toBeNull();
      expect(orders).toEqual([]);
    },
  );
});

it('reports the result of each order, and logs the issuer', async () => {
  const outcomes: string[] = [];
  const observe = (outcome: string) => void outcomes.push(outcome);
  const { certificates, answer, issue, clock, lines, row } = start({ observe });
  answer(rejected);
  await certificates.contextFor(CUSTOM);
  answer(async (host) => issue(host));
  clock.advance(10 * MINUTE);
  await certificates.contextFor(CUSTOM);
  expect(outcomes).toEqual(['failed', 'obtained']);
  const { validTo } = new X509Certificate(row(CUSTOM)?.chain ?? '');
  expect(lines.at(-1)).toMatchObject({
    msg: 'certificate obtained',
    host: CUSTOM,
    issuer: 'CN=Test authority',
    notAfter: new Date(validTo).toISOString(),
  });
});

it('abandons an order at a stop without counting a failure, and orders again after a restart', async () => {
  const { certificates, keeper, answer, orders, row, issue } = start();
  answer(() => new Promise(() => {}));
  const running = certificates.runDue();
  await expect.poll(() => orders).toEqual([OWN]);
  await certificates.stop();
  await running;
  expect(row(OWN)).toMatchObject({ failures: 0, chain: null });
  answer(async (host) => issue(host));
  await keeper().runDue();
  expect(orders).toEqual([OWN, OWN]);
  expect(row(OWN)).toMatchObject({ failures: 0, chain: expect.any(String) });
});

it('orders nothing after stop', async () => {
  const { certificates, orders } = start();
  certificates.start();
  await certificates.stop();
  const before = orders.length;
  await certificates.runDue();
  await certificates.contextFor(CUSTOM);
  expect(orders).toHaveLength(before);
});

describe('retryDelay', () => {
  it.each([
    [1, 10 * MINUTE],
    [2, HOUR],
    [3, 2 * HOUR],
    [6, 16 * HOUR],
    [7, DAY],
    [1000, DAY],
  ])('after %i failures', (failures, wait) => {
    expect(retryDelay(failures)).toBe(wait);
  });

  it('allows fewer than five orders per hour', () => {
    for (let failures = 1; failures < 50; failures++) {
      const fourWaits = [0, 1, 2, 3].reduce((sum, more) => sum + retryDelay(failures + more), 0);
      expect(fourWaits).toBeGreaterThan(HOUR);
    }
  });
});

describe('renewalTime', () => {
  it.each([
    ['90 days', 90, 60],
    ['a year', 365, 335],
    ['45 days', 45, 30],
    ['6 days', 6, 4],
  ])('with a lifetime of %s (%i days): day %i', (_, lifetime, day) => {
    const notBefore = Date.UTC(2026, 0, 1);
    const renewal = renewalTime({ notBefore, notAfter: notBefore + lifetime * DAY });
    expect((renewal - notBefore) / DAY).toBe(day);
  });
});
