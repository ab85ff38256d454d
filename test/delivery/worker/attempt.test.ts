import { describe, expect, it } from 'vitest';
import { HAS_IPV6 } from '../../support/ipv6.ts';
import type { SinkOptions } from '../../support/smtp-sink.ts';
import { CLOSED_ADDRESS, client, deliver, host, job, lastError, sink, sinks, summary } from './setup.ts';

const GREYLISTS: SinkOptions = { script: { rcpt: '451 4.7.1 greylisted' } };
const WILLING: SinkOptions = {};

describe('an attempt over several hosts', () => {
  /** The behavior of the first host, and whether the second, which accepts, is tried. */
  const CASES: [name: string, first: SinkOptions, next: boolean][] = [
    ['refuses in its greeting', { script: { greeting: '554 5.7.1 not you' } }, true],
    ['is busy', { script: { greeting: { reply: '421 4.3.2 busy', close: true } } }, true],
    ['drops the connection', { script: { greeting: 'drop' } }, true],
    ['refuses EHLO and HELO', { script: { ehlo: '550 no', helo: '550 no' } }, true],
    ['refuses the sender for now', { script: { mail: '451 4.3.0 later' } }, true],
    ['refuses the sender', { script: { mail: '550 5.7.1 not you' } }, true],
    ['drops at RCPT', { script: { rcpt: 'drop' } }, true],
    ['defers the recipient', GREYLISTS, true],
    ['defers at DATA', { script: { data: '451 4.3.0 later' } }, true],
    ['defers the message', { script: { dot: '451 4.3.0 later' } }, true],
    ['ends the session after the message with 421', { script: { dot: '421 4.3.0 restarting' } }, true],
    ['refuses the recipient', { script: { rcpt: '550 5.1.1 nobody' } }, false],
    ['refuses DATA', { script: { data: '554 5.5.1 no' } }, false],
    ['refuses the message', { script: { dot: '554 5.7.1 spam' } }, false],
    ['is lost after the final dot', { script: { dot: 'drop' } }, false],
    ['talks nonsense after the final dot', { script: { dot: 'hm' } }, false],
    ['takes the message', WILLING, false],
  ];

  it.each(CASES)('the first host %s; the second is tried: %3$s', async (_, first, next) => {
    const [one, two] = await sinks(first, WILLING);
    const report = await deliver(client({ trailing: 100 }), job([one!, two!]));
    expect(two?.count).toBe(next ? 1 : 0);
    expect(two?.sessions).toHaveLength(next ? 1 : 0);
    expect(report.sessions.map(({ host }) => host)).toEqual(
      next ? ['mx1.example.test', 'mx2.example.test'] : ['mx1.example.test'],
    );
    if (next) expect(summary(report)).toBe('replied dot 250');
  });

  it('tries one further host after a deferral; the second reply decides', async () => {
    const all = await sinks(GREYLISTS, { script: { rcpt: '450 4.2.0 me too' } }, WILLING);
    const report = await deliver(client(), job(all));
    expect(report).toMatchObject({ conclusion: 'replied', phase: 'rcpt', reply: { text: 'me too' } });
    expect(all[2]?.sessions).toHaveLength(0);
  });

  it('has at most two sessions that reach MAIL', async () => {
    const all = await sinks({ script: { mail: '550 5.7.1 no' } }, { script: { mail: 'drop' } }, WILLING);
    expect(summary(await deliver(client(), job(all)))).toBe('replied mail 550');
    expect(all[2]?.sessions).toHaveLength(0);
  });

  it('does not count sessions that end before MAIL', async () => {
    const closed: SinkOptions = { script: { greeting: '554 5.3.2 closed' } };
    const all = await sinks(closed, closed, closed, closed, WILLING);
    expect(summary(await deliver(client(), job(all)))).toBe('replied dot 250');
  });

  it('tries at most five hosts', async () => {
    const closed: SinkOptions = { script: { greeting: '554 5.3.2 closed' } };
    const all = await sinks(closed, closed, closed, closed, closed, WILLING);
    const report = await deliver(client(), job(all));
    expect(summary(report)).toBe('replied greeting 554');
    expect(report.sessions).toHaveLength(5);
  });

  it('sends QUIT before it tries the next host', async () => {
    const [one, two] = await sinks(GREYLISTS, WILLING);
    await deliver(client(), job([one!, two!]));
    await expect.poll(() => one?.sessions[0]?.commands.at(-1)).toBe('QUIT');
  });
});

describe('the deciding result when no host accepts', () => {
  const BLOCKS: SinkOptions = { script: { mail: '550 5.7.1 blocked' } };
  const BUSY: SinkOptions = { script: { greeting: { reply: '421 4.3.2 busy', close: true } } };
  const DROPS: SinkOptions = { script: { greeting: 'drop' } };
  const CASES: [name: string, first: SinkOptions, second: SinkOptions, summary: string][] = [
    ['a deferral before a dropped connection', GREYLISTS, DROPS, 'replied rcpt 451'],
    ['a deferral after a dropped connection', DROPS, GREYLISTS, 'replied rcpt 451'],
    ['a deferral before a block of the sender', GREYLISTS, BLOCKS, 'replied rcpt 451'],
    ['a deferral after a block of the sender', BLOCKS, GREYLISTS, 'replied rcpt 451'],
    ['a 421 before a block', BUSY, BLOCKS, 'unreachable greeting 421'],
    ['a 421 after a block', BLOCKS, BUSY, 'unreachable greeting 421'],
    ['a block, not a dropped connection', BLOCKS, DROPS, 'replied mail 550'],
    ['a dropped connection of the preferred host, not a block', DROPS, BLOCKS, 'unreachable greeting'],
    ['the later of two deferrals', GREYLISTS, { script: { rcpt: '452 4.2.2 full' } }, 'replied rcpt 452'],
  ];
  it.each(CASES)('%s', async (_, first, second, expected) => {
    expect(summary(await deliver(client(), job(await sinks(first, second))))).toBe(expected);
  });
});

describe('addresses', () => {
  it('tries the second address of a host when the first cannot be reached', async () => {
    const to = await sink();
    const report = await deliver(
      client(),
      job(to, { hosts: [host('mx', CLOSED_ADDRESS, to.host, '127.0.0.98')] }),
    );
    expect(summary(report)).toBe('replied dot 250');
    expect(report.sessions).toMatchObject([
      { host: 'mx', address: CLOSED_ADDRESS, phase: 'connect', reply: null, error: 'connection refused' },
      { host: 'mx', address: to.host, phase: 'dot', error: null },
    ]);
  });

  it('tries the next address when the source address of the other version of IP cannot be used', async () => {
    const to = await sink();
    const egress = { hostname: 'out.example.org', address: '127.0.0.1', address6: '2001:db8::1' };
    const hosts = [host('mx', '2001:db8::25', to.host)];
    const report = await deliver(client(), job(to, { hosts, egress }));
    expect(summary(report)).toBe('replied dot 250');
    expect(report.sessions.map(({ address }) => address)).toEqual(['2001:db8::25', to.host]);
  });

  it('tries the next host, not the next address, after a connection', async () => {
    const [one, two, three] = await sinks({ script: { greeting: '421 busy' } }, WILLING, WILLING);
    const hosts = [host('a', one!.host, two!.host), host('b', three!.host)];
    const report = await deliver(client(), job(one!, { hosts }));
    expect(report.sessions.map(({ address }) => address)).toEqual([one!.host, three!.host]);
  });

  it('tries at most two addresses of a host', async () => {
    const to = await sink();
    const hosts = [host('a', CLOSED_ADDRESS, '127.0.0.98', to.host)];
    const report = await deliver(client(), job(to, { hosts }));
    expect(summary(report)).toBe('unreachable connect');
    expect(report.sessions).toHaveLength(2);
  });

  it('uses no IPv6 address without an IPv6 source address', async () => {
    const to = await sink();
    const hosts = [host('six', '::1'), host('both', '::1', '::1', to.host)];
    const report = await deliver(client(), job(to, { hosts }));
    expect(summary(report)).toBe('replied dot 250');
    expect(report.sessions).toMatchObject([
      { host: 'six', address: '', error: 'six has only IPv6 addresses, and the source address has none' },
      { host: 'both', address: to.host },
    ]);
  });

  it('names the family that a proxy with an IPv6 address alone does not reach', async () => {
    const to = await sink();
    const proxy = { host: '127.0.0.1', port: 1080 };
    const egress = { hostname: 'client.test', address6: '2001:db8::1', proxy };
    const report = await deliver(client(), job(to, { egress, hosts: [host('four', '192.0.2.1')] }));
    expect(report.sessions).toMatchObject([
      { host: 'four', address: '', error: 'four has only IPv4 addresses, and the source address has none' },
    ]);
  });

  it.skipIf(!HAS_IPV6)('connects to IPv6 from the IPv6 source address', async () => {
    const to = await sink({ host: '::1' });
    const egress = { hostname: 'out.example.org', address: '127.0.0.7', address6: '::1' };
    const report = await deliver(client(), job(to, { egress }));
    expect(summary(report)).toBe('replied dot 250');
    expect(report.sessions).toMatchObject([{ address: '::1', localAddress: '::1' }]);
  });

  it('connects from the source address of the egress', async () => {
    const to = await sink();
    const egress = { hostname: 'out2.example.org', address: '127.0.0.7' };
    const report = await deliver(client(), job(to, { egress }));
    expect(report.sessions[0]?.localAddress).toBe('127.0.0.7');
    expect(to.sessions[0]).toMatchObject({ remoteAddress: '127.0.0.7', hello: 'out2.example.org' });
  });

  it('reports a source address that this machine does not have', async () => {
    const to = await sink();
    const egress = { hostname: 'out.example.org', address: '192.0.2.1' };
    const report = await deliver(client(), job(to, { egress }));
    expect(lastError(report)).toBe('local address 192.0.2.1 cannot be used');
  });

  it('reports a domain without any usable host', async () => {
    const to = await sink();
    expect(await deliver(client(), job(to, { hosts: [] }))).toMatchObject({
      conclusion: 'unreachable',
      sessions: [],
    });
    const report = await deliver(client(), job(to, { hosts: [host('mx')] }));
    expect(summary(report)).toBe('unreachable connect');
    expect(lastError(report)).toBe('mx has no usable address');
  });
});
