import { describe, expect, it } from 'vitest';
import { HOUR, MINUTE } from '../../src/core/clock.ts';
import { type AttemptResult, localResult } from '../../src/delivery/attempt-result.ts';
import type { EgressTicket } from '../../src/delivery/source-address.ts';
import type { SmtpPhase } from '../../src/mail/reply.ts';
import {
  createTestEgress,
  DELIVERED,
  EGRESS_FAILED,
  listed,
  marketing,
  replied,
  SITE,
  transactional,
} from './source-addresses.ts';

const A = '{ name = "a", address = "192.0.2.1" }';
const B = '{ name = "b", address = "192.0.2.2" }';

/** Takes tickets until one is of `name`; the others are released. */
function ticketOf(env: ReturnType<typeof createTestEgress>, name: string) {
  for (let slot = 0; slot < 10; slot++) {
    const ticket = env.take(marketing(), slot);
    if (ticket?.entry.name === name) return ticket;
    if (ticket !== null) env.egress().release(ticket);
  }
  throw new Error(`no ticket of ${name}`);
}

describe('the entry of a slot', () => {
  it('is stable, and the slots of a site use all entries evenly', () => {
    const env = createTestEgress(`[${A}, ${B}]`);
    const names = Array.from({ length: 10 }, (_, slot) => env.take(marketing(), slot)?.entry.name);
    expect(names.filter((name) => name === 'a')).toHaveLength(5);
    expect(Array.from({ length: 10 }, (_, slot) => env.take(marketing(), slot)?.entry.name)).toEqual(names);
  });

  it('differs between sites, so that sites with one connection use all entries', () => {
    const env = createTestEgress(`[${A}, ${B}]`);
    const names = Array.from(
      { length: 200 },
      (_, n) =>
        env.egress().take({ key: `mx.site${n}.example via default`, pool: 'default' }, 0, marketing())?.entry
          .name,
    );
    const share = names.filter((name) => name === 'a').length;
    expect(share).toBeGreaterThan(60);
    expect(share).toBeLessThan(140);
  });

  it('can reach the hosts: IPv6 alone leaves from an entry with address6, IPv4 not from a proxy with IPv6 alone', () => {
    const env = createTestEgress(
      `[${A}, { name = "six", address6 = "2001:db8::6", proxy = "socks5://192.0.2.9:1080" }]`,
    );
    const entryOf = (addresses: string[]) =>
      [0, 1, 2, 3].map(
        (slot) =>
          env.egress().take(SITE, slot, { ...marketing(), hosts: [{ name: 'mx', addresses }] })?.entry.name,
      );
    expect(new Set(entryOf(['2001:db8::1']))).toEqual(new Set(['six']));
    expect(new Set(entryOf(['192.0.2.200']))).toEqual(new Set(['a']));
    expect(new Set(entryOf(['192.0.2.200', '2001:db8::1']))).toEqual(new Set(['a', 'six']));
  });
});

describe('an address that a provider refuses', () => {
  it('is avoided at this provider, its message is sent from another address, and others are not affected', async () => {
    const env = createTestEgress(`[${A}, ${B}]`);
    const { result } = await env.settle(ticketOf(env, 'a'), listed('192.0.2.1'), 'replied');
    expect(result.classification).toMatchObject({
      action: 'defer',
      suppress: 'never',
      bounceClass: 'reputation-block',
    });
    expect(Object.keys(await env.sendAll(marketing(), 20))).toEqual(['b']);
    expect(Object.keys(await env.sendAll(marketing('Yahoo'), 20)).toSorted()).toEqual(['a', 'b']);
    expect(env.egress().problems()).toEqual([
      { entry: 'a', provider: 'Google', reason: expect.stringContaining('192.0.2.1') },
    ]);
    env.restart();
    expect(Object.keys(await env.sendAll(marketing(), 20))).toEqual(['b']);
  });

  it('is probed with one message after a wait that doubles, and recovers after three accepted ones', async () => {
    const env = createTestEgress(`[${A}, ${B}]`);
    await env.settle(ticketOf(env, 'a'), listed('192.0.2.1'), 'replied');
    env.clock.advance(15 * MINUTE);
    const probe = env.take(marketing());
    expect(probe).toMatchObject({ isProbe: true, entry: { name: 'a' } });
    expect(env.take(marketing())?.entry.name).toBe('b');
    if (probe) await env.settle(probe, listed('192.0.2.1'), 'replied');
    env.clock.advance(29 * MINUTE);
    expect(env.take(marketing())?.entry.name).toBe('b');
    env.clock.advance(MINUTE);
    for (let n = 0; n < 3; n++) {
      const next = env.take(marketing());
      expect(next).toMatchObject({ isProbe: true, entry: { name: 'a' } });
      if (next) await env.settle(next, DELIVERED, 'replied');
    }
    expect(env.egress().problems()).toEqual([]);
    expect(env.tables.egressHealth.all()).toEqual([]);
    expect(Object.keys(await env.sendAll(marketing(), 20)).toSorted()).toEqual(['a', 'b']);
  });

  it('is used when the provider refuses all addresses, and its replies are final', async () => {
    const env = createTestEgress(`[${A}, ${B}]`);
    await env.settle(ticketOf(env, 'a'), listed('192.0.2.1'), 'replied');
    const { result } = await env.settle(ticketOf(env, 'b'), listed('192.0.2.2'), 'replied');
    expect(result.classification.action).toBe('bounce');
    expect(Object.keys(await env.sendAll(marketing(), 20, listed('192.0.2.1'))).toSorted()).toEqual([
      'a',
      'b',
    ]);
  });

  it('is concluded from three replies in a row that do not name it', async () => {
    const env = createTestEgress(`[${A}, ${B}]`);
    const unnamed = replied(554, '5.7.1', 'Your IP is blocked using Spamhaus');
    expect(unnamed.classification).toMatchObject({ bounceClass: 'reputation-block', scope: 'sender' });
    const refuse = () => env.settle(ticketOf(env, 'a'), unnamed, 'replied');
    expect((await refuse()).result.classification.action).toBe('bounce');
    await env.settle(ticketOf(env, 'a'), DELIVERED, 'replied');
    await refuse();
    await refuse();
    expect(env.egress().problems()).toEqual([]);
    expect((await refuse()).result.classification.action).toBe('defer');
    expect(env.egress().problems()).toHaveLength(1);
  });

  it('is not concluded from the address of another host in the reply', async () => {
    const env = createTestEgress(`[${A}, ${B}]`);
    await env.settle(ticketOf(env, 'a'), listed('192.0.2.11'), 'replied');
    expect(env.egress().problems()).toEqual([]);
  });

  it.each([
    ['192.0.2.1', 'blocked ip:192.0.2.1'],
    ['192.0.2.1', 'source:192.0.2.1 is listed in zen.spamhaus.org'],
    ['2001:db8::a', '[IPv6:2001:db8::a] is listed in zen.spamhaus.org'],
    ['2001:db8::a', '2001:DB8:0:0:0:0:0:A blocked using Spamhaus'],
  ])('is found in a reply in every notation: %s in "%s"', async (address, text) => {
    const field = address.includes(':') ? 'address6' : 'address';
    const env = createTestEgress(`[{ name = "a", ${field} = "${address}" }]`);
    const reply = replied(550, '5.7.1', `Service unavailable, ${text}, blocked using Spamhaus`);
    expect(reply.classification).toMatchObject({ bounceClass: 'reputation-block', scope: 'sender' });
    await env.settle(ticketOf(env, 'a'), reply, 'replied');
    expect(env.egress().problems()).toHaveLength(1);
  });

  it('keeps no mail address of a reply', async () => {
    const env = createTestEgress(`[${A}, ${B}]`);
    const reply = replied(550, '5.7.1', '<ann@gmail.com>: Client host [192.0.2.1] blocked using Spamhaus');
    await env.settle(ticketOf(env, 'a'), reply, 'replied');
    expect(env.egress().problems()[0]?.reason).not.toContain('ann');
  });
});

describe('the only address, when a receiver blocks it at MAIL', () => {
  const S3140 = 'messages were not sent: part of their network is on our block list (S3140)';
  const blocked = replied(550, '5.7.1', S3140, 'mail');
  const outlook = { ...transactional('Microsoft'), receiver: 'microsoft-consumer' };

  /** `entries`: '[]' means the address that the system chooses. */
  function setup(entries = '[]', mail = outlook) {
    const env = createTestEgress(entries);
    const end = (ticket: EgressTicket, result: AttemptResult, phase: SmtpPhase = 'mail') =>
      env.settle(ticket, result, 'replied', undefined, phase);
    const settle = async (result = blocked, phase: SmtpPhase = 'mail') => {
      const ticket = env.take(mail);
      if (ticket === null) throw new Error('no address was given');
      return end(ticket, result, phase);
    };
    const block = async () => {
      for (let n = 0; n < 3; n++) await settle();
    };
    const waitMs = () => (env.egress().obstacle('default', mail)?.until ?? 0) - env.clock.now();
    return { ...env, mail, end, settle, block, waitMs };
  }

  it.each([
    ['[]', 'the system address'],
    [`[${A}]`, '192.0.2.1'],
    [`[${A}, ${B}]`, '192.0.2.1'],
  ])('is not used after three refusals in a row, with delivery.egress = %s', async (entries, address) => {
    const env = setup(entries);
    expect((await env.settle()).result.classification.action).toBe('defer');
    await env.settle(DELIVERED);
    for (let n = 0; n < (entries.includes('"b"') ? 6 : 3); n++) await env.settle();
    expect(env.take(env.mail)).toBeNull();
    expect(env.egress().obstacle('default', env.mail)).toMatchObject({
      kind: 'blocked',
      block: { address, receiver: 'microsoft-consumer', reply: expect.stringContaining('S3140') },
    });
    expect(env.egress().blocks()).toHaveLength(entries.includes('"b"') ? 2 : 1);
    // Other mail of the provider goes to another receiver.
    expect(env.take({ ...outlook, receiver: 'microsoft-business' })).not.toBeNull();
    env.restart();
    expect(env.take(env.mail)).toBeNull();
  });

  it('is probed by one message after half an hour, then after twice as long, at most four hours', async () => {
    const env = setup();
    await env.block();
    const waits: number[] = [];
    for (let n = 0; n < 5; n++) {
      waits.push(env.waitMs());
      env.clock.advance(env.waitMs());
      const probe = env.take(env.mail);
      expect(probe).toMatchObject({ isProbe: true });
      expect(env.take(env.mail)).toBeNull();
      if (probe !== null) await env.end(probe, blocked);
    }
    expect(waits).toEqual([30, 60, 120, 240, 240].map((minutes) => minutes * MINUTE));
  });

  it('is used again after three accepted probes, and the site resumes with one connection', async () => {
    const env = setup();
    await env.block();
    env.clock.advance(30 * MINUTE);
    const effects: unknown[] = [];
    for (let n = 0; n < 3; n++) effects.push((await env.settle(DELIVERED)).result.address);
    expect(effects).toEqual([undefined, undefined, 'recovered']);
    expect(env.tables.egressHealth.all()).toEqual([]);
    expect(env.take(env.mail)).toMatchObject({ isProbe: false });
  });

  it('is announced once, with how to ask for the removal', async () => {
    const env = setup(`[${A}]`);
    await env.block();
    expect(env.blocks).toEqual([
      expect.objectContaining({
        address: '192.0.2.1',
        receiver: 'microsoft-consumer',
        delisting: expect.stringContaining('https://olcsupport.office.com'),
      }),
    ]);
  });

  it('is probed immediately when the operator retries mail', async () => {
    const env = setup();
    await env.block();
    env.egress().probeNow();
    expect(env.take(env.mail)).toMatchObject({ isProbe: true });
  });

  it('is probed when the clock was set back by a year', async () => {
    const env = setup();
    await env.block();
    env.clock.advance(-365 * 24 * HOUR);
    expect(env.take(env.mail)).toMatchObject({ isProbe: true });
  });

  it('stays in use when the refusals come at RCPT', async () => {
    const env = setup();
    const atRcpt = replied(554, '5.7.1', 'blocked using Spamhaus');
    for (let n = 0; n < 10; n++)
      expect((await env.settle(atRcpt, 'rcpt')).result.classification.action).toBe('bounce');
  });
});

describe('a source address that cannot be used', () => {
  const PROXY = '{ name = "far", address = "192.0.2.3", proxy = "socks5://192.0.2.9:1080" }';

  it('is replaced by the next one after two faults, probed with one message, and used when that is sent', async () => {
    const env = createTestEgress(`[${PROXY}, ${B}]`);
    const fail = async () => (await env.settle(ticketOf(env, 'far'), EGRESS_FAILED, 'egress-failed')).result;
    expect((await fail()).classification).toMatchObject({
      action: 'defer',
      retryAfterMs: expect.any(Number),
    });
    await fail();
    expect(Object.keys(await env.sendAll(marketing(), 20))).toEqual(['b']);
    expect(env.egress().problems()).toEqual([
      { entry: 'far', provider: null, reason: 'proxy 192.0.2.9:1080: connection refused' },
    ]);
    env.clock.advance(MINUTE);
    const probe = ticketOf(env, 'far');
    expect(Object.keys(await env.sendAll(marketing(), 20))).toEqual(['b']);
    await env.settle(probe, DELIVERED, 'replied');
    expect(Object.keys(await env.sendAll(marketing(), 20)).toSorted()).toEqual(['b', 'far']);
    expect(env.egress().problems()).toEqual([]);
  });

  it('stays unused after a probe whose worker was lost', async () => {
    const env = createTestEgress(`[${PROXY}, ${B}]`);
    for (let n = 0; n < 2; n++) await env.settle(ticketOf(env, 'far'), EGRESS_FAILED, 'egress-failed');
    env.clock.advance(MINUTE);
    const lost = localResult('connection-lost');
    env.egress().settle(ticketOf(env, 'far'), lost, { conclusion: 'worker-lost', sessions: [] });
    expect(env.egress().problems()).toHaveLength(1);
    expect(ticketOf(env, 'far')).toMatchObject({ entry: { name: 'far' } });
    expect(Object.keys(await env.sendAll(marketing(), 20))).toEqual(['b']);
  });

  it('does not count against the quota of a warm-up', async () => {
    const env = createTestEgress(
      '[{ name = "far", address = "192.0.2.3", proxy = "socks5://192.0.2.9:1080", warmup = { started = 2026-12-01 } }]',
    );
    const ticket = env.take(marketing());
    if (ticket) await env.settle(ticket, EGRESS_FAILED, 'egress-failed');
    expect(await env.sendAll(marketing())).toEqual({ far: 50 });
  });

  it('makes all mail wait when it is the only one, longer each time', async () => {
    const env = createTestEgress(`[${PROXY}]`);
    const fail = async () => {
      const ticket = env.take(transactional());
      if (ticket) await env.settle(ticket, EGRESS_FAILED, 'egress-failed');
    };
    const waitMs = () => (env.egress().obstacle('default', transactional())?.until ?? 0) - env.clock.now();
    await fail();
    await fail();
    expect(env.take(transactional())).toBeNull();
    const first = waitMs();
    env.clock.advance(first);
    await fail();
    expect(waitMs()).toBe(2 * first);
    for (let n = 0; n < 20; n++) {
      env.clock.advance(HOUR);
      await fail();
    }
    expect(waitMs()).toBe(10 * MINUTE);
  });

  it('stays in use when only its IPv6 address fails, and waits when it has no other', async () => {
    const fail = async (entry: string) => {
      const env = createTestEgress(`[${entry}]`);
      for (let n = 0; n < 3; n++) {
        const ticket = env.take(transactional());
        if (ticket) await env.settle(ticket, EGRESS_FAILED, 'egress-failed', '2001:db8::25');
      }
      return env.take(transactional())?.entry.name ?? null;
    };
    expect(await fail('{ name = "both", address = "192.0.2.1", address6 = "2001:db8::1" }')).toBe('both');
    expect(await fail('{ name = "six", address6 = "2001:db8::1" }')).toBeNull();
  });

  it('is not used before the name of its proxy is resolved', () => {
    const env = createTestEgress(`[${PROXY}]`);
    env.unresolved.add('far');
    expect(env.take(marketing())).toBeNull();
    expect(env.egress().obstacle('default', marketing())).toMatchObject({
      kind: 'unusable',
      text: 'waits for the source address 192.0.2.3, which cannot be used now',
    });
    env.unresolved.clear();
    expect(env.take(marketing())).not.toBeNull();
  });
});
