import type { SMTPServerSession } from 'smtp-server';
import { describe, expect, it } from 'vitest';
import { HOUR, MINUTE, SECOND } from '../../src/core/clock.ts';
import { createConnections, type SmtpConnectionLimits } from '../../src/smtp/connections.ts';
import { heldClock } from '../support/store.ts';

const LIMITS: SmtpConnectionLimits = {
  connections: 6,
  perAddress: 3,
  messagesPerConnection: 2,
  transactionMs: 10 * MINUTE,
  connectionMs: 2 * HOUR,
};

function setUp() {
  const clock = heldClock();
  const disconnected: string[] = [];
  const connections = createConnections(clock, LIMITS, (session) => void disconnected.push(session.id));
  /** A session with the fields that connections use. */
  const session = (id: string, remoteAddress: string) =>
    ({ id, remoteAddress }) as unknown as SMTPServerSession;
  const admit = (id: string, address = '192.0.2.1') => {
    const made = session(id, address);
    return { session: made, refusal: connections.admit(made) };
  };
  return { clock, connections, disconnected, admit };
}

describe('connections', () => {
  it('of one address are limited while all of them are new', () => {
    const { connections, admit, disconnected } = setUp();
    for (const id of ['a', 'b', 'c']) expect(admit(id).refusal).toBeNull();
    expect(admit('d').refusal).toMatchObject({ responseCode: 421 });
    expect(admit('e', '192.0.2.2').refusal).toBeNull();
    expect(connections.count()).toBe(4);
    expect(disconnected).toEqual([]);
  });

  it('give way to newer ones of their address, the one with the oldest message first', () => {
    const { clock, connections, admit, disconnected } = setUp();
    const { session } = admit('a');
    admit('b');
    clock.advance(6 * SECOND);
    admit('c');
    connections.complete(session);
    clock.advance(6 * SECOND);
    expect(admit('d').refusal).toBeNull();
    expect(admit('e').refusal).toBeNull();
    expect(disconnected).toEqual(['b', 'a']);
  });

  it('give way in spite of commands that complete no message', () => {
    const { clock, connections, admit, disconnected } = setUp();
    const { session } = admit('a');
    clock.advance(SECOND);
    for (const id of ['b', 'c']) admit(id);
    clock.advance(6 * SECOND);
    connections.begin(session);
    connections.enter(session, 'idle');
    expect(admit('d').refusal).toBeNull();
    expect(disconnected).toEqual(['a']);
  });

  it('that wait for a reply never give way', () => {
    const { clock, connections, admit } = setUp();
    for (const id of ['a', 'b', 'c']) connections.enter(admit(id).session, 'processing');
    clock.advance(HOUR);
    expect(admit('d').refusal).not.toBeNull();
  });

  it('of the address with the most connections give way when all slots are taken', () => {
    const { clock, admit, disconnected } = setUp();
    for (const id of ['a', 'b', 'c']) admit(id, '192.0.2.1');
    for (const id of ['d', 'e']) admit(id, '192.0.2.2');
    admit('f', '192.0.2.3');
    expect(admit('g', '192.0.2.4').refusal).toMatchObject({ responseCode: 421 });
    clock.advance(6 * SECOND);
    expect(admit('h', '192.0.2.4').refusal).toBeNull();
    expect(disconnected).toEqual(['a']);
  });

  it('of a network above its fair share give way when all slots are taken', () => {
    const { clock, admit, disconnected } = setUp();
    // Two addresses of one /24, and others that have a slot or two each.
    for (const id of ['a', 'b']) admit(id, '192.0.2.1');
    for (const id of ['c', 'd']) admit(id, '192.0.2.2');
    admit('e', '198.51.100.1');
    admit('f', '203.0.113.1');
    clock.advance(6 * SECOND);
    expect(admit('g', '100.64.0.1').refusal).toBeNull();
    expect(admit('h', '100.64.1.1').refusal).toBeNull();
    expect(disconnected).toEqual(['a', 'c']);
  });

  it('of a network above its fair share give way even when they are always new', () => {
    const { connections, admit, disconnected } = setUp();
    for (const id of ['a', 'b', 'c']) admit(id, '192.0.2.1');
    const { session } = admit('d', '192.0.2.2');
    connections.complete(session);
    for (const id of ['e', 'f']) admit(id, '192.0.2.2');
    for (const n of [1, 2, 3]) expect(admit(`new${n}`, `10.0.${n}.1`).refusal).toBeNull();
    expect(disconnected).toEqual(['a', 'b', 'e']);
  });

  it('of a network above its fair share take no slot from a smaller one', () => {
    const { clock, admit, disconnected } = setUp();
    for (const id of ['a', 'b']) admit(id, '192.0.2.1');
    for (const id of ['c', 'd']) admit(id, '192.0.2.2');
    for (const id of ['e', 'f']) admit(id, '198.51.100.1');
    clock.advance(HOUR);
    expect(admit('g', '192.0.2.3').refusal).toBeNull();
    expect(admit('h', '192.0.2.3').refusal).toBeNull();
    expect(disconnected).toEqual(['a', 'c']);
  });

  it('with recent messages keep their slots, however many they are', () => {
    const { clock, connections, admit, disconnected } = setUp();
    const busy = ['a', 'b', 'c'].map((id) => admit(id, '192.0.2.1').session);
    for (const id of ['d', 'e', 'f']) admit(id, `198.51.100.${id.charCodeAt(0)}`);
    clock.advance(31 * SECOND);
    for (const session of busy) connections.complete(session);
    for (const id of ['g', 'h']) expect(admit(id, '203.0.113.1').refusal).toBeNull();
    expect(disconnected).toEqual(['d', 'e']);
    // Now its network would have more than its fair share.
    expect(admit('i', '203.0.113.1').refusal).toMatchObject({ responseCode: 421 });
  });

  it('of many small networks give way after half a minute without a message', () => {
    const { clock, connections, admit, disconnected } = setUp();
    const sessions = [1, 2, 3, 4, 5, 6].map((n) => admit(`s${n}`, `10.0.${n}.1`).session);
    clock.advance(20 * SECOND);
    expect(admit('early', '10.0.7.1').refusal).toMatchObject({ responseCode: 421 });
    const [first] = sessions;
    if (first !== undefined) connections.complete(first);
    clock.advance(15 * SECOND);
    expect(admit('late', '10.0.7.1').refusal).toBeNull();
    expect(disconnected).toEqual(['s2']);
  });

  it.each([
    ['one IPv6 network is one address', '2001:db8:0:1::1', '2001:db8:0:1::2', 0],
    ['another network is another', '2001:db8:0:1::1', '2001:db8:0:2::1', 1],
  ])('%s', (_, first, second, admitted) => {
    const { connections, admit } = setUp();
    for (const id of ['a', 'b', 'c']) admit(id, first);
    admit('d', second);
    expect(connections.count()).toBe(3 + admitted);
  });

  it('that were closed are not counted', () => {
    const { connections, admit } = setUp();
    const sessions = ['a', 'b', 'c'].map((id) => admit(id).session);
    for (const session of sessions) connections.remove(session);
    expect(connections.count()).toBe(0);
    expect(admit('d').refusal).toBeNull();
  });

  it('have a limited number of mails', () => {
    const { connections, admit } = setUp();
    const { session } = admit('a');
    expect([connections.begin(session), connections.begin(session)]).toEqual([null, null]);
    expect(connections.begin(session)).toMatchObject({ responseCode: 421 });
  });
});

describe('the sweep', () => {
  it.each([
    ['a mail that takes too long', 'mail', 11 * MINUTE, true],
    ['a mail within its time limit', 'mail', 9 * MINUTE, false],
    ['a mail that is being processed', 'processing', 3 * HOUR, false],
    ['a connection that takes too long', 'idle', 2 * HOUR + SECOND, true],
    ['an idle connection', 'idle', HOUR, false],
  ] as const)('checks %s (%s for %i ms): ended %s', (_, phase, ms, swept) => {
    const { clock, connections, admit, disconnected } = setUp();
    const { session } = admit('a');
    if (phase === 'mail') connections.begin(session);
    else connections.enter(session, phase);
    clock.advance(ms);
    connections.sweep();
    expect(disconnected).toEqual(swept ? ['a'] : []);
  });
});

describe('draining', () => {
  it('ends idle connections immediately and others when they are idle', () => {
    const { connections, admit, disconnected } = setUp();
    const { session } = admit('a');
    admit('b');
    connections.begin(session);
    connections.drain();
    expect(disconnected).toEqual(['b']);
    connections.enter(session, 'processing');
    connections.enter(session, 'idle');
    expect(disconnected).toEqual(['b', 'a']);
  });
});
