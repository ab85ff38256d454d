import { once } from 'node:events';
import { createServer, IncomingMessage, ServerResponse } from 'node:http';
import { type AddressInfo, connect, Socket } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { oneAtATime } from '../../src/http/pipelining.ts';

/** A handler without responses, for requests that arrive in one read. */
function listener(maxRetained: number) {
  let handled = 0;
  const handle = oneAtATime(() => void handled++, { maxRetained });
  return {
    handled: () => handled,
    pipeline: (count: number, socket = new Socket()) => {
      onTestFinished(() => void socket.destroy());
      for (let n = 0; n < count; n++) {
        const req = new IncomingMessage(socket);
        handle(req, new ServerResponse(req));
      }
      return socket;
    },
  };
}

const closed = (sockets: Socket[]) => sockets.map(({ destroyed }) => destroyed);

it('closes the oldest abandoned connections when Node retains too many requests for all of them', () => {
  const { pipeline, handled } = listener(1000);
  const sockets = [pipeline(400), pipeline(400)];
  expect(closed(sockets)).toEqual([false, false]);
  sockets.push(pipeline(400));
  expect(closed(sockets)).toEqual([true, false, false]);
  sockets.push(pipeline(700));
  expect(closed(sockets)).toEqual([true, true, true, false]);
  expect(handled()).toBe(4);
});

it('closes a connection that alone exceeds the bound, and no longer counts it', () => {
  const { pipeline } = listener(1000);
  const first = pipeline(3600);
  expect(first.destroyed).toBe(true);
  const next = pipeline(1000);
  pipeline(100, first);
  expect(next.destroyed).toBe(false);
});

it('releases the count of an abandoned connection when it is closed', async () => {
  const { pipeline } = listener(1000);
  const first = pipeline(900);
  const gone = once(first, 'close');
  first.destroy();
  await gone;
  const sockets = [pipeline(500), pipeline(500)];
  expect(closed(sockets)).toEqual([false, false]);
  sockets.push(pipeline(100));
  expect(closed(sockets)).toEqual([true, false, false]);
});

it('does not count connections that are not abandoned', () => {
  const { pipeline } = listener(100);
  const sockets = Array.from({ length: 20 }, () => pipeline(33));
  sockets.push(pipeline(100));
  expect(closed(sockets)).toEqual(Array.from({ length: 21 }, () => false));
});

it('stops parsing when a connection has pipelined too many requests', async () => {
  let parsed = 0;
  const server = createServer(
    { requireHostHeader: false },
    oneAtATime(() => undefined),
  );
  server.prependListener('request', () => parsed++);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo; // a TCP server's
  // The server gets all requests in one read.
  const client = connect(port, '127.0.0.1', () => client.write('GET / HTTP/1.1\r\n\r\n'.repeat(3600)));
  onTestFinished(() => {
    client.destroy();
    server.closeAllConnections();
    server.close();
  });
  await expect.poll(() => parsed).toBeGreaterThan(33);
  expect(parsed).toBe(34);
});
