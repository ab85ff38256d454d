import { X509Certificate } from 'node:crypto';
import { describe, expect, it, onTestFinished } from 'vitest';
import { HeldOff, type Issued } from '../../src/certificates/authority.ts';
import { createKeeper, type KeeperHouse } from '../../src/certificates/keeper.ts';
import { NEW_NAMES_AN_HOUR, ORDERS_AN_HOUR, ORDERS_KEPT } from '../../src/certificates/pace.ts';
import { DAY, HOUR, MINUTE } from '../../src/core/clock.ts';
import { createLog } from '../../src/core/log.ts';
import { systemRandom } from '../../src/core/random.ts';
import { createSeal } from '../../src/core/seal.ts';
import { createAuthority } from '../support/certificates.ts';
import { heldClock, startStore } from '../support/store.ts';

const OWN = 'track.mail.example';
const CUSTOM = 't.kunde.example';
const OURS = [OWN, CUSTOM];

/** The keeper over a real database; the authority does what it is told, and says what it was asked for. */
function start(wish: Partial<KeeperHouse> = {}) {
  const clock = heldClock(Date.now());
  const store = startStore(clock);
  const authority = createAuthority();
  const asked: string[] = [];
  const lines: { msg: string; [field: string]: unknown }[] = [];
  let answer = async (host: string): Promise<Issued> => issue(host);

  const issue = (host: string, days = 90): Issued => {
    const { key, cert } = authority.issue([host], new Date(clock.now() + days * DAY));
    return { key, chain: cert };
  };
  const seal = createSeal(Buffer.alloc(32, 7), systemRandom);
  /** Another keeper over the same database, as after a restart. */
  const keeper = () => {
    let breakOff: (error: Error) => void = () => {};
    const broken = new Promise<never>((_, reject) => {
      breakOff = reject;
    });
    broken.catch(() => {});
    const made = createKeeper({
      tables: store.tables,
      writer: store.writer,
      clock,
      seal,
      log: createLog(
        { level: 'info', hashAddresses: false },
        { write: (line: string) => void lines.push(JSON.parse(line)) },
      ),
      authority: {
        obtain: (host) => {
          asked.push(host);
          return Promise.race([answer(host), broken]);
        },
        close: () => breakOff(new Error('canceled')),
      },
      ownHost: OWN,
      isOurs: (host) => OURS.includes(host) || /\.many\d*\.example$/.test(host),
      leadsHere: async () => true,
      ...wish,
    });
    onTestFinished(() => made.stop());
    return made;
  };
  return {
    ...store,
    clock,
    asked,
    lines,
    issue,
    keeper,
    certificates: keeper(),
    row: (host: string) => store.tables.certificates.get(host),
    /** What the authority does from now on. */
    answer: (how: typeof answer) => {
      answer = how;
    },
  };
}

const refused = async (): Promise<Issued> => {
  throw new Error('no such luck');
};

describe('a certificate', () => {
  it('is obtained when its name is first asked for, and used from then on', async () => {
    const { certificates, asked, keeper } = start();
    const context = await certificates.contextFor(CUSTOM);
    expect(context).not.toBeNull();
    expect(await certificates.contextFor(CUSTOM.toUpperCase())).toBe(context);
    expect(await keeper().contextFor(CUSTOM)).not.toBeNull();
    expect(asked).toEqual([CUSTOM]);
  });

  it('is asked for once, however many ask at the same time', async () => {
    const { certificates, asked } = start();
    const contexts = await Promise.all(Array.from({ length: 20 }, () => certificates.contextFor(CUSTOM)));
    expect(new Set(contexts).size).toBe(1);
    expect(asked).toEqual([CUSTOM]);
  });

  it('is obtained for the own host before anybody asks', async () => {
    const { certificates, asked } = start();
    await certificates.tick();
    await certificates.tick();
    expect(asked).toEqual([OWN]);
  });

  it('is not asked for where the own host is no name', async () => {
    const { certificates, asked } = start({ ownHost: null });
    await certificates.tick();
    expect(asked).toEqual([]);
  });

  it.each([
    ['is not ours', 'shop.stranger.example'],
    ['is below one of ours', `x.${CUSTOM}`],
    ['is nothing', ''],
  ])('is never asked for when the name %s', async (_, host) => {
    const { certificates, asked, row } = start();
    expect(await certificates.contextFor(host)).toBeNull();
    expect(asked).toEqual([]);
    expect(row(host)).toBeNull();
  });

  it('is never asked for when the name does not lead here, and soon when it does', async () => {
    let leads = false;
    const { certificates, asked, row, lines } = start({ leadsHere: async () => leads });
    for (let times = 0; times < 3; times++) expect(await certificates.contextFor(CUSTOM)).toBeNull();
    expect([asked, row(CUSTOM)]).toEqual([[], null]);
    // Anybody can ask: it is logged once.
    expect(lines).toHaveLength(1);
    leads = true;
    expect(await certificates.contextFor(CUSTOM)).not.toBeNull();
  });

  it('is obtained while nameservers of many other names never answer', async () => {
    let giveUp: (leads: boolean) => void = () => {};
    const never = new Promise<boolean>((resolve) => {
      giveUp = resolve;
    });
    const leadsHere = async (host: string) => (host.endsWith('.many0.example') ? never : true);
    const { certificates, asked, clock } = start({ leadsHere });
    await certificates.contextFor(CUSTOM);
    clock.advance(61 * DAY);
    for (let n = 0; n < 20; n++) void certificates.contextFor(`t${n}.many0.example`);
    expect(await certificates.contextFor('t.many1.example')).not.toBeNull();
    await certificates.tick();
    expect(asked.toSorted()).toEqual([CUSTOM, CUSTOM, 't.many1.example', OWN].toSorted());
    giveUp(false);
  });

  it('is asked for at the own host wherever that seems to lead', async () => {
    const { certificates } = start({ leadsHere: async () => false });
    expect(await certificates.contextFor(OWN)).not.toBeNull();
  });

  it('is not taken when it is for another name, for another key, or over', async () => {
    const { certificates, answer, issue, row, clock } = start();
    for (const bad of [
      async () => issue('other.example'),
      async (host: string) => ({ ...issue(host), key: issue(host).key }),
      async (host: string) => issue(host, -1),
      async () => ({ key: 'no key', chain: 'no certificate' }),
    ]) {
      answer(bad);
      expect(await certificates.contextFor(CUSTOM)).toBeNull();
      expect(row(CUSTOM)).toMatchObject({ chain: null, private_key: null });
      clock.advance(DAY);
    }
  });

  it('is sealed, bound to its host', async () => {
    const { certificates, row } = start();
    await certificates.contextFor(CUSTOM);
    const kept = row(CUSTOM);
    expect(kept?.private_key?.includes('PRIVATE KEY')).toBe(false);
    const seal = createSeal(Buffer.alloc(32, 7), systemRandom);
    const sealed = kept?.private_key ?? Buffer.alloc(0);
    expect(seal.open(sealed, `certificate:${CUSTOM}`).toString()).toContain('PRIVATE KEY');
    expect(() => seal.open(sealed, `certificate:${OWN}`)).toThrow();
  });
});

describe('a renewal', () => {
  it('comes 30 days ahead, and is in use at once', async () => {
    const { certificates, asked, clock } = start();
    const first = await certificates.contextFor(CUSTOM);
    await certificates.tick();
    clock.advance(59 * DAY);
    await certificates.tick();
    expect(asked.filter((host) => host === CUSTOM)).toHaveLength(1);
    expect(await certificates.contextFor(CUSTOM)).toBe(first);
    clock.advance(2 * DAY);
    await certificates.tick();
    expect(asked.filter((host) => host === CUSTOM)).toHaveLength(2);
    expect(await certificates.contextFor(CUSTOM)).not.toBe(first);
  });

  it('that fails leaves the old one in use until its end, and no longer', async () => {
    const { certificates, answer, clock, row, lines } = start({ ownHost: null });
    const old = await certificates.contextFor(CUSTOM);
    clock.advance(61 * DAY);
    answer(refused);
    await certificates.tick();
    expect(await certificates.contextFor(CUSTOM)).toBe(old);
    expect(row(CUSTOM)).toMatchObject({ failures: 1, last_error: 'no such luck' });
    expect(lines.at(-1)).toMatchObject({
      msg: 'no certificate could be obtained: no such luck',
      host: CUSTOM,
      failures: 1,
      nextTry: new Date(clock.now() + 10 * MINUTE).toISOString(),
      inUseUntil: expect.stringMatching(/Z$/),
    });
    clock.advance(30 * DAY);
    expect(await certificates.contextFor(CUSTOM)).toBeNull();
  });

  it('is not made for a name that is ours no more: what there was is forgotten', async () => {
    const ours = new Set([CUSTOM]);
    const { certificates, asked, clock, row } = start({ ownHost: null, isOurs: (host) => ours.has(host) });
    await certificates.contextFor(CUSTOM);
    ours.clear();
    clock.advance(61 * DAY);
    await certificates.tick();
    expect(asked).toEqual([CUSTOM]);
    expect(row(CUSTOM)).toBeNull();
    expect(await certificates.contextFor(CUSTOM)).toBeNull();
  });
});

describe('orders', () => {
  it('of new names never hold up renewals and the own host, however long the authority takes', async () => {
    const { certificates, asked, answer, issue, clock, row } = start();
    await certificates.contextFor(CUSTOM);
    clock.advance(61 * DAY);
    answer((host) => (host.includes('many') ? new Promise(() => {}) : Promise.resolve(issue(host))));
    for (let n = 0; n < 10; n++) void certificates.contextFor(`t.many${n}.example`);
    await expect.poll(() => asked.filter((host) => host.includes('many'))).toHaveLength(2);
    await certificates.tick();
    expect(row(OWN)?.chain).not.toBeNull();
    expect(row(CUSTOM)?.not_after).toBeGreaterThan(clock.now() + 80 * DAY);
    expect(asked.filter((host) => host.includes('many'))).toHaveLength(2);
  });

  it('of one domain leave room for another’s', async () => {
    const { certificates, asked, answer, issue } = start();
    answer((host) => (host.includes('many') ? new Promise(() => {}) : Promise.resolve(issue(host))));
    for (let n = 0; n < 5; n++) void certificates.contextFor(`t${n}.many.example`);
    await expect.poll(() => asked).toEqual(['t0.many.example']);
    expect(await certificates.contextFor(CUSTOM)).not.toBeNull();
  });

  it('to renew names that lead here no more make room for the others', async () => {
    const names = Array.from({ length: 60 }, (_, n) => `t.many${n}.example`);
    const gone = new Set<string>();
    const { certificates, asked, clock, row, writer, issue, tables } = start({
      ownHost: null,
      leadsHere: async (host) => !gone.has(host),
    });
    await certificates.contextFor(CUSTOM);
    const kept = row(CUSTOM);
    if (kept === null) throw new Error('there is no certificate');
    // All of them are due before the custom one.
    await writer.run((all) => {
      for (const host of names) all.certificates.put({ ...kept, host, chain: issue(host).chain, due_at: 1 });
    });
    for (const host of names) gone.add(host);
    clock.advance(61 * DAY);
    await certificates.tick();
    expect(asked).toEqual([CUSTOM]);
    await certificates.tick();
    expect(asked).toEqual([CUSTOM, CUSTOM]);
    expect(tables.certificates.get('t.many0.example')).toMatchObject({
      due_at: clock.now() + 10 * MINUTE,
      failures: 0,
      tried_at: kept.tried_at,
    });
  });
});

describe('an authority that refuses', () => {
  it('is left alone for longer and longer, whoever asks, restart or not', async () => {
    const { certificates, asked, answer, clock, keeper } = start();
    answer(refused);
    const tries: number[] = [];
    const from = clock.now();
    for (let minutes = 0; minutes <= 5 * 60; minutes += 5) {
      const before = asked.length;
      await (minutes % 2 === 0 ? certificates : keeper()).contextFor(CUSTOM);
      if (asked.length > before) tries.push((clock.now() - from) / MINUTE);
      clock.advance(5 * MINUTE);
    }
    // Ten minutes, an hour, two hours, and four are not over.
    expect(tries).toEqual([0, 10, 70, 190]);
  });

  it('has been counted before it answers: a process that ends meanwhile does not ask again at once', async () => {
    const { certificates, asked, answer, keeper } = start();
    answer(() => new Promise(() => {}));
    void certificates.contextFor(CUSTOM);
    await expect.poll(() => asked).toEqual([CUSTOM]);
    expect(await keeper().contextFor(CUSTOM)).toBeNull();
    expect(asked).toEqual([CUSTOM]);
  });

  it('is asked for nothing at all while it wants a pause', async () => {
    const { certificates, asked, answer, issue, clock, keeper } = start();
    answer(async () => {
      throw new HeldOff(3 * HOUR);
    });
    await certificates.contextFor(CUSTOM);
    answer(async (host) => issue(host));
    clock.advance(3 * HOUR - MINUTE);
    expect(await certificates.contextFor(OWN)).toBeNull();
    expect(await keeper().contextFor(CUSTOM)).toBeNull();
    expect(asked).toEqual([CUSTOM]);
    clock.advance(MINUTE);
    expect(await certificates.contextFor(OWN)).not.toBeNull();
    expect(await certificates.contextFor(CUSTOM)).not.toBeNull();
  });

  it('is left alone for an hour when it does not say for how long', async () => {
    const { certificates, asked, answer, clock } = start();
    answer(async () => {
      throw new HeldOff(null);
    });
    await certificates.contextFor(CUSTOM);
    clock.advance(HOUR - 1);
    await certificates.contextFor(OWN);
    expect(asked).toEqual([CUSTOM]);
    clock.advance(1);
    await certificates.contextFor(OWN);
    expect(asked).toEqual([CUSTOM, OWN]);
  });

  it('gets so many orders in an hour and no more, restart or not; it is said once', async () => {
    const { certificates, asked, clock, keeper, lines } = start();
    const names = Array.from({ length: ORDERS_AN_HOUR + 5 }, (_, n) => `t.many${n}.example`);
    for (const name of names) await certificates.contextFor(name);
    await keeper().contextFor(CUSTOM);
    expect(asked).toEqual(names.slice(0, ORDERS_AN_HOUR - ORDERS_KEPT));
    expect(lines.filter(({ msg }) => msg.startsWith('certificates wait'))).toHaveLength(2);
    clock.advance(HOUR);
    expect(await certificates.contextFor(CUSTOM)).not.toBeNull();
  });
});

describe('whoever comes with many names', () => {
  it('waits alone: a domain has so many new ones in an hour, each spelling of a name counts once', async () => {
    const { certificates, asked, clock } = start();
    const names = Array.from({ length: NEW_NAMES_AN_HOUR + 3 }, (_, n) => `t${n}.many.example`);
    for (const name of names)
      for (const spelling of [name, `${name}.`, name.toUpperCase()]) await certificates.contextFor(spelling);
    expect(asked).toEqual(names.slice(0, NEW_NAMES_AN_HOUR));
    expect(await certificates.contextFor(CUSTOM)).not.toBeNull();
    clock.advance(HOUR);
    expect(await certificates.contextFor(names.at(-1) ?? '')).not.toBeNull();
  });

  it('leaves orders for renewals and for the platform’s own name', async () => {
    const { certificates, asked, clock, row } = start();
    await certificates.contextFor(CUSTOM);
    clock.advance(61 * DAY);
    for (let n = 0; n < ORDERS_AN_HOUR; n++) await certificates.contextFor(`t.many${n}.example`);
    const before = asked.length;
    const until = row(CUSTOM)?.not_after ?? 0;
    await certificates.tick();
    expect(asked.slice(before).toSorted()).toEqual([CUSTOM, OWN]);
    expect(row(CUSTOM)?.not_after).toBeGreaterThan(until);
  });

  it.each(['', '.', 'localhost', '127.0.0.1', 'a..example', 'x'.repeat(300)])(
    'and with %j is not listened to',
    async (name) => {
      const { certificates, asked } = start({ isOurs: () => true });
      expect(await certificates.contextFor(name)).toBeNull();
      expect(asked).toEqual([]);
    },
  );
});

it('counts what became of it, and says where a certificate is from', async () => {
  const outcomes: string[] = [];
  const observe = (outcome: string) => void outcomes.push(outcome);
  const { certificates, answer, issue, clock, lines, row } = start({ observe });
  answer(refused);
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

it('asks for nothing after it was stopped, and has nothing open', async () => {
  const { certificates, asked } = start();
  certificates.start();
  await certificates.stop();
  const before = asked.length;
  await certificates.tick();
  await certificates.contextFor(CUSTOM);
  expect(asked).toHaveLength(before);
});
