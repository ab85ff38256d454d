import type { SMTPServerSession } from 'smtp-server';
import { describe, expect, it } from 'vitest';
import { HOUR, MINUTE, SECOND } from '../../src/core/clock.ts';
import { type ConnectionLimits, createConnections } from '../../src/smtp/connections.ts';
import { heldClock } from '../support/store.ts';

const LIMITS: ConnectionLimits = {
  connections: 6,
  perAddress: 3,
  messagesPerConnection: 2,
  transactionMs: 10 * MINUTE,
  connectionMs: 2 * HOUR,
};

function setUp() {
  const clock = heldClock();
  const hungUp: string[] = [];
  const connections = createConnections({
    clock,
    limits: LIMITS,
    hangUp: (session) => void hungUp.push(session.id),
  });
  /** A session as far as connections look at it. */
  const session = (id: string, remoteAddress: string) =>
    ({ id, remoteAddress }) as unknown as SMTPServerSession;
  const admit = (id: string, address = '192.0.2.1') => {
    const made = session(id, address);
    return { session: made, refusal: connections.admit(made) };
  };
  return { clock, connections, hungUp, admit };
}

describe('connections', () => {
  it('of one address are bounded while all of them are fresh', () => {
    const { connections, admit, hungUp } = setUp();
    for (const id of ['a', 'b', 'c']) expect(admit(id).refusal).toBeNull();
    expect(admit('d').refusal).toMatchObject({ responseCode: 421 });
    expect(admit('e', '192.0.2.2').refusal).toBeNull();
    expect(connections.count()).toBe(4);
    expect(hungUp).toEqual([]);
  });

  it('give way to newer ones of their address, the slowest first', () => {
    const { clock, connections, admit, hungUp } = setUp();
    const { session } = admit('a');
    admit('b');
    clock.advance(6 * SECOND);
    admit('c');
    connections.begin(session);
    clock.advance(6 * SECOND);
    expect(admit('d').refusal).toBeNull();
    expect(admit('e').refusal).toBeNull();
    expect(hungUp).toEqual(['b', 'a']);
  });

  it('that wait for our answer never give way', () => {
    const { clock, connections, admit } = setUp();
    for (const id of ['a', 'b', 'c']) connections.enter(admit(id).session, 'ours');
    clock.advance(HOUR);
    expect(admit('d').refusal).not.toBeNull();
  });

  it('of the greediest address make room when all places are taken', () => {
    const { clock, admit, hungUp } = setUp();
    for (const id of ['a', 'b', 'c']) admit(id, '192.0.2.1');
    for (const id of ['d', 'e']) admit(id, '192.0.2.2');
    admit('f', '192.0.2.3');
    expect(admit('g', '192.0.2.4').refusal).toMatchObject({ responseCode: 421 });
    clock.advance(6 * SECOND);
    expect(admit('h', '192.0.2.4').refusal).toBeNull();
    expect(hungUp).toEqual(['a']);
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

  it('that left are not counted', () => {
    const { connections, admit } = setUp();
    const sessions = ['a', 'b', 'c'].map((id) => admit(id).session);
    for (const session of sessions) connections.left(session);
    expect(connections.count()).toBe(0);
    expect(admit('d').refusal).toBeNull();
  });

  it('carry so many mails and no more', () => {
    const { connections, admit } = setUp();
    const { session } = admit('a');
    expect([connections.begin(session), connections.begin(session)]).toEqual([null, null]);
    expect(connections.begin(session)).toMatchObject({ responseCode: 421 });
  });
});

describe('the sweep', () => {
  it.each([
    ['a mail that takes too long', 'mail', 11 * MINUTE, true],
    ['a mail that goes on', 'mail', 9 * MINUTE, false],
    ['our own slowness', 'ours', 3 * HOUR, false],
    ['a connection without end', 'idle', 2 * HOUR + SECOND, true],
    ['an idle connection', 'idle', HOUR, false],
  ] as const)('%s', (_, stage, ms, swept) => {
    const { clock, connections, admit, hungUp } = setUp();
    const { session } = admit('a');
    if (stage === 'mail') connections.begin(session);
    else connections.enter(session, stage);
    clock.advance(ms);
    connections.sweep();
    expect(hungUp).toEqual(swept ? ['a'] : []);
  });
});

describe('at the end', () => {
  it('the idle go at once, the others when they are idle', () => {
    const { connections, admit, hungUp } = setUp();
    const { session } = admit('a');
    admit('b');
    connections.begin(session);
    connections.drain();
    expect(hungUp).toEqual(['b']);
    connections.enter(session, 'ours');
    connections.enter(session, 'idle');
    expect(hungUp).toEqual(['b', 'a']);
  });
});
