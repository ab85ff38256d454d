import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { MINUTE, SECOND } from '../../src/core/clock.ts';
import { createHandshakeCheck, limitSockets } from '../../src/smtp/sockets.ts';
import { heldClock } from '../support/store.ts';

async function start(proxies: string[]) {
  const accepted: Socket[] = [];
  const server = createServer((socket) => {
    accepted.push(socket);
    // As smtp-server does at STARTTLS.
    socket.removeAllListeners();
    socket.on('error', () => {});
    socket.resume();
  });
  const forget = limitSockets(server, 2, proxies);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  /** Whether the server keeps the connection. */
  const isKept = async (from: string): Promise<boolean> => {
    const count = accepted.length;
    const seen = once(server, 'connection');
    const socket = connect({ port: address.port, host: '127.0.0.1', localAddress: from });
    onTestFinished(() => void socket.destroy());
    socket.on('error', () => {});
    await seen;
    return accepted.length > count;
  };
  return { accepted, isKept, forget };
}

describe('sockets of one address', () => {
  it('are closed beyond its connections and a margin, and counted while they are open', async () => {
    const { accepted, isKept, forget } = await start([]);
    const kept: boolean[] = [];
    for (let n = 0; n < 14; n++) kept.push(await isKept('127.0.0.2'));
    expect(kept.filter(Boolean)).toHaveLength(12);
    expect(await isKept('127.0.0.3')).toBe(true);
    for (const socket of accepted.splice(0, 5)) socket.destroy();
    forget();
    for (let n = 0; n < 5; n++) expect(await isKept('127.0.0.2')).toBe(true);
    expect(await isKept('127.0.0.2')).toBe(false);
  });

  it('are closed beyond a multiple of them for its network', async () => {
    const { isKept } = await start([]);
    const kept: boolean[] = [];
    for (let n = 0; n < 40; n++) kept.push(await isKept(`127.0.1.${n + 1}`));
    expect(kept.filter(Boolean)).toHaveLength(8 * 2 + 10);
    expect(await isKept('127.0.2.1')).toBe(true);
  });

  it('are not counted for a proxy', async () => {
    const { isKept } = await start(['127.0.0.2']);
    for (let n = 0; n < 20; n++) expect(await isKept('127.0.0.2')).toBe(true);
  });
});

describe('sockets without a session', () => {
  it('are closed after ten seconds', async () => {
    const { accepted, isKept } = await start([]);
    const clock = heldClock();
    const check = createHandshakeCheck(clock);
    await isKept('127.0.0.2');
    check(accepted);
    clock.advance(10 * SECOND);
    await isKept('127.0.0.2');
    check(accepted);
    expect(accepted.map(({ destroyed }) => destroyed)).toEqual([false, false]);
    clock.advance(SECOND);
    check(accepted);
    expect(accepted.map(({ destroyed }) => destroyed)).toEqual([true, false]);
    clock.advance(MINUTE);
    check(accepted);
    expect(accepted.map(({ destroyed }) => destroyed)).toEqual([true, true]);
  });
});
