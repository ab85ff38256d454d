import { describe, expect, it } from 'vitest';
import { createAuthority } from '../../support/certificates.ts';
import { type SocksOptions, startSocksServer } from '../../support/socks-server.ts';
import { CLOSED_ADDRESS, client, deliver, host, job, sink } from './setup.ts';

const MANY = { messagesPerConnection: 10, idleMs: 10_000 };

/** A job for the sink whose connections lead through a proxy. */
async function throughProxy(options: SocksOptions, login: { user?: string; password?: string } = {}) {
  const to = await sink();
  const proxy = await startSocksServer(options);
  const egress = { hostname: 'mail.test', proxy: { host: proxy.host, port: proxy.port, ...login } };
  return { to, proxy, egress, work: job(to, { egress }) };
}

describe('a delivery through a SOCKS5 proxy', () => {
  it('passes the address to the proxy, never a name, and records the address from which the proxy connects', async () => {
    const { to, proxy, work } = await throughProxy({ bound: '198.51.100.7' });
    const report = await deliver(client(), work);
    expect(report).toMatchObject({ conclusion: 'replied', reply: { code: 250 } });
    expect(report.sessions[0]?.localAddress).toBe('198.51.100.7');
    expect(proxy.requests).toEqual([{ login: null, type: 1, destination: `127.0.0.1:${to.port}` }]);
    expect(to.count).toBe(1);
  });

  it('logs in, uses TLS over the proxy, and reuses the connection', async () => {
    const authority = createAuthority();
    const to = await sink({ tls: authority.issue(['mx1.example.test']) });
    const proxy = await startSocksServer({ login: 'postrider:secret' });
    const egress = {
      hostname: 'mail.test',
      proxy: { host: proxy.host, port: proxy.port, user: 'postrider', password: 'secret' },
    };
    const own = client({}, { authorities: [authority.cert] });
    for (let n = 0; n < 2; n++) {
      const report = await deliver(own, job(to, { egress, tls: 'verified', ...MANY }));
      expect(report.sessions[0]).toMatchObject({ tls: { verified: true }, reply: { code: 250 } });
    }
    expect(proxy.requests.map(({ login }) => login)).toEqual(['postrider:secret']);
    expect(to.count).toBe(2);
  });

  it('opens another connection for another proxy', async () => {
    const { to, egress } = await throughProxy({});
    const other = await startSocksServer();
    const own = client();
    await deliver(own, job(to, { egress, ...MANY }));
    await deliver(
      own,
      job(to, { egress: { ...egress, proxy: { host: other.host, port: other.port } }, ...MANY }),
    );
    expect(other.requests).toHaveLength(1);
    expect(to.count).toBe(2);
  });
});

describe('a failure of the proxy is a fault of this side', () => {
  it.each<[string, SocksOptions, RegExp]>([
    ['wrong password', { login: 'postrider:other' }, /rejected the user or password/],
    ['rules', { code: 2 }, /its rules do not allow the connection/],
    ['general failure', { code: 1 }, /general failure/],
    ['unsupported address type', { code: 8 }, /does not support this kind of address/],
    ['closed connection', { closes: true }, /^proxy 127\.0\.0\.1:\d+: /],
    ['another protocol', { garbage: Buffer.from('220 mail.example ESMTP\r\n') }, /^proxy 127\.0\.0\.1:\d+: /],
  ])('%s', async (_, options, error) => {
    const { to, work } = await throughProxy(options, { user: 'postrider', password: 'secret' });
    const report = await deliver(client(), work);
    expect(report).toMatchObject({ conclusion: 'egress-failed', reply: null });
    expect(report.sessions).toHaveLength(1);
    expect(report.sessions[0]?.error).toMatch(error);
    expect(to.count).toBe(0);
  });

  it.each(['greeting', 'login'] as const)('no answer to the %s', async (silentAt) => {
    const { work } = await throughProxy(
      { silentAt, ...(silentAt === 'login' ? { login: 'a:b' } : {}) },
      { user: 'a', password: 'b' },
    );
    const report = await deliver(client({ connect: 100 }), work);
    expect(report.conclusion).toBe('egress-failed');
    expect(report.sessions[0]?.error).toMatch(/^proxy 127\.0\.0\.1:\d+: timed out after 100 ms/);
  });

  it('no proxy: nothing listens', async () => {
    const to = await sink();
    const egress = { hostname: 'mail.test', proxy: { host: CLOSED_ADDRESS, port: to.port } };
    const report = await deliver(client(), job(to, { egress }));
    expect(report.conclusion).toBe('egress-failed');
    expect(report.sessions[0]?.error).toBe(`proxy ${CLOSED_ADDRESS}:${to.port}: connection refused`);
  });

  it('an address that no interface of this machine has', async () => {
    const to = await sink();
    const report = await deliver(
      client(),
      job(to, { egress: { hostname: 'mail.test', address: '192.0.2.77' } }),
    );
    expect(report).toMatchObject({ conclusion: 'egress-failed' });
    expect(report.sessions[0]?.error).toBe('local address 192.0.2.77 cannot be used');
  });
});

describe('what the proxy reports of the destination is not a fault of this side', () => {
  it.each([
    [3, /^network unreachable \(reported by proxy/],
    [4, /^no route to the host, or no answer \(reported/],
    [5, /^connection refused \(reported/],
    [6, /^connection timed out \(reported/],
  ])('code %d', async (code, error) => {
    const { work } = await throughProxy({ code });
    const report = await deliver(client(), work);
    expect(report.conclusion).toBe('unreachable');
    expect(report.sessions[0]?.error).toMatch(error);
  });

  it('a proxy that waits for the destination', async () => {
    const { work } = await throughProxy({ silentAt: 'connect' });
    const report = await deliver(client({ connect: 2000 }), work);
    expect(report.conclusion).toBe('unreachable');
    expect(report.sessions[0]?.error).toMatch(/^timed out after 2 s .* \(through proxy 127/);
  });

  it('tries the next address of the host', async () => {
    const { to, work } = await throughProxy({});
    const report = await deliver(client(), {
      ...work,
      hosts: [host('mx1.example.test', CLOSED_ADDRESS, to.host)],
    });
    expect(report.sessions.map(({ error }) => error)).toEqual([
      expect.stringMatching(/^connection refused \(reported/),
      null,
    ]);
    expect(to.count).toBe(1);
  });
});

it('is ended by a stop of the worker', async () => {
  const { proxy, work } = await throughProxy({ silentAt: 'connect' });
  const own = client();
  const report = deliver(own, work);
  await expect.poll(() => proxy.requests.length).toBe(1);
  own.abort();
  await expect(report).rejects.toThrow('the attempt was aborted');
});
