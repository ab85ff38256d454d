import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { readGreeting } from '../../src/doctor/probes/smtp.ts';

const openSockets = () => process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length;

it('closes the connection to a server that does not close it after QUIT', async () => {
  const server = createServer({ allowHalfOpen: true });
  const connected = new Promise<Socket>((resolve) => server.once('connection', resolve));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo; // a TCP server that listens
  const before = openSockets();
  const { signal } = new AbortController();
  const greeting = readGreeting({ address: '127.0.0.1', port, timeoutMs: 100, signal });
  const socket = await connected;
  onTestFinished(() => void socket.destroy());
  socket.resume().write('220 mx.big.test ESMTP\r\n');
  expect(await greeting).toMatchObject({ kind: 'greeting', code: 220 });
  // The socket of the server remains.
  await expect.poll(openSockets).toBe(before + 1);
});
