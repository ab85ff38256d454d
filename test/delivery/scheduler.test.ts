import { describe, expect, it, onTestFinished } from 'vitest';
import type { ShapingProfile } from '../../src/config/schema.ts';
import { MINUTE } from '../../src/core/clock.ts';
import { createLog } from '../../src/core/log.ts';
import type { Whereabouts } from '../../src/delivery/hosts.ts';
import { createScheduler, type Obstacle } from '../../src/delivery/scheduler.ts';
import { type Assignment, createSites, type Site } from '../../src/delivery/sites.ts';
import { HELD } from '../../src/store/queue.ts';
import { enqueue, insertAccount, insertDomain, startStore } from '../support/store.ts';

interface Options {
  connections?: number;
  where?: (destination: string) => Whereabouts | null;
  stillAllowed?: () => Obstacle | null;
}

function start(options: Options = {}) {
  const store = startStore();
  const { tables, writer, recorder, clock } = store;
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
  const dispatched: { site: Site; slot: number; assignment: Assignment }[] = [];
  const failed: string[] = [];
  const simulated: string[] = [];
  const known: (() => void)[] = [];
  const scheduler = createScheduler({
    clock,
    log: createLog({ level: 'silent', hashAddresses: true }),
    tables,
    writer,
    recorder,
    sites,
    destinations: {
      lookUp: (destination, _ipv6, tell) => {
        const where = options.where === undefined ? hosts(destination) : options.where(destination);
        if (where === null) known.push(tell);
        return where;
      },
    },
    egress: { poolOf: () => 'default', entry: () => ({ hostname: 'mail.test' }), ipv6Of: () => 'never' },
    generation: 1,
    stillAllowed: options.stillAllowed ?? (() => null),
    dispatch: (site, slot, assignment) => dispatched.push({ site, slot, assignment }),
    failed: (message) => failed.push(message.recipient),
    simulate: (message) => simulated.push(message.recipient),
  });
  onTestFinished(() => scheduler.stop());
  const finish = (n: number) => {
    for (const { site, slot } of dispatched.splice(0, n)) {
      sites.free(site, slot);
      scheduler.advance(site);
    }
  };
  return { ...store, sites, scheduler, dispatched, failed, simulated, known, finish };
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
  it('takes what waits at start, with a lease, the state and email_sent', async () => {
    const { tables, clock, scheduler, dispatched } = start();
    const { seq } = enqueue(tables, clock.now(), { recipient: 'a@one.test' });
    scheduler.start();
    await settle();
    expect(recipients(dispatched)).toEqual(['a@one.test']);
    expect(tables.queue.get(seq)?.lease).toBe(1);
    expect(tables.messages.bySeq(seq)?.status).toBe('sending');
    expect(tables.events.ofMessage(seq).map(({ kind }) => kind)).toEqual(['email_sent']);
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
    expect(dispatched.map(({ slot }) => slot).sort((a, b) => a - b)).toEqual([0, 1, 2]);
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
    expect(
      tables.queue.ready(0, { account_id: 'acct_one', destination: 'one.test' }, 1000).length,
    ).toBeGreaterThanOrEqual(479);
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

  it.each(['email_suppressed', 'email_failed'] as const)('drops what may no longer go: %s', async (kind) => {
    const { tables, clock, scheduler, dispatched } = start({
      stillAllowed: () => ({ kind, fields: { reason: 'told' } }),
    });
    const { seq } = enqueue(tables, clock.now(), { recipient: 'a@one.test' });
    scheduler.start();
    await settle();
    expect(dispatched).toEqual([]);
    expect(tables.messages.bySeq(seq)?.status).toBe('failed');
    expect(tables.queue.get(seq)).toBeNull();
    const events = tables.events.ofMessage(seq).map(({ kind, data }) => [kind, data]);
    expect(events).toEqual([[kind, '{"reason":"told"}']]);
  });

  it('puts off what is held, without an attempt and without telling anybody', async () => {
    const { tables, clock, scheduler, dispatched } = start({ stillAllowed: () => ({ kind: 'hold' }) });
    const { seq } = enqueue(tables, clock.now(), { recipient: 'a@one.test' });
    scheduler.start();
    await settle();
    expect(dispatched).toEqual([]);
    expect(tables.messages.bySeq(seq)).toMatchObject({ status: 'queued', attempts: 0 });
    expect(tables.queue.get(seq)).toMatchObject({ due_at: HELD, ready: 0, lease: null });
    expect(tables.events.ofMessage(seq)).toEqual([]);
  });

  it('gives everything back that was not started when it stops', async () => {
    const { tables, clock, scheduler, dispatched } = start({ connections: 1 });
    const messages = Array.from({ length: 10 }, (_, n) =>
      enqueue(tables, clock.now(), { recipient: `a${n}@one.test` }),
    );
    scheduler.start();
    await settle();
    await scheduler.stop();
    expect(dispatched).toHaveLength(1);
    const held = messages.filter(({ seq }) => tables.queue.get(seq)?.lease !== null);
    expect(held.map(({ recipient }) => recipient)).toEqual(recipients(dispatched));
  });
});

describe('a site that is slow', () => {
  it('is asked again for what it took long ago: whoever may not go by then does not', async () => {
    let gone = false;
    const obstacle: Obstacle = { kind: 'email_suppressed', fields: { reasonCode: 'CONSENT_WITHDRAWN' } };
    const setting = start({ connections: 1, stillAllowed: () => (gone ? obstacle : null) });
    const { tables, clock, scheduler, dispatched, finish } = setting;
    const messages = Array.from({ length: 4 }, (_, n) =>
      enqueue(tables, clock.now(), { recipient: `a${n}@one.test` }),
    );
    scheduler.start();
    await settle();
    expect(recipients(dispatched)).toEqual(['a0@one.test']);
    gone = true;
    clock.advance(3000);
    finish(1);
    await settle();
    expect(dispatched).toEqual([]);
    expect(messages.slice(1).map(({ seq }) => tables.messages.bySeq(seq)?.status)).toEqual([
      'failed',
      'failed',
      'failed',
    ]);
  });

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
    expect(
      tables.events.feed({ accountId: 'acct_one', afterSeq: 0, limit: 50 }).map(({ kind }) => kind),
    ).toEqual(Array.from({ length: 4 }, () => 'email_sent'));
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
  it('is left alone from the second failure on, longer each time, and its mail goes back to the queue', async () => {
    const { tables, clock, scheduler, sites, dispatched, finish } = start({ connections: 1 });
    const messages = Array.from({ length: 5 }, (_, n) =>
      enqueue(tables, clock.now(), { recipient: `a${n}@one.test` }),
    );
    scheduler.start();
    await settle();
    const [site] = sites.all();
    if (site === undefined) throw new Error('no site');
    expect(sites.unreachable(site)).toBe(0);
    expect(sites.unreachable(site)).toBe(MINUTE);
    finish(1);
    await settle();
    expect(dispatched).toEqual([]);
    expect(messages.filter(({ seq }) => tables.queue.get(seq)?.lease !== null)).toHaveLength(1);
    clock.advance(MINUTE);
    expect(sites.suspended(site)).toBe(false);
    expect(sites.unreachable(site)).toBe(2 * MINUTE);
    sites.answered(site);
    expect(sites.unreachable(site)).toBe(0);
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
