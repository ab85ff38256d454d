import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  createCommandQueue,
  MAX_PENDING_SOCKETS,
  PacedServer,
  type Pacing,
} from '../../src/smtp/paced-server.ts';
import { SmtpRejection } from '../../src/smtp/reply.ts';
import { createStallCheck, WRITE_STALL_TIMEOUT_MS } from '../../src/smtp/sockets.ts';
import { eventually } from '../support/eventually.ts';
import { smtpClient } from '../support/smtp-client.ts';
import { heldClock } from '../support/store.ts';

/** A server with pacing only; `commands`: the names of the commands that were charged. */
async function start(verdict: Pacing['limits']['command'] = () => 0, secure = false) {
  const commands: string[] = [];
  const refused: string[] = [];
  const server = new PacedServer(
    {
      closeTimeout: 10,
      secure,
      disabledCommands: ['AUTH'],
      disableReverseLookup: true,
      hideENHANCEDSTATUSCODES: false,
      logger: false,
    },
    {
      limits: {
        command: (session, name) => {
          commands.push(name);
          return verdict(session, name);
        },
      },
      queue: createCommandQueue(),
      onRejected: (address) => void refused.push(address),
    },
  );
  server.on('error', () => {});
  server.listen(0, '127.0.0.1');
  await once(server.server, 'listening');
  onTestFinished(() => new Promise((resolve) => server.close(resolve)));
  const address = server.server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  const { port } = address;
  return { server, port, commands, refused };
}

describe('PacedServer', () => {
  it('charges every command, in plain text and TLS, and replies in order', async () => {
    const { port, commands } = await start();
    const client = await smtpClient(port);
    client.write('EHLO a.example\r\nNOOP\r\nVRFY x\r\nHELP\r\nNONSENSE\r\nRSET\r\n');
    const replies: string[] = [];
    for (let n = 0; n < 6; n++) replies.push((await client.reply()).slice(0, 3));
    expect(replies).toEqual(['250', '250', '252', '214', '500', '250']);
    await client.startTls();
    client.write('EHLO a.example\r\nMAIL FROM:<>\r\nRCPT TO:<a@b.example>\r\nQUIT\r\n');
    for (const code of ['250', '250', '250', '221']) expect((await client.reply()).slice(0, 3)).toBe(code);
    const plain = ['EHLO', 'NOOP', 'VRFY', 'HELP', 'NONSENSE', 'RSET', 'STARTTLS'];
    expect(commands).toEqual([...plain, 'EHLO', 'MAIL', 'RCPT', 'QUIT']);
  });

  it('replaces the oldest sockets whose TLS handshake is not complete, so that others can connect', async () => {
    const { server, port } = await start(() => 0, true);
    const sockets: Socket[] = [];
    for (let count = 0; count < MAX_PENDING_SOCKETS + 20; count++) {
      const socket = connect(port, '127.0.0.1').on('error', () => {});
      onTestFinished(() => void socket.destroy());
      await once(socket, 'connect');
      // The first bytes of a ClientHello.
      socket.write(Buffer.from([0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3]));
      sockets.push(socket);
    }
    await eventually(
      'the oldest sockets are closed',
      () => sockets.filter(({ closed }) => closed).length === 20,
    );
    expect(sockets[0]?.closed).toBe(true);
    const client = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false });
    onTestFinished(() => void client.destroy());
    const [greeting] = await once(client, 'data');
    expect(String(greeting)).toMatch(/^220 /);
    expect(server._pendingSockets.size).toBeLessThanOrEqual(MAX_PENDING_SOCKETS);
  });

  it('closes sockets that were accepted in the same turn of the event loop', async () => {
    const { server, port } = await start(() => 0, true);
    const accepted: Socket[] = [];
    const closing = new Promise<void>((resolve) => {
      server.server.on('connection', (socket: Socket) => {
        if (accepted.push(socket) === 1) server.close(resolve);
      });
    });
    const socket = connect(port, '127.0.0.1').on('error', () => {});
    onTestFinished(() => void socket.destroy());
    await closing;
    expect(accepted.map(({ destroyed }) => destroyed)).toEqual([true]);
  });

  it('delays a command and those after it', async () => {
    const delays = [0, 30, 0];
    const { port, commands } = await start(() => delays.shift() ?? 0);
    const client = await smtpClient(port);
    client.write('EHLO a.example\r\nNOOP\r\nRSET\r\n');
    expect(await client.reply()).toMatch(/^250/);
    expect(commands).toEqual(['EHLO', 'NOOP']);
    expect(await client.reply()).toMatch(/OK$/);
    expect(await client.reply()).toMatch(/Flushed$/);
  });

  it('replies 421 with the enhanced code, disconnects, and runs no further command', async () => {
    const { port, commands, refused } = await start((_, name) =>
      name === 'NOOP' ? new SmtpRejection(421, '4.7.0', 'Too many') : 0,
    );
    const client = await smtpClient(port);
    client.write('EHLO a.example\r\nNOOP\r\nRSET\r\nRSET\r\n');
    expect(await client.reply()).toMatch(/^250/);
    expect(await client.reply()).toBe('421 4.7.0 Too many');
    await client.end;
    expect(commands).toEqual(['EHLO', 'NOOP']);
    expect(refused).toEqual(['127.0.0.1']);
  });

  it('removes a client that disconnects while its command waits', async () => {
    const { server, port, commands } = await start((_, name) => (name === 'NOOP' ? 1000 : 0));
    const client = await smtpClient(port);
    client.write('NOOP\r\nNOOP\r\nNOOP\r\n');
    await eventually('the command to arrive', () => commands.length === 1);
    client.destroy();
    await eventually('the connection to be removed', () => server.connections.size === 0);
    await new Promise((resolve) => setTimeout(resolve, 1500));
    expect(commands).toEqual(['NOOP']);
  });

  it('writes the replies to pipelined commands in few packets', async () => {
    const { port } = await start();
    const socket = connect(port, '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    await once(socket, 'data');
    let packets = 0;
    let received = '';
    socket.on('data', (chunk) => {
      packets++;
      received += chunk.toString();
    });
    socket.write('NOOP\r\n'.repeat(1000));
    await eventually('all replies', () => received.split('\r\n').length === 1001);
    expect(packets).toBeLessThan(200);
  });

  it('closes the socket of a rejected client that does not close it', async () => {
    const { server, port } = await start(() => new SmtpRejection(421, '4.7.0', 'Too many'));
    const socket: Socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    onTestFinished(() => void socket.destroy());
    socket.on('error', () => {});
    await once(socket, 'data');
    socket.write('NOOP\r\n');
    await once(socket, 'end');
    await eventually('the socket to be closed', () => sockets(server).then((count) => count === 0));
  });
});

function sockets(server: PacedServer): Promise<number> {
  return new Promise((resolve, reject) => {
    server.server.getConnections((error, count) => (error ? reject(error) : resolve(count)));
  });
}

describe('a client that reads no replies', () => {
  it('is not served further and is detected after a minute', async () => {
    const { server, port, commands } = await start();
    const socket = connect(port, '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    await once(socket, 'data');
    socket.pause();
    const block = Buffer.from('HELP\r\n'.repeat(10_000));
    const [connection] = server.connections;
    if (connection === undefined) throw new Error('no connection');
    const send = () => {
      if (socket.writableLength === 0) socket.write(block);
    };
    await eventually(
      'the replies to fill all buffers',
      () => {
        send();
        return connection._socket.writableLength > 0 && socket.writableLength > 0;
      },
      { everyMs: 5 },
    );
    const clock = heldClock();
    const isStalled = createStallCheck(clock);
    // The kernel may still transfer buffered data for a moment.
    await eventually('the commands to stop', async () => {
      const before = commands.length;
      await new Promise((resolve) => setTimeout(resolve, 200));
      return commands.length === before;
    });
    expect(connection._socket.writableLength).toBeLessThan(100_000);
    expect(isStalled(connection._socket)).toBe(false);
    clock.advance(WRITE_STALL_TIMEOUT_MS - 1);
    expect(isStalled(connection._socket)).toBe(false);
    clock.advance(1);
    expect(isStalled(connection._socket)).toBe(true);
    socket.resume();
    await eventually('the replies to be read', () => connection._socket.writableLength === 0);
    expect(isStalled(connection._socket)).toBe(false);
  });
});
