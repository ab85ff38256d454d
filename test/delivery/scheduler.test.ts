import { describe, expect, it, onTestFinished } from 'vitest';
import type { ShapingProfile } from '../../src/config/schema.ts';
import { MINUTE } from '../../src/core/clock.ts';
import { createLog } from '../../src/core/log.ts';
import { createClaims } from '../../src/delivery/claims.ts';
import type { Whereabouts } from '../../src/delivery/hosts.ts';
import { createParking } from '../../src/delivery/parking.ts';
import { createScheduler } from '../../src/delivery/scheduler.ts';
import { type Assignment, createSites, type Hold } from '../../src/delivery/sites.ts';
import type { QueuedMessage } from '../../src/store/messages/queue.ts';
import { enqueue, insertAccount, insertDomain, startStore } from '../support/store.ts';

interface Options {
  connections?: number;
  where?: (destination: string) => Whereabouts | null;
  admits?: (message: QueuedMessage) => boolean;
  egress?: () => string;
}

function start(options: Options = {}) {
  const store = startStore();
  const { tables, writer, clock } = store;
  const log = createLog({ level: 'silent', hashAddresses: true });
  const shaping: ShapingProfile[] = [
    {
      match: '*.test',
      connections: options.connections ?? 2,
      messagesPerConnection: 100,
      idleSeconds: 60,
      tls: 'none',
    },
  ];
  const sites = createSites({ clock, shaping, firstSuspension: MINUTE });
  const claims = createClaims(clock);
  const parking = createParking({ clock, monotonic: clock, log });
  const dispatched: { hold: Hold; assignment: Assignment }[] = [];
  const disarmed: number[] = [];
  const failed: string[] = [];
  const simulated: string[] = [];
  const unprepared: string[] = [];
  const expired: string[] = [];
  const known: (() => void)[] = [];
  /** What the engine does when it takes a message. */
  const leave = (message: QueuedMessage) => {
    tables.queue.lease(message.seq, 1);
    claims.release(message);
  };
  const scheduler = createScheduler({
    clock,
    monotonic: clock,
    log,
    tables,
    writer,
    sites,
    claims,
    parking,
    destinations: {
      lookUp: (destination, _ipv6, tell) => {
        const where = options.where === undefined ? hosts(destination) : options.where(destination);
        if (where === null) known.push(tell);
        return where;
      },
    },
    egress: {
      poolOf: options.egress ?? (() => 'default'),
      entry: () => ({ hostname: 'mail.test' }),
      ipv6Of: () => 'never',
    },
    admits: (_, message) => options.admits?.(message) ?? true,
    mayStart: () => true,
    dispatch: (hold, assignment, armed) => {
      if (!armed) leave(assignment.message);
      dispatched.push({ hold, assignment });
    },
    arm: (site, assignment) => {
      leave(assignment.message);
      site.arming--;
      site.armed[assignment.message.lane].push(assignment);
    },
    disarm: ({ seq }) => {
      tables.queue.release(seq, clock.now());
      disarmed.push(seq);
    },
    failed: (message) => {
      leave(message);
      failed.push(message.recipient);
    },
    simulate: (message) => {
      leave(message);
      simulated.push(message.recipient);
    },
    unprepared: (message) => {
      leave(message);
      unprepared.push(message.recipient);
    },
    expired: (message) => {
      leave(message);
      expired.push(message.recipient);
    },
  });
  onTestFinished(() => scheduler.stop());
  const finish = (n: number) => {
    for (const { hold } of dispatched.splice(0, n)) {
      sites.free(hold);
      scheduler.released(hold.site);
    }
  };
  const fakes = { disarmed, dispatched, failed, simulated, unprepared, expired, known, finish };
  return { ...store, sites, claims, parking, scheduler, ...fakes };
}

function hosts(destination: string): Whereabouts {
  return {
    kind: 'hosts',
    hosts: [{ name: `mx.${destination}`, addresses: ['192.0.2.1'] }],
    route: null,
    ttl: 60,
  };
}

/** Lets commits and immediate callbacks happen. */
async function settle(): Promise<void> {
  for (let n = 0; n < 20; n++) await new Promise((resolve) => setImmediate(resolve));
}

const recipients = (list: { assignment: Assignment }[]) =>
  list.map(({ assignment }) => assignment.message.recipient);

describe('the scheduler', () => {
  it('takes what waits at start', async () => {
    const { tables, clock, scheduler, dispatched } = start();
    enqueue(tables, clock.now(), { recipient: 'a@one.test' });
    scheduler.start();
    await settle();
    expect(recipients(dispatched)).toEqual(['a@one.test']);
  });

  it('takes new mail when it is announced', async () => {
    const { tables, clock, scheduler, dispatched } = start();
    scheduler.start();
    await settle();
    enqueue(tables, clock.now(), { recipient: 'a@one.test' });
    scheduler.announce(0, { account_id: 'acct_one', destination: 'one.test' });
    await settle();
    expect(recipients(dispatched)).toEqual(['a@one.test']);
  });

  it('never uses more slots than the site has connections', async () => {
    const { tables, clock, scheduler, dispatched, finish } = start({ connections: 3 });
    for (let n = 0; n < 10; n++) enqueue(tables, clock.now(), { recipient: `a${n}@one.test` });
    scheduler.start();
    await settle();
    expect(dispatched.map(({ hold }) => hold.slot).sort((a, b) => a - b)).toEqual([0, 1, 2]);
    const seen = new Set<string>();
    while (dispatched.length > 0) {
      expect(dispatched.length).toBeLessThanOrEqual(3);
      for (const recipient of recipients(dispatched)) seen.add(recipient);
      finish(1);
      await settle();
    }
    expect(seen.size).toBe(10);
  });

  it('sends transactional mail before marketing mail that waited longer', async () => {
    const { tables, clock, scheduler, dispatched, finish } = start({ connections: 1 });
    for (let n = 0; n < 5; n++) enqueue(tables, clock.now(), { recipient: `news${n}@one.test`, lane: 1 });
    scheduler.start();
    await settle();
    enqueue(tables, clock.now(), { recipient: 'reset@one.test' });
    scheduler.announce(0, { account_id: 'acct_one', destination: 'one.test' });
    await settle();
    finish(1);
    await settle();
    expect(recipients(dispatched)).toEqual(['reset@one.test']);
  });

  it('lets accounts take turns: a large campaign does not starve its neighbour', async () => {
    const { tables, clock, scheduler, dispatched, finish } = start({ connections: 1 });
    insertAccount(tables, 'acct_two', clock.now());
    insertDomain(
      tables,
      { account_id: 'acct_two', domain_id: 'domain_two', name: 'two.example' },
      clock.now(),
    );
    for (let n = 0; n < 500; n++) enqueue(tables, clock.now(), { recipient: `big${n}@one.test`, lane: 1 });
    scheduler.start();
    await settle();
    for (let n = 0; n < 5; n++)
      enqueue(tables, clock.now(), {
        recipient: `small${n}@one.test`,
        lane: 1,
        account_id: 'acct_two',
        domain_id: 'domain_two',
      });
    scheduler.announce(1, { account_id: 'acct_two', destination: 'one.test' });
    await settle();
    let sent = 0;
    let small = 0;
    while (small < 5 && sent < 500) {
      small += recipients(dispatched).filter((recipient) => recipient.startsWith('small')).length;
      sent++;
      finish(1);
      await settle();
    }
    expect(small).toBe(5);
    // What was ahead of it already, and one turn of the neighbour.
    expect(sent).toBeLessThan(60);
  });

  it('holds no more in memory than its sites have room for', async () => {
    const { tables, clock, scheduler, sites } = start({ connections: 1 });
    for (let n = 0; n < 500; n++) enqueue(tables, clock.now(), { recipient: `a${n}@one.test` });
    scheduler.start();
    await settle();
    const held = [...sites.all()].reduce((sum, site) => sum + site.backlog[0].length, 0);
    expect(held).toBeGreaterThan(0);
    expect(held).toBeLessThanOrEqual(20);
    expect(tables.queue.readySeqs(0, { account_id: 'acct_one', destination: 'one.test' }, 1000).length).toBe(
      499,
    );
  });

  it('waits for a look-up and goes on when it is known', async () => {
    let where: Whereabouts | null = null;
    const { tables, clock, scheduler, dispatched, known } = start({ where: () => where });
    const { seq } = enqueue(tables, clock.now(), { recipient: 'a@one.test' });
    scheduler.start();
    await settle();
    expect(dispatched).toEqual([]);
    expect(tables.queue.get(seq)?.lease).toBeNull();
    where = hosts('one.test');
    for (const tell of known) tell();
    await settle();
    expect(recipients(dispatched)).toEqual(['a@one.test']);
  });

  it('hands over what has nowhere to go, and simulated mail', async () => {
    const { tables, clock, scheduler, failed, simulated, dispatched } = start({
      where: () => ({ kind: 'failure', failure: 'null-mx', ttl: 60 }),
    });
    enqueue(tables, clock.now(), { recipient: 'a@null.test' });
    enqueue(tables, clock.now(), { recipient: 'bounced@simulator.mail.test', simulated: 1 });
    scheduler.start();
    await settle();
    expect(failed).toEqual(['a@null.test']);
    expect(simulated).toEqual(['bounced@simulator.mail.test']);
    expect(dispatched).toEqual([]);
  });

  it('gives everything back that was not started when it stops', async () => {
    const { tables, clock, scheduler, dispatched } = start({ connections: 1 });
    const messages = Array.from({ length: 10 }, (_, n) =>
      enqueue(tables, clock.now(), { recipient: `a${n}@one.test` }),
    );
    scheduler.start();
    await settle();
    scheduler.stop();
    expect(dispatched).toHaveLength(1);
    const held = messages.filter(({ seq }) => tables.queue.get(seq)?.lease !== null);
    expect(held.map(({ recipient }) => recipient)).toEqual(recipients(dispatched));
  });
});

describe('a site that is slow', () => {
  it('goes on in order with what it may still send', async () => {
    const { tables, clock, scheduler, dispatched, finish } = start({ connections: 1 });
    for (let n = 0; n < 4; n++) enqueue(tables, clock.now(), { recipient: `a${n}@one.test` });
    scheduler.start();
    await settle();
    const seen: string[] = [];
    while (dispatched.length > 0) {
      seen.push(...recipients(dispatched));
      clock.advance(3000);
      finish(1);
      await settle();
    }
    expect(seen).toEqual(['a0@one.test', 'a1@one.test', 'a2@one.test', 'a3@one.test']);
  });

  it('takes no more ahead than it gets through in a second, and one for each connection', async () => {
    const { tables, clock, scheduler, sites, finish } = start({ connections: 2 });
    for (let n = 0; n < 100; n++) enqueue(tables, clock.now(), { recipient: `a${n}@one.test` });
    scheduler.start();
    await settle();
    const [site] = sites.all();
    if (site === undefined) throw new Error('no site');
    expect(sites.ahead(site)).toBe(40);
    clock.advance(1000);
    expect(sites.ahead(site)).toBe(2);
    for (let n = 0; n < 6; n++) finish(1);
    expect(sites.ahead(site)).toBe(6);
    clock.advance(1000);
    expect(sites.ahead(site)).toBe(6);
    clock.advance(5000);
    expect(sites.ahead(site)).toBe(2);
  });
});

describe('a site that cannot be reached', () => {
  it('keeps no mail in memory, and its mail shows as it did before', async () => {
    const { tables, clock, scheduler, sites, claims, dispatched, finish } = start({ connections: 2 });
    const messages = Array.from({ length: 8 }, (_, n) =>
      enqueue(tables, clock.now(), { recipient: `a${n}@one.test` }),
    );
    scheduler.start();
    await settle();
    for (const { hold } of dispatched) sites.unreachable(hold);
    finish(2);
    await settle();
    expect(dispatched).toEqual([]);
    expect(claims.count()).toBe(0);
    const untouched = messages.slice(2).map(({ seq }) => tables.queue.get(seq)?.lease);
    expect(untouched).toEqual(Array.from({ length: 6 }, () => null));
    expect(messages.map(({ seq }) => tables.messages.bySeq(seq)?.status)).toEqual(
      Array.from({ length: 8 }, () => 'queued'),
    );
  });

  it('gives up what expires while it is suspended', async () => {
    const { tables, clock, scheduler, sites, dispatched, expired, finish } = start({ connections: 2 });
    for (let n = 0; n < 4; n++)
      enqueue(tables, clock.now(), { recipient: `a${n}@one.test`, expires_at: clock.now() + 31_000 });
    scheduler.start();
    await settle();
    for (const { hold } of dispatched) sites.unreachable(hold);
    finish(2);
    await settle();
    clock.advance(32_000);
    await expect.poll(() => expired, { timeout: 5000 }).toEqual(['a2@one.test', 'a3@one.test']);
  });
});

describe('messages that expire while their site is suspended', () => {
  it('fail in portions: one turn of the event loop has a bounded number of them', async () => {
    const { db, tables, clock, scheduler, sites, dispatched, expired, finish } = start({ connections: 2 });
    db.transaction(() => {
      for (let n = 0; n < 6; n++) {
        insertAccount(tables, `acct_${n}`, clock.now());
        for (let m = 0; m < 60; m++)
          enqueue(tables, clock.now(), {
            account_id: `acct_${n}`,
            recipient: `a${m}@one.test`,
            expires_at: clock.now() + 31_000,
          });
      }
    })();
    scheduler.start();
    await settle();
    for (const { hold } of dispatched) sites.unreachable(hold);
    finish(2);
    await settle();
    clock.advance(32_000);
    let most = 0;
    for (let before = 0; before < 358; before = expired.length) {
      await new Promise(setImmediate);
      most = Math.max(most, expired.length - before);
    }
    expect(new Set(expired).size).toBe(60);
    expect(most).toBeGreaterThan(0);
    expect(most).toBeLessThanOrEqual(100);
  });
});

describe('a site that is fast and healthy', () => {
  const leased = (rig: ReturnType<typeof start>) =>
    rig.db.prepare('SELECT count(*) FROM queue WHERE lease IS NOT NULL').pluck().get();

  async function run(answers: boolean) {
    const rig = start({ connections: 2 });
    rig.db.transaction(() => {
      for (let n = 0; n < 30; n++) enqueue(rig.tables, rig.clock.now(), { recipient: `a${n}@one.test` });
    })();
    rig.scheduler.start();
    await settle();
    // New, it has proved nothing.
    expect(leased(rig)).toBe(2);
    for (let n = 0; n < 4; n++) {
      const [first] = rig.dispatched;
      if (answers && first !== undefined) rig.sites.answered(first.hold);
      rig.finish(1);
      await settle();
    }
    return rig;
  }

  it('has the next message for each connection leased before a slot is free', async () => {
    const rig = await run(true);
    expect(rig.dispatched).toHaveLength(2);
    // Those that were sent, those that are, and those that are next.
    expect(leased(rig)).toBe(4 + 2 + 2);
  });

  it('has not, as long as it never answered', async () => {
    expect(leased(await run(false))).toBe(4 + 2);
  });

  it('gives them back when it cannot be reached any more', async () => {
    const rig = await run(true);
    for (const { hold } of rig.dispatched) rig.sites.unreachable(hold);
    rig.finish(2);
    await settle();
    expect(rig.disarmed).toHaveLength(2);
    expect(leased(rig)).toBe(4 + 2);
    expect(rig.dispatched).toEqual([]);
  });
});

describe('what cannot be read', () => {
  const corrupt = () => {
    throw new Error('database disk image is malformed');
  };

  it('a single message is passed over; everybody else is sent', async () => {
    const { tables, clock, scheduler, dispatched } = start({ connections: 5 });
    const [first] = ['bad', 'good', 'fine'].map((user) =>
      enqueue(tables, clock.now(), { recipient: `${user}@one.test` }),
    );
    const { ready } = tables.queue;
    tables.queue.ready = (seq) => (seq === first?.seq ? corrupt() : ready(seq));
    scheduler.start();
    await settle();
    expect(recipients(dispatched)).toEqual(['good@one.test', 'fine@one.test']);
    expect(tables.queue.get(first?.seq ?? 0)?.lease).toBeNull();
  });

  it('a stream is left alone for a while; the others are sent', async () => {
    const { tables, clock, scheduler, dispatched } = start();
    enqueue(tables, clock.now(), { recipient: 'a@bad.test' });
    enqueue(tables, clock.now(), { recipient: 'a@good.test' });
    const { readySeqs } = tables.queue;
    let broken = true;
    tables.queue.readySeqs = (lane, stream, limit) =>
      broken && stream.destination === 'bad.test' ? corrupt() : readySeqs(lane, stream, limit);
    scheduler.start();
    await settle();
    expect(recipients(dispatched)).toEqual(['a@good.test']);
    expect(scheduler.unreadable()).toBe(1);
    broken = false;
    clock.advance(2000);
    scheduler.announce(0, { account_id: 'acct_one', destination: 'bad.test' });
    await settle();
    expect(recipients(dispatched)).toEqual(['a@good.test', 'a@bad.test']);
    expect(scheduler.unreadable()).toBe(0);
  });

  it('a stream is forgotten when it has no more mail', async () => {
    const { tables, clock, scheduler } = start();
    const { seq } = enqueue(tables, clock.now(), { recipient: 'a@bad.test' });
    tables.queue.readySeqs = corrupt;
    scheduler.start();
    await settle();
    expect(scheduler.unreadable()).toBe(1);
    tables.queue.remove(seq);
    clock.advance(600_000);
    await expect.poll(() => scheduler.unreadable(), { timeout: 10_000 }).toBe(0);
  });

  it('a domain: its message is reported, the round goes on', async () => {
    const { tables, clock, scheduler, dispatched, unprepared } = start({ connections: 5 });
    insertDomain(
      tables,
      { account_id: 'acct_one', domain_id: 'domain_bad', name: 'bad.example' },
      clock.now(),
    );
    enqueue(tables, clock.now(), { recipient: 'a@one.test', domain_id: 'domain_bad' });
    enqueue(tables, clock.now(), { recipient: 'b@one.test' });
    const { byId } = tables.domains;
    tables.domains.byId = (id) => (id === 'domain_bad' ? corrupt() : byId(id));
    scheduler.start();
    await settle();
    expect(unprepared).toEqual(['a@one.test']);
    expect(recipients(dispatched)).toEqual(['b@one.test']);
  });

  it('the index of one lane does not hold up the other, and the queue counts as stalled', async () => {
    const { tables, clock, scheduler, dispatched } = start();
    enqueue(tables, clock.now(), { recipient: 'a@one.test', lane: 1 });
    const { streamAfter } = tables.queue;
    tables.queue.streamAfter = (lane, after) => (lane === 0 ? corrupt() : streamAfter(lane, after));
    const before = scheduler.lookedAt();
    clock.advance(5000);
    scheduler.start();
    const started = scheduler.lookedAt();
    await settle();
    expect(recipients(dispatched)).toEqual(['a@one.test']);
    expect(started).toBeGreaterThan(before);
    expect(scheduler.isFailing()).toBe(false);
    clock.advance(5000);
    await expect.poll(() => clock.now() - scheduler.lookedAt(), { timeout: 3000 }).toBe(5000);
    await expect.poll(() => scheduler.isFailing(), { timeout: 3000 }).toBe(true);
    tables.queue.streamAfter = streamAfter;
    await expect.poll(() => scheduler.isFailing(), { timeout: 3000 }).toBe(false);
  });
});

describe('mail of a parked domain', () => {
  it('leaves the ready part of the queue until the domain is tried again', async () => {
    const { tables, clock, scheduler, parking, dispatched } = start({ connections: 5 });
    insertDomain(
      tables,
      { account_id: 'acct_one', domain_id: 'domain_bad', name: 'bad.example' },
      clock.now(),
    );
    const parked = enqueue(tables, clock.now(), { recipient: 'a@one.test', domain_id: 'domain_bad' });
    enqueue(tables, clock.now(), { recipient: 'b@one.test' });
    for (let n = 0; n < 3; n++)
      parking.failed({ domainId: 'domain_bad', accountId: 'acct_one' }, new Error('bad key'));
    scheduler.start();
    await settle();
    expect(recipients(dispatched)).toEqual(['b@one.test']);
    expect(tables.queue.get(parked.seq)).toMatchObject({
      ready: 0,
      due_at: clock.now() + MINUTE,
      lease: null,
    });
    expect(tables.messages.bySeq(parked.seq)?.status).toBe('queued');
  });
});

describe('a limit of the engine', () => {
  it('holds mail of one account back, and lets that of others pass it', async () => {
    let full = true;
    const { tables, clock, scheduler, dispatched, finish } = start({
      connections: 2,
      admits: ({ account_id }) => !full || account_id === 'acct_two',
    });
    insertAccount(tables, 'acct_two', clock.now());
    insertDomain(
      tables,
      { account_id: 'acct_two', domain_id: 'domain_two', name: 'two.example' },
      clock.now(),
    );
    for (let n = 0; n < 3; n++) enqueue(tables, clock.now(), { recipient: `big${n}@one.test` });
    enqueue(tables, clock.now(), {
      recipient: 'small@one.test',
      account_id: 'acct_two',
      domain_id: 'domain_two',
    });
    scheduler.start();
    await settle();
    expect(recipients(dispatched)).toEqual(['small@one.test']);
    full = false;
    finish(1);
    await settle();
    expect(recipients(dispatched)).toEqual(['big0@one.test', 'big1@one.test']);
  });
});

describe('sites', () => {
  const make = (shaping: ShapingProfile[] = []) =>
    createSites({ clock: { now: () => 0 }, shaping, firstSuspension: MINUTE });
  const at = (...names: string[]) => names.map((name) => ({ name, addresses: ['192.0.2.1'] }));
  const google: ShapingProfile = {
    match: '*.google.com',
    connections: 5,
    messagesPerConnection: 50,
    idleSeconds: 60,
    tls: 'required',
  };

  it('are shared by domains behind the same hosts, whatever their order', () => {
    const sites = make();
    expect(sites.of('a.test', at('mx1.x', 'mx2.x'), null, 'p')).toBe(
      sites.of('b.test', at('mx2.x', 'mx1.x'), null, 'p'),
    );
    expect(sites.of('a.test', at('mx1.x'), null, 'p')).not.toBe(sites.of('a.test', at('mx1.x'), null, 'q'));
  });

  it('are one for a matching profile, whatever the names of the hosts', () => {
    const sites = make([google]);
    const site = sites.of('a.test', at('aspmx.l.google.com'), null, 'p');
    expect(site).toBe(sites.of('b.test', at('alt1.aspmx.l.google.com', 'other'), null, 'p'));
    expect(site.profile).toEqual({
      connections: 5,
      messagesPerConnection: 50,
      idleMs: MINUTE,
      tls: 'required',
    });
  });

  it('match a recipient’s domain too, and never a look-alike', () => {
    const sites = make([{ ...google, match: 'a.test' }, google]);
    expect(sites.of('a.test', at('mx.x'), null, 'p').profile.connections).toBe(5);
    expect(sites.of('b.test', at('evilgoogle.com'), null, 'p').profile.connections).toBe(10);
  });
});
