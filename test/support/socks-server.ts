import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

/** A programmable SOCKS5 proxy (RFC 1928, RFC 1929). */
export interface SocksServer {
  host: string;
  port: number;
  /** The requests: `user:password` or null, address type, address and port. */
  requests: { login: string | null; type: number; destination: string }[];
}

export interface SocksOptions {
  /** Required login `user:password`. */
  login?: string;
  /** Code of the reply to CONNECT (RFC 1928 §6) instead of a connection. */
  code?: number;
  /** The request that it does not answer. */
  silentAt?: 'greeting' | 'login' | 'connect';
  /** Closes the connection in place of the answer to the greeting. */
  closes?: boolean;
  /** What it sends instead of the answer to the greeting. */
  garbage?: Buffer;
  /** The address that it reports (IPv4). */
  bound?: string;
}

const VERSION = 5;
const CONNECTION_REFUSED = 5;

export async function startSocksServer(options: SocksOptions = {}): Promise<SocksServer> {
  const requests: SocksServer['requests'] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket)).on('error', () => {});
    void serve(socket, options, requests, sockets);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  // An IP socket has an address of this form.
  const { port } = server.address() as AddressInfo;
  return { host: '127.0.0.1', port, requests };
}

async function serve(
  socket: Socket,
  options: SocksOptions,
  requests: SocksServer['requests'],
  sockets: Set<Socket>,
): Promise<void> {
  const read = reader(socket);
  const [, methods = 0] = await read(2);
  await read(methods);
  if (options.silentAt === 'greeting') return;
  if (options.closes === true) {
    socket.end();
    return;
  }
  if (options.garbage !== undefined) {
    socket.write(options.garbage);
    return;
  }
  socket.write(Buffer.from([VERSION, options.login === undefined ? 0 : 2]));
  let login: string | null = null;
  if (options.login !== undefined) {
    const [, userLength = 0] = await read(2);
    const user = (await read(userLength)).toString();
    const [passwordLength = 0] = await read(1);
    login = `${user}:${(await read(passwordLength)).toString()}`;
    if (options.silentAt === 'login') return;
    socket.write(Buffer.from([1, login === options.login ? 0 : 1]));
    if (login !== options.login) return;
  }
  const [, , , type = 0] = await read(4);
  const address = await read(type === 1 ? 4 : 16);
  const port = (await read(2)).readUInt16BE();
  const host = type === 1 ? address.join('.') : address.toString('hex');
  requests.push({ login, type, destination: `${host}:${port}` });
  if (options.silentAt === 'connect') return;
  const reply = (code: number) =>
    Buffer.from([VERSION, code, 0, 1, ...(options.bound ?? '0.0.0.0').split('.').map(Number), 0, 0]);
  if (options.code !== undefined) {
    socket.end(reply(options.code));
    return;
  }
  const upstream = connect({ host, port });
  sockets.add(upstream);
  upstream.on('error', () => {
    if (upstream.pending) socket.end(reply(CONNECTION_REFUSED));
    else socket.destroy();
  });
  upstream.once('connect', () => {
    socket.write(reply(0));
    socket.pipe(upstream).pipe(socket);
  });
}

/** Reads exactly `length` bytes. */
function reader(socket: Socket): (length: number) => Promise<Buffer> {
  return async (length) => {
    for (;;) {
      const chunk: Buffer | null = length === 0 ? Buffer.alloc(0) : socket.read(length);
      if (chunk !== null) return chunk;
      await new Promise((resolve) => socket.once('readable', resolve));
    }
  };
}
