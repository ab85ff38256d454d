import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { FaultName } from './faults.ts';

/** A webhook endpoint that fails on demand, and counts the events that it accepted. */
export interface Hook {
  url: string;
  /** `webhook errors`: replies 503. `webhook down`: closes each connection without a reply. */
  fail(active: readonly FaultName[]): void;
  /** Distinct events that were answered with 200. */
  accepted(): number;
  failed(): number;
  stop(): Promise<void>;
}

export async function startHook(): Promise<Hook> {
  const accepted = new Set<string>();
  let failed = 0;
  let mode: 'up' | 'errors' | 'down' = 'up';
  const server = createServer((request, response) => {
    request.resume();
    request.once('end', () => {
      if (mode === 'up') {
        accepted.add(String(request.headers['webhook-id']));
        response.writeHead(200).end();
        return;
      }
      failed++;
      if (mode === 'down') request.socket.destroy();
      else response.writeHead(503).end();
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  // Bound to an address, not to a path.
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/events`,
    fail: (active) => {
      if (active.includes('webhook down')) mode = 'down';
      else mode = active.includes('webhook errors') ? 'errors' : 'up';
    },
    accepted: () => accepted.size,
    failed: () => failed,
    stop: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
