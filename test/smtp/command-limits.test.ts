import type { SMTPServerSession } from 'smtp-server';
import { describe, expect, it } from 'vitest';
import { MINUTE, SECOND } from '../../src/core/clock.ts';
import { type CommandRates, createCommandLimits, MAX_DELAY_MS } from '../../src/smtp/command-limits.ts';
import { SmtpRejection } from '../../src/smtp/reply.ts';
import { heldClock } from '../support/store.ts';

const MANY = { burst: 1e6, perSecond: 1e6 };
const RATES: CommandRates = {
  connection: MANY,
  block: MANY,
  network: MANY,
  blockTransactions: MANY,
  networkTransactions: MANY,
  unfinished: 1e6,
};

function setUp(changes: Partial<CommandRates>) {
  const clock = heldClock();
  const limits = createCommandLimits(clock, { ...RATES, ...changes });
  const session = (remoteAddress = '192.0.2.1') => ({ remoteAddress }) as unknown as SMTPServerSession;
  /** How many commands run before the first one that is delayed or refused. */
  const free = (of: SMTPServerSession, name = 'RCPT'): number => {
    for (let n = 0; n < 1000; n++) if (limits.command(of, name) !== 0) return n;
    return Infinity;
  };
  return { clock, limits, session, free };
}

describe('commands', () => {
  it('of one connection are delayed to its rate', () => {
    const { limits, session } = setUp({ connection: { burst: 3, perSecond: 2 } });
    const one = session();
    const delays = Array.from({ length: 6 }, () => limits.command(one, 'RCPT'));
    expect(delays).toEqual([0, 0, 0, 500, 1000, 1500]);
    expect(limits.command(session(), 'RCPT')).toBe(0);
  });

  it('run freely again after a pause', () => {
    const { clock, session, free } = setUp({ connection: { burst: 3, perSecond: 2 } });
    const one = session();
    expect(free(one)).toBe(3);
    clock.advance(MINUTE);
    expect(free(one)).toBe(3);
  });

  it.each([
    ['of one address', 'block', '192.0.2.1', '192.0.2.2'],
    ['of one IPv6 /64', 'block', '2001:db8:0:1::1', '2001:db8:0:2::1'],
    ['of one /24', 'network', '192.0.2.200', '192.0.3.1'],
    ['of one IPv6 /48', 'network', '2001:db8:0:ffff::1', '2001:db8:1:1::1'],
  ] as const)('%s count together, whatever the connection', (_, scope, same, other) => {
    const { session, limits, free } = setUp({ [scope]: { burst: 3, perSecond: 1 } });
    const first = scope === 'block' ? same : same.replace('.200', '.1').replace('ffff', '1');
    for (let n = 0; n < 3; n++) expect(limits.command(session(first), 'RCPT')).toBe(0);
    expect(free(session(same))).toBe(0);
    expect(free(session(other))).toBe(3);
  });

  it('end the connection when the delay would be too long, and are not charged then', () => {
    const { clock, limits, session } = setUp({ block: { burst: 1, perSecond: 1 } });
    const verdicts = Array.from({ length: 100 }, () => limits.command(session(), 'RCPT'));
    const delays = verdicts.filter((verdict) => typeof verdict === 'number');
    expect(Math.max(...delays)).toBeLessThanOrEqual(MAX_DELAY_MS + SECOND);
    expect(verdicts.at(-1)).toMatchObject({ responseCode: 421 });
    expect(limits.connect(session())).toMatchObject({ responseCode: 421 });
    // Refused commands are not charged: the address can send again when the tokens of the others have returned.
    clock.advance(12 * SECOND);
    expect(limits.command(session(), 'RCPT')).toBe(0);
  });

  it('cost more with a private key, and nothing for QUIT', () => {
    const { session, free } = setUp({ connection: { burst: 60, perSecond: 1 } });
    expect(free(session(), 'STARTTLS')).toBe(3);
    expect(free(session(), 'AUTH')).toBe(12);
    expect(free(session(), 'QUIT')).toBe(Infinity);
  });

  it('return at most their tokens when a message is completed', () => {
    const { limits, session } = setUp({ block: { burst: 100, perSecond: 1 } });
    // A server that opens a connection with TLS for each message.
    for (let n = 0; n < 1000; n++) {
      const one = session();
      expect(limits.connect(one)).toBeNull();
      for (const name of ['EHLO', 'STARTTLS', 'EHLO', 'MAIL', 'RCPT', 'DATA'])
        expect(limits.command(one, name)).toBe(0);
      limits.complete(one, 1);
      expect(limits.command(one, 'QUIT')).toBe(0);
    }
    // One that hides a flood behind small messages.
    const flood = Array.from({ length: 10 }, () => {
      const one = session();
      const verdicts = ['MAIL', ...Array<string>(90).fill('RCPT'), 'DATA'].map((name) =>
        limits.command(one, name),
      );
      limits.complete(one, 1);
      return verdicts;
    });
    expect(flood.flat().filter((verdict) => verdict !== 0).length).toBeGreaterThan(100);
  });
});

describe('transactions', () => {
  it('that are not completed end the connection', () => {
    const { limits, session } = setUp({ unfinished: 3 });
    const one = session();
    const begin = () => limits.command(one, 'MAIL');
    expect([begin(), begin()]).toEqual([0, 0]);
    limits.complete(one, 1);
    expect([begin(), begin(), begin()]).toEqual([0, 0, 0]);
    expect(begin()).toMatchObject({ responseCode: 421 });
  });

  it.each([
    ['an address', 'blockTransactions', '192.0.2.1', '192.0.2.2'],
    ['a network', 'networkTransactions', '192.0.2.1', '192.0.3.1'],
  ] as const)('of %s are delayed, then refused', (_, scope, address, other) => {
    const { limits, session } = setUp({ [scope]: { burst: 2, perSecond: 1 } });
    const verdicts = Array.from({ length: 20 }, () => limits.command(session(address), 'MAIL'));
    expect(verdicts.slice(0, 4)).toEqual([0, 0, 1000, 2000]);
    expect(verdicts.at(-1)).toBeInstanceOf(SmtpRejection);
    expect(limits.command(session(address), 'NOOP')).toBe(0);
    expect(limits.command(session(other), 'MAIL')).toBe(0);
  });

  it('that are completed are not counted', () => {
    const { limits, session } = setUp({
      unfinished: 2,
      blockTransactions: { burst: 2, perSecond: 0.001 },
      networkTransactions: { burst: 2, perSecond: 0.001 },
    });
    const one = session();
    for (let n = 0; n < 500; n++) {
      expect(limits.command(one, 'MAIL')).toBe(0);
      limits.complete(one, 1);
    }
  });
});
