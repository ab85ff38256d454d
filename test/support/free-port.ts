import { createServer } from 'node:net';

/** A port of `host` that nobody listens on just now, for programs that cannot say which one they took. */
export function freePort(host = '127.0.0.1'): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, host, () => {
      const address = server.address();
      server.close(() =>
        address === null || typeof address === 'string'
          ? reject(new Error(`no port on ${host}`))
          : resolve(address.port),
      );
    });
  });
}
