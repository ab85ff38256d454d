import { createServer } from 'node:net';

/**
 * Below the ports that the system gives to outgoing connections (32768 and up on Linux): a port from there may be
 * taken by any connection before the program that it is meant for listens on it.
 */
const FIRST_PORT = 10_000;
const LAST_PORT = 32_000;
const MAX_TRIES = 100;

const issued = new Set<number>();

/** A port of `host` that nobody listens on and that this process has not returned before. */
export async function freePort(host = '127.0.0.1'): Promise<number> {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const port = FIRST_PORT + Math.floor(Math.random() * (LAST_PORT - FIRST_PORT));
    if (issued.has(port) || !(await canListen(host, port))) continue;
    issued.add(port);
    return port;
  }
  throw new Error(`no free port on ${host} in ${MAX_TRIES} tries`);
}

function canListen(host: string, port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) =>
      error.code === 'EADDRINUSE' ? resolve(false) : reject(error),
    );
    server.listen(port, host, () => server.close(() => resolve(true)));
  });
}
