import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, it, onTestFinished, vi } from 'vitest';
import { eventLoopTurns } from '../../../src/core/concurrency/slices.ts';
import { isRefusal } from '../../../src/core/refusal.ts';
import { createBodyReader } from '../../../src/http/body/body.ts';
import { exchange, startApi } from '../harness.ts';
import { sampleRoutes } from '../sample-routes.ts';

const MB = 1024 * 1024;
const OWNER = { accountId: 'acct_1', keyId: 'key_1' };

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

/** Sends a JSON body of `bytes` bytes to a server that reads it in these turns. Returns what it read. */
async function readBody(bytes: number, turn: () => Promise<void>) {
  const bodies = createBodyReader();
  const asked: number[] = [];
  const server = createServer();
  server.listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo; // a TCP server's
  const result = new Promise<string>((resolve, reject) => {
    server.on('request', (req, res) => {
      const waitForTurn = async () => {
        asked.push(req.socket.bytesRead);
        await turn();
      };
      bodies
        .receiveJson(req, res, { limit: 32 * MB, owner: OWNER, turn: waitForTurn })
        .then((received) => (received === null || isRefusal(received) ? received : received.parse()))
        .then((read) => {
          resolve(read === null ? 'disconnected' : isRefusal(read) ? read.message : String(read.value));
          res.setHeader('Connection', 'close').end();
        })
        .catch(reject);
    });
  });
  const headers = { 'Content-Type': 'application/json', 'Content-Length': bytes };
  const req = request({ port, host: '127.0.0.1', method: 'POST', headers });
  req.end(`"${'x'.repeat(bytes - 2)}"`);
  return { text: await result, asked };
}

/** Iterations in which the event loop reads more of a connection unless it is paused. */
async function iterations(count: number): Promise<void> {
  for (let n = 0; n < count; n++) await new Promise(setImmediate);
}

it('a large body is read in turns of its account, a bounded part in each', async () => {
  const { text, asked } = await readBody(4 * MB, () => iterations(20));
  expect(text).toHaveLength(4 * MB - 2);
  const parts = asked.map((read, n) => read - (asked[n - 1] ?? 0));
  expect(parts.length).toBeGreaterThanOrEqual(16);
  expect(Math.max(...parts)).toBeLessThanOrEqual(256 * 1024);
});

it('a small body waits for one turn', async () => {
  const { asked } = await readBody(10_000, () => iterations(1));
  expect(asked).toHaveLength(1);
});

it('the time that a body waits for turns is not counted as slowness of the client', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
  const { text } = await readBody(MB, async () => void vi.advanceTimersByTime(60_000));
  expect(text).toHaveLength(MB - 2);
});

it('the rest of a refused body is read in turns, too', async () => {
  const api = await startApi({ routes: sampleRoutes });
  onTestFinished(api.stop);
  const next = vi.spyOn(eventLoopTurns, 'next');
  const head = `POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: ${4 * MB}\r\n\r\n`;
  const last = 'GET /nowhere HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';
  const sent = Buffer.concat([Buffer.from(head), Buffer.alloc(4 * MB, 'x'), Buffer.from(last)]);
  expect((await exchange(api.port, sent)).match(/HTTP\/1\.1 \d+/g)).toHaveLength(2);
  const turns = next.mock.calls.filter(([accountId]) => accountId === 'refused bodies');
  expect(turns.length).toBeGreaterThanOrEqual(32);
});
