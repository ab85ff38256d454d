import { createServer } from 'node:net';

/**
 * Below the ephemeral ports (32768 and up on Linux): an outgoing connection may occupy one of those before the
 * program under test listens on it.
 */
const FIRST_PORT = 10_000;
const LAST_PORT = 32_000;
/**
 * Vitest's workers choose different ports, whatever they run at the same time: between the choice of a port and its
 * use, another worker would find it free, too.
 */
const SHARES = 16;
const SHARE = Number(process.env['VITEST_POOL_ID'] ?? 0) % SHARES;
const MAX_TRIES = 100;

const issued = new Set<number>();

/** An unused port of `host` that neither this process nor another worker of the test run has returned before. */
export async function freePort(host = '127.0.0.1'): Promise<number> {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const port =
      FIRST_PORT + SHARE + SHARES * Math.floor((Math.random() * (LAST_PORT - FIRST_PORT)) / SHARES);
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
