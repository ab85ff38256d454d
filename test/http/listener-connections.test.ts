import { EventEmitter, once } from 'node:events';
import type { Server } from 'node:http';
import { connect, Socket } from 'node:net';
import { connect as connectTls, createSecureContext, type SecureContext } from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createHttpConnections, MAX_HANDSHAKES } from '../../src/http/connections.ts';
import { type ContextFor, createListener, type HttpConnectionLimits } from '../../src/http/listener.ts';
import { createAuthority } from '../support/certificates.ts';

const LIMITS: HttpConnectionLimits = {
  headersMs: 60_000,
  requestMs: 60_000,
  keepAliveMs: 60_000,
  checkMs: 50,
  connections: 1000,
  headerBytes: 8192,
  writeStallMs: 60_000,
};
const REQUEST = 'GET / HTTP/1.1\r\nHost: a.example\r\n\r\n';

async function listening(limits: Partial<HttpConnectionLimits>, contextFor?: ContextFor) {
  const listener = createListener('127.0.0.1:0', 'test.listen', { ...LIMITS, ...limits }, contextFor);
  /** Ends the responses to `/wait`. */
  const waiting: (() => void)[] = [];
  listener.server.on('request', (req, res) => {
    if (req.url === '/wait') waiting.push(() => res.end('late'));
    else req.resume().on('end', () => res.end('here'));
  });
  await listener.listen();
  onTestFinished(() => listener.close(0));
  const port = listener.address()?.port ?? 0;
  const open = async (sent: string): Promise<Client> => {
    const socket = connect(port, '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    await once(socket, 'connect');
    return clientOf(socket, sent);
  };
  return { listener, port, open, waiting };
}

interface Client {
  socket: Socket;
  received: () => string;
  isClosed: () => boolean;
}

function clientOf(socket: Socket, sent: string | Buffer): Client {
  let text = '';
  socket.on('data', (chunk) => (text += chunk.toString('latin1')));
  socket.on('error', () => undefined);
  socket.write(sent);
  return { socket, received: () => text, isClosed: () => socket.closed };
}

describe('a full listener', () => {
  it('closes the oldest connection without a complete request for a new one', async () => {
    const { open } = await listening({ connections: 3 });
    const half = [await open('GET / HT'), await open(''), await open('GET / HTTP/1.1\r\nHost: x\r\n')];
    for (let count = 0; count < 3; count++) {
      const client = await open(REQUEST);
      await expect.poll(client.received).toContain('here');
      expect(half.map((each) => each.isClosed()).filter(Boolean)).toHaveLength(count + 1);
      await expect.poll(() => half[count]?.isClosed()).toBe(true);
    }
  });

  it('closes no connection whose request is being handled, and those with an incomplete body last', async () => {
    const { open, waiting } = await listening({ connections: 3 });
    const busy = await open('GET /wait HTTP/1.1\r\nHost: x\r\n\r\n');
    await expect.poll(() => waiting.length).toBe(1);
    const upload = await open('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n12345');
    for (let count = 0; count < 5; count++) await open('GET / HT');
    const client = await open(REQUEST);
    await expect.poll(client.received).toContain('here');
    upload.socket.write('67890');
    await expect.poll(upload.received).toContain('here');
    expect(busy.isClosed()).toBe(false);
    waiting[0]?.();
    await expect.poll(busy.received).toContain('late');
  });

  it('refuses a connection when requests of all others are being handled', async () => {
    const { open, waiting } = await listening({ connections: 2 });
    const busy = [];
    for (let count = 0; count < 2; count++) busy.push(await open('GET /wait HTTP/1.1\r\nHost: x\r\n\r\n'));
    await expect.poll(() => waiting.length).toBe(2);
    const refused = await open(REQUEST);
    await expect.poll(refused.isClosed).toBe(true);
    for (const end of waiting) end();
    for (const client of busy) await expect.poll(client.received).toContain('late');
    const client = await open(REQUEST);
    await expect.poll(client.received).toContain('here');
  });
});

it('counts the connections of the networks of a caller', () => {
  const server = new EventEmitter();
  let accepted = 0;
  server.on('connection', () => accepted++);
  createHttpConnections({ connections: 1000, ofOneCaller: () => 4 }, false).attach(
    // Sound: only its events are used.
    server as Server,
  );
  let port = 0;
  const open = (address: string): Socket => {
    const socket = new Socket();
    Object.defineProperty(socket, 'remoteAddress', { value: address });
    Object.defineProperty(socket, 'remotePort', { value: ++port });
    server.emit('connection', socket);
    return socket;
  };
  const acceptedOf = (addresses: string[]) => {
    const before = accepted;
    for (const address of addresses) open(address);
    return accepted - before;
  };
  const networks = (prefix: string, count: number) =>
    Array.from({ length: count }, (_, index) => `${prefix}${index.toString(16).padStart(2, '0')}::1`);
  // A /64, a /56, a /48.
  expect(acceptedOf(Array.from({ length: 9 }, (_, index) => `2001:db8::${index}`))).toBe(4);
  expect(acceptedOf(networks('2001:db8:1:1', 40))).toBe(8);
  expect(acceptedOf(['00', '01', '02', '03'].flatMap((each) => networks(`2001:db8:2:${each}`, 40)))).toBe(16);
  expect(acceptedOf(Array.from({ length: 9 }, () => '192.0.2.1'))).toBe(4);
  expect(acceptedOf(Array.from({ length: 90 }, (_, index) => `192.0.2.${index + 2}`))).toBe(28);
  expect(acceptedOf(['2001:db8:3::1', '198.51.100.1'])).toBe(2);
});

describe('handshakes', () => {
  const authority = createAuthority();
  const context = createSecureContext(authority.issue(['a.example']));
  /** The first bytes of a ClientHello of 512 bytes. */
  const INCOMPLETE = Buffer.from([0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3]);

  function visit(port: number, host = 'a.example'): Promise<string> {
    const socket = connectTls({ port, host: '127.0.0.1', servername: host, ca: authority.cert });
    onTestFinished(() => void socket.destroy());
    return new Promise((resolve) => {
      socket.once('secureConnect', () => socket.write(REQUEST));
      socket.once('data', (chunk: Buffer) => resolve(chunk.toString('latin1')));
      socket.on('error', (error) => resolve(error.message));
      socket.on('close', () => resolve('closed'));
    });
  }

  it('that are not finished replace the oldest of them, and leave others theirs', async () => {
    const { port, open } = await listening({}, async () => context);
    const clients: Client[] = [];
    for (let count = 0; count < MAX_HANDSHAKES + 50; count++) {
      const client = await open('');
      client.socket.write(INCOMPLETE);
      clients.push(client);
    }
    expect(await visit(port)).toContain('here');
    const openClients = () => clients.filter((client) => !client.isClosed()).length;
    await expect.poll(openClients).toBeLessThanOrEqual(MAX_HANDSHAKES);
    expect(clients[0]?.isClosed()).toBe(true);
    expect(clients.at(-1)?.isClosed()).toBe(false);
  });

  it('end after a time in which no certificate is obtained', async () => {
    const orders: ((ordered: SecureContext) => void)[] = [];
    const { port, open } = await listening(
      { handshakeMs: 300 },
      () => new Promise((resolve) => orders.push(resolve)),
    );
    const visitor = visit(port);
    await expect.poll(() => orders.length).toBe(1);
    const slow = await open('');
    slow.socket.write(INCOMPLETE);
    await expect.poll(slow.isClosed, { timeout: 15_000 }).toBe(true);
    orders[0]?.(context);
    expect(await visitor).toContain('here');
  });
});
