import { connect, type Socket } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { createListener, type HttpConnectionLimits } from '../../src/http/listener.ts';

const LIMITS: HttpConnectionLimits = {
  headersMs: 10_000,
  requestMs: 10_000,
  keepAliveMs: 10_000,
  checkMs: 1000,
  connections: 100,
  headerBytes: 8192,
  writeStallMs: 10_000,
};

async function listening(limits: Partial<HttpConnectionLimits>) {
  return (await started(limits)).port;
}

async function started(limits: Partial<HttpConnectionLimits>) {
  const listener = createListener('127.0.0.1:0', 'test.listen', { ...LIMITS, ...limits });
  listener.server.on('request', (_, res) => res.end('here'));
  await listener.listen();
  onTestFinished(() => listener.close(0));
  return { listener, port: listener.address()?.port ?? 0 };
}

/** Sends a request and keeps the connection open. Returns whether there was a response. */
function tryConnection(port: number): Promise<{ answered: boolean; socket: Socket }> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'));
    onTestFinished(() => void socket.destroy());
    socket.once('data', () => resolve({ answered: true, socket }));
    socket.once('close', () => resolve({ answered: false, socket }));
    socket.on('error', () => undefined);
  });
}

it('limits the connections of one client', async () => {
  const port = await listening({ ofOneCaller: () => 2 });
  const first = await tryConnection(port);
  expect([
    first.answered,
    (await tryConnection(port)).answered,
    (await tryConnection(port)).answered,
  ]).toEqual([true, true, false]);
  await new Promise((resolve) => first.socket.once('close', resolve).end());
  await expect.poll(async () => (await tryConnection(port)).answered).toBe(true);
});

it('does not count trusted clients', async () => {
  const port = await listening({
    ofOneCaller: (address) => (address === '127.0.0.1' ? Number.POSITIVE_INFINITY : 1),
  });
  const answered = [];
  for (let n = 0; n < 5; n++) answered.push((await tryConnection(port)).answered);
  expect(answered).toEqual([true, true, true, true, true]);
});

it('names the setting of an invalid or used address', async () => {
  const port = await listening({});
  await expect(createListener(`127.0.0.1:${port}`, 'test.listen', LIMITS).listen()).rejects.toThrow(
    `test.listen: port ${port} of 127.0.0.1 is in use by another program. Stop that program`,
  );
  await expect(createListener('nowhere', 'test.listen', LIMITS).listen()).rejects.toThrow(
    'test.listen: "nowhere"',
  );
});

it('continues when a connection cannot be accepted', async () => {
  const { listener, port } = await started({});
  // What Node emits when accept() fails.
  listener.server.emit('error', Object.assign(new Error('accept ENFILE'), { code: 'ENFILE' }));
  expect((await tryConnection(port)).answered).toBe(true);
});
