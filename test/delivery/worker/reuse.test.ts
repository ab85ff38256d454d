import { describe, expect, it } from 'vitest';
import type { DeliveryJob } from '../../../src/delivery/worker/protocol.ts';
import { CLOSED_ADDRESS, client, deliver, host, job, sink, sinks, summary } from './setup.ts';

describe('the idle connection of a slot', () => {
  it('is reused for the next job without RSET', async () => {
    const to = await sink();
    const by = client();
    for (let round = 0; round < 3; round++)
      expect(summary(await deliver(by, job(to)))).toBe('replied dot 250');
    expect(to.sessions).toHaveLength(1);
    expect(to.sessions[0]?.commands.map((line) => line.slice(0, 4))).toEqual([
      'EHLO',
      ...Array.from({ length: 3 }, () => ['MAIL', 'RCPT', 'DATA']).flat(),
    ]);
  });

  it('is not used for another slot', async () => {
    const to = await sink();
    const by = client();
    await deliver(by, job(to, { slot: 'a' }));
    await deliver(by, job(to, { slot: 'b' }));
    expect(to.sessions).toHaveLength(2);
    expect(to.open).toBe(2);
  });

  it.each(['mail', 'rcpt', 'data'] as const)('is reset after a refusal at %s', async (phase) => {
    const to = await sink({ script: { [phase]: '550 5.7.1 no' } });
    const by = client();
    await deliver(by, job(to));
    to.program({ script: {} });
    expect(summary(await deliver(by, job(to)))).toBe('replied dot 250');
    expect(to.sessions).toHaveLength(1);
    const commands = to.sessions[0]?.commands.map((line) => line.slice(0, 4)) ?? [];
    expect(commands.slice(-4)).toEqual(['RSET', 'MAIL', 'RCPT', 'DATA']);
    expect(to.sessions[0]?.pipelined).toBe(2 + 3);
  });

  it('is reset command by command without pipelining', async () => {
    const to = await sink({ keywords: [], script: { rcpt: '550 5.1.1 no' } });
    const by = client();
    await deliver(by, job(to));
    to.program({ script: {} });
    expect(summary(await deliver(by, job(to)))).toBe('replied dot 250');
    expect(to.sessions).toMatchObject([{ pipelined: 0 }]);
  });

  it('is reset after a refused message, whose transaction Postfix does not end', async () => {
    const to = await sink({ script: { dot: '554 5.7.1 spam' } });
    const by = client();
    await deliver(by, job(to));
    await deliver(by, job(to));
    expect(to.sessions.map(({ verbs }) => verbs.join(' '))).toEqual([
      'EHLO MAIL RCPT DATA . RSET MAIL RCPT DATA .',
    ]);
  });

  it('is closed after messagesPerConnection transactions', async () => {
    const to = await sink();
    const by = client();
    for (let round = 0; round < 5; round++) await deliver(by, job(to, { messagesPerConnection: 2 }));
    expect(to.sessions.map(({ messages }) => messages)).toEqual([2, 2, 1]);
    await expect
      .poll(() => to.sessions.map(({ commands }) => commands.at(-1)))
      .toEqual(['QUIT', 'QUIT', 'DATA']);
  });

  it('is closed with QUIT when it was idle for too long', async () => {
    const to = await sink();
    await deliver(client(), job(to, { idleMs: 20 }));
    await expect.poll(() => to.sessions[0]?.commands.at(-1)).toBe('QUIT');
    await expect.poll(() => to.open).toBe(0);
  });

  it('is closed immediately with idleMs 0', async () => {
    const to = await sink();
    await deliver(client(), job(to, { idleMs: 0 }));
    await expect.poll(() => to.open).toBe(0);
  });

  const OTHERS: [what: string, changes: Partial<DeliveryJob>][] = [
    ['another EHLO name', { egress: { hostname: 'other.example.org' } }],
    ['another source address', { egress: { hostname: 'out.example.org', address: '127.0.0.8' } }],
    ['another TLS mode', { tls: 'none' }],
    ['a login', { auth: { user: 'u', password: 'p', allowUnverified: true } }],
    ['a host of another name', { hosts: [host('elsewhere.example.test', '127.0.0.1')] }],
    ['another address of the host', { hosts: [host('mx1.example.test', '127.0.0.2')] }],
  ];
  it.each(OTHERS)('is closed when the next job needs %s', async (_, changes) => {
    const [one, two] = await sinks({ keywords: ['AUTH PLAIN'] }, {});
    const by = client();
    await deliver(by, job(one!));
    expect(summary(await deliver(by, job(one!, changes)))).toBe('replied dot 250');
    expect(one!.sessions.length + two!.sessions.length).toBe(2);
    await expect.poll(() => one?.sessions[0]?.closed).toBe(true);
  });

  it('is closed when the next job logs in as another user', async () => {
    const to = await sink({ keywords: ['AUTH PLAIN'] });
    const by = client();
    for (const password of ['old', 'new', 'new']) {
      await deliver(by, job(to, { auth: { user: 'relay', password, allowUnverified: true } }));
    }
    expect(to.sessions.map(({ login, messages }) => [login, messages])).toEqual([
      ['relay:old', 1],
      ['relay:new', 2],
    ]);
  });

  it('is reused for a job that has the same hosts in another order', async () => {
    const [one, two] = await sinks({}, {});
    const by = client();
    const hosts = [host('a', one!.host), host('b', two!.host)];
    await deliver(by, job(one!, { hosts }));
    await deliver(by, job(one!, { hosts: hosts.toReversed() }));
    expect([one?.count, two?.count]).toEqual([2, 0]);
  });

  it('is followed by the next host when its host defers, which is not tried twice', async () => {
    const [one, two] = await sinks({}, {});
    const by = client();
    await deliver(by, job([one!, two!]));
    one?.program({ script: { rcpt: '451 4.7.1 greylisted' } });
    const report = await deliver(by, job([one!, two!]));
    expect(summary(report)).toBe('replied dot 250');
    expect(report.sessions.map(({ host }) => host)).toEqual(['mx1.example.test', 'mx2.example.test']);
    expect(one?.sessions).toHaveLength(1);
  });
});

describe('an idle connection that is dead', () => {
  it('is replaced without a record when the server closed it while idle', async () => {
    const to = await sink();
    const by = client();
    await deliver(by, job(to));
    to.disconnect();
    await expect.poll(() => by.open.size).toBe(0);
    expect((await deliver(by, job(to))).sessions).toHaveLength(1);
    expect(to.count).toBe(2);
  });

  it('is closed as soon as the server sends anything while idle', async () => {
    const to = await sink();
    const by = client();
    await deliver(by, job(to));
    to.send('421 4.4.2 idle for too long\r\n');
    await expect.poll(() => to.sessions[0]?.commands.at(-1)).toBe('QUIT');
    await expect.poll(() => by.open.size).toBe(0);
  });

  it('is closed when the server has sent unsolicited replies', async () => {
    const to = await sink({ script: { dot: '250 2.0.0 taken\r\n421 4.3.2 and now go' } });
    const by = client();
    expect(summary(await deliver(by, job(to)))).toBe('replied dot 250');
    await expect.poll(() => by.open.size).toBe(0);
  });

  it.each([
    ['closes', 'drop'],
    ['resets', 'reset'],
    ['ends the session with 421', { reply: '421 4.4.2 idle for too long', close: true as const }],
  ])('is replaced without a failed session when the reply to MAIL is: %s', async (_, mail) => {
    const to = await sink();
    const by = client();
    await deliver(by, job(to));
    to.program({ script: { mail: (session) => (session.number === 1 ? mail : undefined) } });
    const report = await deliver(by, job(to));
    expect(summary(report)).toBe('replied dot 250');
    expect(report.sessions).toMatchObject([{ error: null, phase: 'dot' }]);
    expect(to.sessions).toHaveLength(2);
  });

  it('is replaced by a new connection to its host although a host before it cannot be reached', async () => {
    const to = await sink();
    const by = client();
    const hosts = [host('down.example.test', CLOSED_ADDRESS), host('up.example.test', to.host)];
    await deliver(by, job(to, { hosts }));
    const mail = { reply: '421 4.4.2 idle for too long', close: true as const };
    to.program({ script: { mail: (session) => (session.number === 1 ? mail : undefined) } });
    const report = await deliver(by, job(to, { hosts }));
    expect(summary(report)).toBe('replied dot 250');
    expect(report.sessions).toMatchObject([{ phase: 'connect' }, { host: 'up.example.test', phase: 'dot' }]);
  });

  it('is replaced when the server closes it after RSET', async () => {
    const to = await sink({ script: { rcpt: '550 5.1.1 no' } });
    const by = client();
    await deliver(by, job(to));
    to.program({ script: { rset: 'drop' } });
    expect((await deliver(by, job(to))).sessions).toHaveLength(1);
  });

  it('is replaced when the server refuses RSET', async () => {
    const to = await sink({ script: { rcpt: '550 5.1.1 no' } });
    const by = client();
    await deliver(by, job(to));
    to.program({ script: { rset: '500 5.5.1 what?' } });
    expect(summary(await deliver(by, job(to)))).toBe('replied dot 250');
    expect(to.sessions).toHaveLength(2);
  });

  it('counts as a session after the reply to MAIL', async () => {
    const [one, two] = await sinks({}, {});
    const by = client();
    await deliver(by, job([one!, two!]));
    one?.program({ script: { rcpt: 'drop' } });
    const report = await deliver(by, job([one!, two!]));
    expect(report.sessions).toMatchObject([
      { host: 'mx1.example.test', phase: 'rcpt' },
      { host: 'mx2.example.test' },
    ]);
  });

  it('is never replaced after the final dot', async () => {
    const to = await sink();
    const by = client();
    await deliver(by, job(to));
    to.program({ script: { dot: 'drop' } });
    expect(summary(await deliver(by, job(to)))).toBe('unanswered dot');
    expect(to.sessions).toHaveLength(1);
  });
});
